"""Results as JSON documents: what is written is what is read."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.reports.export.document import read_document
from gpuctl.reports.export.files import write_tables
from gpuctl.reports.html import render_html
from tests.unit.reports.fakes import make_analysis

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpuctl.core.results import Analysis


def text_of(analysis: Analysis) -> bytes:
    out = io.BytesIO()
    write_tables(analysis, "json", out, names=[t.name for t in analysis.tables])
    return out.getvalue()


def test_a_result_round_trips(tmp_path: Path) -> None:
    analysis = make_analysis(points=40)
    path = tmp_path / "result.json"
    path.write_bytes(text_of(analysis))
    again = read_document(path)
    assert text_of(again) == text_of(analysis)
    assert render_html(again) == render_html(analysis)


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    found = json.loads(text_of(make_analysis(points=5)))
    edit(found)
    path.write_text(json.dumps(found))


def first_table(found: dict[str, Any]) -> dict[str, Any]:
    table: dict[str, Any] = next(iter(found["tables"].values()))
    return table


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda d: d.update(schema=2), "it has schema 2, and gpuctl"),
        (lambda d: d.pop("schema"), "it has no schema"),
        (lambda d: d.update(tables=[]), "tables is a list, expected an object"),
        (lambda d: d.update(cluster=None), "cluster is missing, expected a text"),
        (lambda d: d["settings"].update(x=3), "settings.x is a number, expected a text"),
        (lambda d: d["sources"][0].update(bytes=-1), r"sources\[0\].bytes is a number, expected a whole number"),
        (lambda d: first_table(d).pop("rows"), r"tables\..*\.rows is missing, expected a list"),
        (lambda d: first_table(d)["columns"][0].update(type="thing"), "has the unknown type 'thing'"),
        (lambda d: first_table(d)["columns"][0].update(type="time"), "should hold values of type time"),
        (lambda d: first_table(d)["columns"].append(first_table(d)["columns"][0]), "two columns of one name"),
    ],
)
def test_an_invalid_result_is_reported(tmp_path: Path, edit: Callable[[dict[str, Any]], object], said: str) -> None:
    path = tmp_path / "result.json"
    change(path, edit)
    with pytest.raises(InputError, match=said):
        read_document(path)


@pytest.mark.parametrize("text", ["", "{", "[1", '"x"', "[" * 100_000, "\ud800".encode("utf-8", "surrogatepass")])
def test_an_invalid_json_is_reported(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=r"is not (valid JSON|a gpuctl result)"):
        read_document(path)


def test_a_document_of_an_older_gpuctl_is_read(tmp_path: Path) -> None:
    path = tmp_path / "result.json"

    def older(found: dict[str, Any]) -> None:
        del found["sections"]
        for table in found["tables"].values():
            del table["detail"], table["first_columns"]

    change(path, older)
    assert len(read_document(path).tables) == len(make_analysis(points=5).tables)
