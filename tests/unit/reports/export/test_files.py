from __future__ import annotations

import csv
import io
import json
import math
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import UsageError
from gpuctl.core.file_io import write_atomically
from gpuctl.reports.export.files import FORMATS, Format, write_dir, write_tables
from gpuctl.reports.export.markdown import escaped
from tests.unit.reports.fakes import HOSTILE, make_analysis, table

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import Analysis


def written(analysis: Analysis, form: Format, names: tuple[str, ...] | None = None) -> bytes:
    out = io.BytesIO()
    write_tables(analysis, form, out, names=names)
    return out.getvalue()


def only(frame: pl.DataFrame) -> Analysis:
    return replace(make_analysis(points=5), tables=(table("t", "overview", frame),))


def fields(text: str, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


TEXTS = st.text(st.sampled_from('ab,;"\r\n\t ') | st.characters(codec="utf-8"))


@settings(max_examples=150)
@example([("a", math.nan, 1), (None, math.inf, 2), ("", -math.inf, 3), ("a\rb", None, 4)], "csv")
@given(
    st.lists(st.tuples(st.none() | TEXTS, st.none() | st.floats(), st.integers(-(2**62), 2**62)), max_size=8),
    st.sampled_from(["csv", "tsv"]),
)
def test_delimited_text_gives_back_every_value(rows: list[tuple[str | None, float | None, int]], form: Format) -> None:
    schema = {"a": pl.String, "b": pl.Float64, "c": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    text = written(only(frame), form).decode()
    head, *got = fields(text, "," if form == "csv" else "\t")
    assert head == ["a", "b", "c"]
    for (a, b, c), (ga, gb, gc) in zip(rows, got, strict=True):
        assert ga == (a or "")
        assert (gb == "") if b is None or math.isnan(b) else float(gb) == b
        assert int(gc) == c


def test_a_missing_value_is_not_an_empty_string() -> None:
    frame = pl.DataFrame({"a": [None, ""], "b": [1, 2]})
    assert written(only(frame), "csv") == b'a,b\n,1\n"",2\n'


def test_exact_values_of_all_types() -> None:
    frame = pl.DataFrame(
        {
            "ts": [datetime(2017, 10, 3, 0, 44, 36, 1000, tzinfo=UTC)],
            "took": [timedelta(seconds=90)],
            "gpus": [[0, 3]],
            "flag": [True],
            "share": [0.1 + 0.2],
            "big": [Decimal("12345678901234567890")],
            "state": pl.Series(["failed"], dtype=pl.Enum(["failed"])),
            "none": [float("inf")],
        }
    )
    row = json.loads(written(only(frame), "json"))["tables"]["t"]["rows"][0]
    assert row == {
        "ts": "2017-10-03T00:44:36.001000Z",
        "took": 90.0,
        "gpus": [0, 3],
        "flag": True,
        "share": 0.1 + 0.2,
        "big": 12345678901234567890,
        "state": "failed",
        "none": None,
    }
    line = written(only(frame), "csv").decode().splitlines()[1]
    assert line == '2017-10-03T00:44:36.001000Z,90.0,"[0, 3]",true,0.30000000000000004,12345678901234567890,failed,inf'


FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1+2", "@SUM(A1)", "\t=1", " =1", "\r=1", "=1,2", "a=1", "plain", "", None]


def test_text_is_no_formula_where_requested() -> None:
    analysis = only(pl.DataFrame({"text": FORMULAS, "number": [-1.5] * 12, "took": [timedelta(seconds=-9)] * 12}))
    for kind, separator in (("csv", ","), ("tsv", "\t")):
        exact, safe = io.BytesIO(), io.BytesIO()
        write_tables(analysis, kind, exact)  # type: ignore[arg-type]
        write_tables(analysis, kind, safe, spreadsheet=True)  # type: ignore[arg-type]
        rows = [
            list(csv.reader(io.StringIO(f.getvalue().decode(), newline=""), delimiter=separator)) for f in (exact, safe)
        ]
        assert [row[0] for row in rows[0][1:]] == [text or "" for text in FORMULAS]
        quoted = [f"'{text}" for text in FORMULAS[:8] if text]
        assert [row[0] for row in rows[1][1:]] == [*quoted, "a=1", "plain", "", ""]
        assert all(row[1:] == ["-1.5", "-9.0"] for row in rows[1][1:])


class Screen(io.BytesIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", FORMATS)
def test_no_text_steers_a_terminal_and_a_file_has_it_exactly(kind: str) -> None:
    if kind == "parquet":
        pytest.skip("bytes, which the command line does not write to a terminal")
    text = "a\x1b[31mb\x00c\x9b31md\u202ee\u2066f\rg\x7fh\u200bi é"
    analysis = only(pl.DataFrame({"name": [text]}))
    screen, file = Screen(), io.BytesIO()
    write_tables(analysis, kind, screen)  # type: ignore[arg-type]
    write_tables(analysis, kind, file)  # type: ignore[arg-type]
    shown = screen.getvalue().decode()
    if kind != "table":  # of which the colours are our own
        assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf"} and c not in "\n\t"]
    for steering in ("\x1b[31mb", "\x00", "\x9b", "\u202e", "\u2066", "\r", "\x7f", "\u200b"):
        assert steering not in shown
    if kind in {"csv", "tsv"}:
        assert text in file.getvalue().decode()
        assert "a\\x1b[31mb\\x00c\\x9b31md\\u202ee\\u2066f\\rg\\x7fh\\u200bi é" in shown


def test_several_tables_stand_below_their_names() -> None:
    text = written(make_analysis(), "tsv", ("status", "gpu_util_by_nodes")).decode()
    first, second = text.split("\n\n")
    assert first.startswith("# status\nstate\tsource_state\t")
    assert second.startswith("# gpu_util_by_nodes\ngpus\tnodes\t")
    assert not written(make_analysis(), "tsv", ("status",)).startswith(b"#")


def test_detail_tables_only_if_named() -> None:
    assert b"# job_waits" not in written(make_analysis(), "csv")
    assert written(make_analysis(), "csv", ("job_waits",)).count(b"\n") == 1001
    document = json.loads(written(make_analysis(), "json"))
    assert "job_waits" not in document["tables"]
    assert {"name": "job_waits", "title": "Job waits", "rows": 1000} in document["left_out"]


def test_json_document_has_provenance_and_definitions() -> None:
    analysis = make_analysis()
    document = json.loads(written(analysis, "json"))
    assert list(document) == [
        "schema", "gpuctl", "command", "cluster", "settings", "warnings", "sources", "sections", "names",
        "tables", "left_out",
    ]  # fmt: skip
    assert document["schema"] == 1
    assert list(document["settings"]) == sorted(document["settings"])
    assert document["sources"][0]["rows_in"] == 100
    assert list(document["tables"]) == [t.name for t in analysis.tables if not t.detail]
    status = document["tables"]["status"]
    assert status["columns"][2] == {
        "name": "jobs",
        "unit": "jobs",
        "description": "The jobs of the row.",
        "type": "integer",
    }
    assert status["rows"][0]["gpu_hours"] == 1733112.33
    assert document["tables"]["reasons"]["columns"][2]["type"] == "time"
    assert [r["reason"] for r in document["tables"]["reasons"]["rows"][: len(HOSTILE)]] == list(HOSTILE)


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_analysis_gives_the_same_bytes(form: Format) -> None:
    names = ("status",) if form == "parquet" else None
    assert written(make_analysis(), form, names) == written(make_analysis(), form, names)


def test_json_lines_are_rows() -> None:
    lines = written(make_analysis(), "jsonl", ("status",)).decode().splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["completed", "killed", "failed", "running", "all"]
    several = [json.loads(line) for line in written(make_analysis(), "jsonl").splitlines()]
    assert {line["table"] for line in several} >= {"status", "reasons"}
    assert all(list(line) == ["table", "row"] for line in several)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("@octocat", "@<!-- -->octocat"),
        ("for @octocat, @hubot", "for @<!-- -->octocat, @<!-- -->hubot"),
        ("jobs.csv@fifo me@example.org 3 @ 4", "jobs.csv@fifo me@<!-- -->example.org 3 @ 4"),
        ("HTTPS://a.b/?c=d ftp://e", "HTTPS:<!-- -->//a.b/?c=d ftp:<!-- -->//e"),
        ("www.example.org mailto:me, 12:30", "www.<!-- -->example.org mailto:<!-- -->me, 12:30"),
        ("GH-12", "GH-<!-- -->12"),
        ("#12 !7", "\\#12 \\!7"),
    ],
)
def test_markdown_mentions_nobody_and_links_to_nothing(text: str, told: str) -> None:
    assert escaped(text) == told


def test_markdown_cannot_be_broken_by_names() -> None:
    text = written(make_analysis(rows=10), "markdown", ("reasons",)).decode()
    body = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len([c for c in line.replace("\\|", "").split("|") if c]) for line in body} == {6}
    assert "<script" not in text.replace("\\<", "")
    assert "\x1b" not in text


