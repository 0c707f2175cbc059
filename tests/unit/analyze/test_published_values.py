"""The published values that traces are compared with, held against the files and papers that they were read from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
READ = ROOT / "tests" / "fixtures" / "published_values.json"
"""Read by hand from the files and papers that it names."""
KEYS = {
    "acme": ("acme", "acme_utilization"),
    "helios": ("helios",),
    # the longest run of PAI stands in Acme's summary
    "pai": ("pai2020", "acme"),
    "openb": ("openb2023",),
    "spot": ("spot2026",),
    "supercloud": ("supercloud",),
}
ROW = re.compile(r"^\s*\(\d+, .*?'[^']*', '[^']*', '[^']*', '[^']*', (-?[\d.]+)(?:::\w+)?, ", re.MULTILINE)


@pytest.mark.parametrize("name", KEYS)
def test_each_published_value_is_what_its_source_states(name: str) -> None:
    text = (ROOT / "queries" / f"reference_{name}.sql").read_text()
    published = [float(value) for value in ROW.findall(text)]
    assert len(published) == len(re.findall(r"^\s*\(\d+, '", text, re.MULTILINE)) > 3
    read = json.loads(READ.read_text())
    stated = [value for key in KEYS[name] for value in _numbers(read[key])]
    wrong = [value for value in published if not any(abs(value - one) < 1e-6 for one in stated)]
    assert wrong == []


def _numbers(read: Any) -> Iterator[float]:
    """Every number, as a percentage too, and the shares in % of the numbers that make up a whole."""
    if isinstance(read, int | float):
        yield float(read)
        yield from (round(100 * read, digits) for digits in (1, 2))
    elif isinstance(read, list):
        for one in read:
            yield from _numbers(one)
    elif isinstance(read, dict):
        for one in read.values():
            yield from _numbers(one)
        times = [
            value for key, value in read.items() if key in {"complete_gpu_time", "cancel_gpu_time", "fail_gpu_time"}
        ]
        for whole in (times, list(read.values())):
            if whole and all(isinstance(value, int | float) for value in whole):
                yield from (round(100 * value / sum(whole), 2) for value in whole)
