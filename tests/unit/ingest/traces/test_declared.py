"""Formats that TOML files declare: what an entry inherits, what is wrong with one, and the example of the document."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.pipeline.registry import built_in
from gpuctl.ingest.traces.declared import formats_of
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.ingest.core.format import Format

TABLE = """
[defaults]
rows = "jobs"
zoned = true

[first]
title = "one"
what = "a table"
file_names = ["a.csv"]
work = "run_s"
derive.gpus = "2 * gpus"

[first.columns]
id = { to = "job", needed = true }
gpus = { to = "gpus", kind = "number" }

[second]
like = "first"
file_names = ["b.csv"]
order = 7
columns.user = "user"
passes_over = [{ columns = ["x", "y"], text = "others" }, { file_name = "*.header", text = "names" }]
"""


def _read(folder: Path, text: str) -> dict[str, Format]:
    file = folder / "tables.toml"
    file.write_text(text, "utf-8")
    return {fmt.name: fmt for fmt in formats_of(file)}


def _table(fmt: Format) -> Any:
    return getattr(fmt.load, "__self__", None)


def test_an_entry_extends_another_and_has_the_defaults_of_its_file(tmp_path: Path) -> None:
    found = _read(tmp_path, TABLE)
    first, second = found["first"], found["second"]
    assert (first.order, first.fills, first.zoned, second.order) == (20, ("jobs", "attempts", "queues"), True, 7)
    assert (second.title, second.file_names) == ("one", ("b.csv",))
    assert _table(second) == JobTable(
        what="a table",
        columns={
            "id": Column("job", needed=True),
            "gpus": Column("gpus", "number"),
            "user": Column("user"),
        },
        derive={
            "state": "'pending'",
            "attempts": "cast(0 as int)",
            "run_sum_s": "run_s",
            "run_last_s": "run_s",
            "gpus": "2 * gpus",
        },
    )
    assert second.passes_over is not None
    assert [second.passes_over(name, b"x,y,z\n") for name in ("a.csv", "a.header")] == ["others", "others"]
    assert [second.passes_over(name, b"x\n") for name in ("a.csv", "a.header")] == [None, "names"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("zoned = true", "zone = true", "unknown keys"),
        ('rows = "jobs"', 'rows = "jobs"\nstates.OK = "fine"', "'fine' is not a valid State"),
        ("[first]", "[first", "Expected ']'"),
    ],
)
def test_a_wrong_entry_is_an_error(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _read(tmp_path, TABLE.replace(old, new))


def test_the_example_of_the_document_is_the_entry(root: Path, tmp_path: Path) -> None:
    text = (root / "docs" / "how-to" / "add-a-format.md").read_text("utf-8")
    (example,) = _read(tmp_path, text.partition("```toml\n[openb")[2].partition("```")[0].join(["[openb", ""])).values()
    (entry,) = [fmt for fmt in built_in() if fmt.name == example.name]
    data = [field.name for field in fields(entry) if field.name not in {"sniff", "load"}]
    assert [getattr(example, name) for name in data] == [getattr(entry, name) for name in data]
    assert _table(example) == _table(entry)
