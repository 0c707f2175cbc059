from __future__ import annotations

import io
import re
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from gpuctl.core.errors import UsageError
from gpuctl.core.results import Analysis
from gpuctl.reports.cell_text import shown_columns
from gpuctl.reports.terminal.printer import print_analysis, wants_color
from gpuctl.reports.terminal.table_layout import GAP, fit
from tests.unit.reports.fakes import HOSTILE, make_analysis, table


def printed(analysis: Analysis, width: int = 80, color: bool = False, names: tuple[str, ...] | None = None) -> str:
    out = io.StringIO()
    print_analysis(analysis, console_width=width, color=color, file=out, names=names)
    return out.getvalue()


def one(frame: pl.DataFrame, **changes: object) -> Analysis:
    return replace(make_analysis(points=5), tables=(table("t", "overview", frame),), warnings=(), **changes)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(cell_len(line) for line in printed(make_analysis(), width).splitlines()) <= width


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_printed_value_is_there_in_full(width: int) -> None:
    text = re.sub(r"\s", "", printed(make_analysis(rows=20), width))
    for name in ("69.3", "1,733,112", "2017-10-0300:44:36", "fragmentation", "scheduler"):
        assert name in text
    assert "\u2026" not in text


@settings(max_examples=60)
@given(
    width=st.integers(40, 160),
    cells=st.lists(st.text(max_size=60), min_size=1, max_size=4),
    numbers=st.lists(st.floats(allow_nan=False), min_size=1, max_size=12),
)
def test_a_table_of_anything_fits_and_loses_no_column(width: int, cells: list[str], numbers: list[float]) -> None:
    frame = pl.DataFrame(
        {f"name_{i}": [c] for i, c in enumerate(cells)} | {f"n{i}_h": [n] for i, n in enumerate(numbers)}
    )
    columns = shown_columns(table("t", "overview", frame))
    parts = fit(columns, width)
    assert {i for part in parts for i in part.columns} == set(range(len(columns)))
    assert all(sum(part.widths) + GAP * (len(part.widths) - 1) <= width for part in parts)
    assert all(part.columns[0] == 0 for part in parts)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_two_columns_of_long_texts_share_what_is_left(width: int) -> None:
    frame = pl.DataFrame({"id": ["a", "b"], "found": ["word " * 60, "x"], "todo": ["x", "word " * 30]})
    (part,) = fit(shown_columns(table("t", "overview", frame)), width)
    assert sum(part.widths) + 2 * GAP == width
    assert abs(part.widths[1] - part.widths[2]) <= 1


@pytest.mark.parametrize("width", range(40, 110))
def test_a_table_that_just_does_not_fit_is_laid_out_again(width: int) -> None:
    frame = pl.DataFrame({"name": ["x" * 30], "long heading words": ["y" * 12]} | {f"n{i}": [10**9] for i in range(3)})
    for part in fit(shown_columns(table("t", "overview", frame)), width):
        assert sum(part.widths) + GAP * (len(part.widths) - 1) <= width


def test_hostile_names_are_printed_as_text() -> None:
    text = printed(make_analysis(), 200)
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "\u202e" not in text
    for name in HOSTILE[:4]:
        assert name in text
    assert "right\\u202eleft\\u200bzero\\x1b[31mred\\x00nul\\nline" in text


def test_more_rows_than_fit_are_counted_with_the_way_to_get_them() -> None:
    assert "\u2026 and 75 more rows: --format csv has all" in printed(make_analysis(rows=100))
    assert "more row" not in printed(make_analysis(rows=25))


def test_detail_tables_are_listed_and_printed_only_if_named() -> None:
    text = printed(make_analysis())
    assert re.search(r"job_waits +1,000 rows +Job waits", text)
    assert "application_0" not in text
    named = printed(make_analysis(), names=("job_waits",))
    assert "application_0" in named
    assert "Status" not in named


def test_an_unknown_table_is_an_error_that_suggests_the_nearest() -> None:
    with pytest.raises(UsageError) as error:
        printed(make_analysis(), names=("stats",))
    assert "status" in (error.value.hint or "")


def test_warnings_are_no_results() -> None:
    assert "Clock changes" not in printed(make_analysis())


def test_one_row_with_many_columns_is_a_list() -> None:
    text = printed(make_analysis(), 80, names=("totals",))
    assert re.search(r"^first ts +2017-08-07 08:00:00 +UTC$", text, re.MULTILINE)


def test_a_table_too_wide_is_printed_in_parts_that_repeat_the_key() -> None:
    frame = pl.DataFrame({"queue": ["vc1", "vc2"]} | {f"cause_{i}_h": [1234.5, 2.25] for i in range(12)})
    text = printed(one(frame), 60)
    assert "part 2 of" in text
    assert len(re.findall(r"^vc2 ", text, re.MULTILINE)) == len(re.findall("part . of", text))


def test_an_empty_table_reports_it() -> None:
    assert re.search(r"^ +no rows$", printed(make_analysis(), names=("empty",)), re.MULTILINE)


def test_numbers_end_in_the_same_column() -> None:
    lines = printed(make_analysis(), names=("gpu_util_by_nodes",)).splitlines()
    ends = {len(line) for line in lines if re.match(r" +\d", line)}
    assert len(ends) == 1


@pytest.mark.parametrize(
    ("environ", "tty", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_colour_follows_the_environment(environ: dict[str, str], tty: bool, expected: bool) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return tty

    assert wants_color(Stream(), environ) is expected


def test_colour_adds_only_escape_sequences() -> None:
    coloured = printed(make_analysis(), color=True)
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == printed(make_analysis()).splitlines()


def test_a_terminal_without_unicode_gets_plain_signs() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    print_analysis(make_analysis(rows=40), console_width=80, color=False, file=out)
    out.flush()
    assert b"... and 15 more rows" in raw.getvalue()


def test_columns_without_a_value_are_named_and_stand_in_a_table_requested() -> None:
    frame = pl.DataFrame({"user": ["ann", "bob"], "gpu_hours": [None, None], "node_hours": [3.0, 4.0]},
                         schema={"user": pl.String, "gpu_hours": pl.Float64, "node_hours": pl.Float64})  # fmt: skip
    text = printed(one(frame))
    assert "Without a value: gpu_hours" in text
    assert "GPU hours" not in text
    assert "GPU hours" in printed(one(frame), names=("t",))
    assert "Without a value" not in printed(one(frame.head(1))), "a single row is read as a list"
