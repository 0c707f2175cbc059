"""Every analysis table of three small logs, cell by cell; GPUCTL_UPDATE_GOLDEN=1 writes them anew: read the diff.

The first log's figures were worked out by hand (tests/worked_log.py); the truth about the others' waits and failures is
checked elsewhere. These files say what else changes if a query does.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.worked_log import write_worked_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tables"
MOST_ROWS = 12
"""Rows of a table that are kept; what a query does wrong shows in them."""
LEFT_OUT = {"sources"}
"""Tables that name files and moments of loading."""


def _text(answer: dict[str, Any]) -> str:
    lines = []
    for name, table in answer["tables"].items():
        if name in LEFT_OUT or not table["rows"]:
            continue
        columns = [column["name"] for column in table["columns"]]
        lines += ["", f"# {name}: {len(table['rows'])} rows", "\t".join(columns)]
        lines += ["\t".join(_cell(row[column]) for column in columns) for row in table["rows"][:MOST_ROWS]]
    return "\n".join(lines).lstrip() + "\n"


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


@pytest.mark.parametrize("name", ["worked", "philly", "failures"])
def test_tables_have_the_values_they_had(
    name: str, tmp_path: Path, thin_data: Path, gpuctl: Callable[..., CompletedProcess[str]]
) -> None:
    if name == "worked":
        logs = [write_worked_log(tmp_path), "--quotas", tmp_path / "quotas.csv", "--borrow-below", "0"]
    else:
        logs = [thin_data / name]
    done = gpuctl("analyze", *logs, "--all", "--json")
    text = _text(json.loads(done.stdout))
    place = GOLDEN / f"{name}.tsv"
    if os.environ.get("GPUCTL_UPDATE_GOLDEN"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, "utf-8")
    assert text == place.read_text("utf-8")