def test_table_format_is_the_terminal_without_colour() -> None:
    text = written(make_analysis(), "table").decode()
    assert "\x1b[" not in text
    assert "GPU hours" in text


def test_parquet_keeps_types_and_definitions() -> None:
    got = pq.read_table(io.BytesIO(written(make_analysis(), "parquet", ("reasons",))))
    assert got.schema.field("share_pct").metadata[b"unit"] == b"%"
    assert str(got.schema.field("first_ts").type) == "timestamp[us, tz=UTC]"
    assert got.column("reason").to_pylist()[: len(HOSTILE)] == list(HOSTILE)
    assert got.schema.metadata[b"gpuctl.cluster"] == b"philly"


def test_parquet_of_several_tables_needs_a_directory() -> None:
    with pytest.raises(UsageError, match="holds one table"):
        written(make_analysis(), "parquet")


def test_unknown_formats_and_tables_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format"):
        written(make_analysis(), "xlsx")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no table"):
        written(make_analysis(), "csv", ("nope",))
    with pytest.raises(UsageError, match="no directory format"):
        write_dir(make_analysis(), tmp_path, "json")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_directory_gets_one_file_a_table_and_keeps_what_else_it_has(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "deep" / "results"
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("mine")
    (folder / f"status.{form}").write_text("old")
    analysis = make_analysis(points=20)
    paths = write_dir(analysis, folder, form)  # type: ignore[arg-type]
    assert [p.name for p in paths] == [f"{t.name}.{form}" for t in analysis.tables]
    assert {p.name for p in folder.iterdir()} == {p.name for p in paths} | {"mine.txt"}
    read = pl.read_csv if form == "csv" else pl.read_parquet
    assert read(folder / f"status.{form}").height == 5
    assert read(folder / f"job_waits.{form}").height == 1000


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("mine")
    with pytest.raises(UsageError, match="expected a directory"):
        write_dir(make_analysis(), place, "csv")
    assert place.read_text() == "mine"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (OSError("disk full"), (UsageError, "cannot be written: disk full")),
        (KeyboardInterrupt("pressed"), (KeyboardInterrupt, "pressed")),
    ],
)
def test_a_write_that_fails_or_is_stopped_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, fault: BaseException, told: tuple[type[BaseException], str]
) -> None:
    place = tmp_path / "report.html"
    place.write_text("old")

    def fail(file: io.BufferedIOBase) -> None:
        file.write(b"half")
        raise fault

    with pytest.raises(told[0], match=told[1]):
        write_atomically(place, fail)  # type: ignore[arg-type]
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert place.read_text() == "old"
