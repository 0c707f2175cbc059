"""The file that a program writes its true values to."""

from __future__ import annotations

import csv
import sys
from typing import Any

ROWS: list[tuple[Any, ...]] = []


def record_truth(epoch: float, metric: str, value: float) -> None:
    ROWS.append((epoch, metric, repr(float(value))))


def write() -> None:
    with open(sys.argv[1], "w", newline="") as file:  # noqa: PTH123 - also run by old Pythons
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("epoch", "metric", "value"))
        out.writerows(ROWS)
