"""Pictures below tables: which, where, never wider than the line, with their scale. Golden files for readers.

GPUCTL_UPDATE_GOLDEN=1 writes the golden files anew: read the diff.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import random
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from gpuctl.cli.output import OutputFormat, print_result
from gpuctl.cli.settings import Settings
from gpuctl.core.charts import declared
from gpuctl.core.job_explanation import Explanation, Tried, Wait
from gpuctl.reports.explain import print_explanation
from gpuctl.reports.figures import GROUPS, on
from gpuctl.reports.report import labelled, summarize
from gpuctl.reports.terminal.gantt import gantt as gantt_of
from gpuctl.reports.terminal.picture import NARROWEST, ROWS, attempts, draw
from gpuctl.reports.terminal.pictures import of_analysis, of_results
from gpuctl.reports.terminal.printer import print_analysis
from gpuctl.reports.terminal.text_graphics import BLOCKS, PLAIN, UNKNOWN, Signs
from tests.result_tables import table_of
from tests.unit.reports.fakes import (
    HOSTILE,
    SIZES,
    by_hour,
    curves,
    delays,
    hours,
    make_analysis,
    occupancy,
    table,
    totals,
    workload,
)
from tests.unit.reports.test_golden import compare

if TYPE_CHECKING:
    from gpuctl.core.charts import Chart
    from gpuctl.core.results import Analysis

# that of chains is in tests/unit/reports/charts/test_tradeoff.py, profiles are in test_error_bars.py
ELSEWHERE = ("tradeoff", "profile")
RULES = tuple(rule for rule in on(itertools.chain.from_iterable(GROUPS), "terminal") if rule.kind not in ELSEWHERE)
POLICIES = ("fifo", "srtf", "a policy with a name that is much too long for its column")


def replayed(points: int = 200) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """What a replay has over time, of JCTs, and in all, under three policies."""
    start, step = datetime(2017, 10, 2, 7, tzinfo=UTC), 1353.0
    time, jct = [], []
    for number, policy in enumerate(POLICIES):
        busy = [min(114.0, 20.0 + i * (number + 1)) if i < points - 20 * number else 0.0 for i in range(points)]
        time.append(
            pl.DataFrame(
                {
                    "policy": [policy] * points,
                    "t_s": [i * step for i in range(points)],
                    "t_end_s": [(i + 1) * step for i in range(points)],
                    "ts": [start + timedelta(seconds=i * step) for i in range(points)],
                    "waiting_jobs": [max(0.0, value - 60) / (number + 1) for value in busy],
                    "gpus_busy": busy,
                    "gpus_available": [114.0] * points,
                }
            )
        )
        # a tenth of the jobs of the first policy never end
        shares = [(90.0 if number == 0 else 100.0) * (i + 1) / 50 for i in range(50)]
        minutes = [0.5 * 1.2**i / (number + 1) for i in range(50)]
        jct.append(pl.DataFrame({"policy": [policy] * 50, "minutes": minutes, "cdf_pct": shares}))
    uses = pl.DataFrame(
        {"policy": POLICIES, "useful_gpu_h": [1.0, 2.0, 3.0], "lost_gpu_h": [0.0, 0.5, 0.0], "idle_gpu_h": [1.0] * 3}
    )
    return pl.concat(time), pl.concat(jct), uses


def gantt() -> pl.DataFrame:
    """Two nodes under each policy, one of them idle, the other with two jobs of hostile names."""
    rows: list[tuple[object, ...]] = []
    for policy in POLICIES:
        rows += [(policy, f"gpu{k}", "node", None, 4, None, 0.0, 7200.0) for k in (1, 2)]
        rows += [(policy, "gpu1", "job", name, 2, 2.0, 900.0 * k, 4000.0) for k, name in enumerate(HOSTILE[:2])]
    names = ["policy", "node", "what", "job", "gpus", "counted_gpus", "t_s", "t_end_s"]
    ts = pl.datetime(2017, 10, 9, time_zone="UTC") + pl.duration(seconds="t_s")
    empty = [pl.lit(None, pl.String).alias(name) for name in ("user", "queue", "beside")]
    return pl.DataFrame(rows, names, orient="row", infer_schema_length=None).with_columns(ts.alias("ts"), *empty)


def every_wait(rng: random.Random) -> pl.DataFrame:
    """Waits of attempts in no order: of each size, half of them none, the others the longer the larger the gang."""
    waits = [(SIZES[i % 4], 0.0 if i % 8 < 4 else 0.1 * (1 + i % 4) * 2 ** (10 * rng.random())) for i in range(400)]
    return pl.DataFrame(waits[::-1], ["size_bucket", "wait_min"], orient="row")


@cache
def sample() -> Analysis:
    """An analysis and a replay in one, with every table that a picture is drawn from."""
    rng = random.Random(7)
    time, jct, uses = replayed()
    sizes = pl.DataFrame({"size_bucket": SIZES, "p50_min": [1.0, 2.0, 3.0, 4.0]})
    rows = [(size, state, float(x), x**2 / 100) for size in "18" for state in ("all", "failed") for x in range(101)]
    util = pl.DataFrame(rows, ["size", "state", "util_pct", "cdf_pct"], orient="row")
    lost = pl.DataFrame(
        {"size_bucket": [*SIZES, "all"], "succeeded_h": [1.0, 2, 3, 4, 10], "killed_h": [1.0] * 4 + [4]}
    )
    tables = (
        table("overview", "overview", totals()),
        table("occupancy", "overview", occupancy(rng, 385), detail=True),
        table("activity", "overview", by_hour("gpus_busy", "waiting_gpus"), detail=True),
        table("fragmentation", "overview", by_hour("free_gpus", "stranded_gpus", "largest_gang"), detail=True),
        table("runtime_by_size", "runtime", sizes),
        table("runtime_cdf", "runtime", curves(rng, 300), detail=True),
        table("wait_by_size", "queueing", sizes),
        table("waits", "queueing", every_wait(rng), detail=True),
        table("delay_by_size", "queueing", delays("size_bucket", SIZES)),
        table("delay_by_queue", "queueing", delays("queue", tuple(f"{name}{i}" for i in range(3) for name in HOSTILE))),
        table("gpu_util_by_state", "utilization", sizes),
        table("gpu_util_cdf", "utilization", util),
        table("host_util", "utilization", pl.DataFrame({"measure": ["cpu"]})),
        table(
            "host_util_cdf", "utilization",
            pl.DataFrame({"measure": ["cpu"] * 3, "util_pct": [0.0, 20.0, 70.0], "cdf_pct": [5.0, 60.0, 100.0]}),
        ),
        table("gpu_hours_lost", "failures", lost),
        table("interruptions", "failures", hours("cause", "infrastructure", "user_program", "all")),
        table("goodput_loss", "failures", hours("kind", "productive", "idle", "capacity")),
        *(table(name, "workload", workload()[name]) for name in ("job_sizes", "runtime_by_outcome")),
        table("replay_summary", "replay", uses),
        table("replay_timeline", "replay", time, detail=True),
        table("replay_jct_cdf", "replay", jct, detail=True),
        table("replay_gantt", "replay", gantt(), detail=True),
        table(
            "deferrable", "deferrable",
            pl.DataFrame({"policy": ["asap", "latest"], "useful_gpu_h": [30.0, 20.0], "lost_gpu_h": [8.0, 1.5]}),
        ),
        table("replay_wait_cdf", "replay", jct.with_columns(pl.col("minutes") - 0.5 / 3), detail=True),
    )  # fmt: skip
    sections = (*make_analysis(points=3).sections, ("replay", "Replay"))
    return replace(make_analysis(points=3), tables=tables, sections=sections)


def drawn(analysis: Analysis, width: int = 80, signs: Signs = BLOCKS) -> dict[str, tuple[str, ...]]:
    """All lines of pictures, by the table that they stand below."""
    found = of_analysis(analysis, [t.name for t in analysis.tables], width, signs)
    return {name: tuple(line for p in pictures for line in p.lines) for name, pictures in found.items()}


def printed(width: int, encoding: str = "utf-8", color: bool = False) -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    with out:
        found = sample()
        print_analysis(found, console_width=width, color=color, file=out, painter=partial(of_analysis, found))
        out.flush()
        raw = out.buffer.getvalue()  # type: ignore[attr-defined]
        assert isinstance(raw, bytes)
        return raw.decode(encoding)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_golden(width: int) -> None:
    compare(f"pictures-{width}.txt", printed(width))


def test_golden_without_unicode() -> None:
    text = printed(80, "ascii")
    compare("pictures-80-ascii.txt", text)
    assert text.isascii()


def test_every_rule_is_drawn_from_the_sample_and_names_its_scale_and_table() -> None:
    found = sample()
    for rule in RULES:
        source = table_of(found, rule.table)
        picture = draw(rule, source, 80, BLOCKS)
        assert picture is not None, rule
        assert f"From {rule.table}." in picture.caption
        assert re.search(r"\d", picture.caption)
        assert rule.kind == "stacked" or re.search(rf"{BLOCKS.edge}\S", picture.lines[-1]), "no axis"


@pytest.mark.parametrize("width", [40, 60, 61, 62, 63, 79, 80, 120, 200, 300])
@pytest.mark.parametrize("signs", [BLOCKS, PLAIN])
def test_no_line_is_wider_than_requested(width: int, signs: Signs) -> None:
    lines = [line for lines in drawn(sample(), width, signs).values() for line in lines]
    assert lines
    assert max(cell_len(line) for line in lines) <= width
    assert max(cell_len(line) for line in printed(width).splitlines()) <= width


@pytest.mark.parametrize("width", [1, 5, 10, 20, 30])
def test_without_room_there_is_no_picture(width: int) -> None:
    lines = [line for lines in drawn(sample(), width).values() for line in lines]
    assert not lines if width < NARROWEST else max(map(cell_len, lines), default=0) <= width


def test_colour_adds_only_escape_sequences() -> None:
    coloured = printed(80, color=True)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert coloured != plain
    assert [line.rstrip() for line in plain.splitlines()] == printed(80).splitlines()


def test_hostile_names_are_written_out() -> None:
    text = printed(200)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\u200b]", text)


def test_long_names_are_folded_not_cut() -> None:
    lines = drawn(sample(), 80)["replay_summary"]
    width = max(line.index(BLOCKS.edge) for line in lines if BLOCKS.edge in line)
    text = "".join(line[:width].split(BLOCKS.edge)[0].split("  ")[0] for line in lines)
    assert POLICIES[2].replace(" ", "") in text.replace(" ", "")


def test_nodes_of_a_gantt_chart() -> None:
    """A name that is cut says so; a node that could be lent has a row only where it was."""
    long = "rack-12-chassis-3-node-with-a-long-name-7"
    rows = [
        ("p", node, what, "j" if what == "job" else None, 4, 4.0, 0.0, 7200.0)
        for node, what in ((long, "node"), (long, "job"), ("came", "lent"), ("came", "loan"), ("never", "lent"))
    ]
    names = ["policy", "node", "what", "job", "gpus", "counted_gpus", "t_s", "t_end_s"]
    frame = pl.DataFrame(rows, names, orient="row", infer_schema_length=None)
    frame = frame.with_columns(pl.lit(None, pl.String).alias(name) for name in ("user", "queue", "beside", "ts"))
    for signs, cut in ((BLOCKS, f"{long[:23]}\u2026"), (PLAIN, f"{long[:21]}...")):
        found = gantt_of(rule_of("replay_gantt"), frame.with_columns(pl.col("ts").cast(pl.Datetime)), 80, signs)
        assert found is not None
        starts = [line.split(signs.edge)[0].strip() for line in found[0][:3]]
        assert starts == ["p", cut, "came"]
        assert "1 row of nodes that were not on loan left out." in found[1]


def test_more_rows_than_have_room_are_counted_and_the_total_stays() -> None:
    analysis = sample()
    (picture,) = of_analysis(analysis, ["delay_by_queue"], 80, BLOCKS)["delay_by_queue"]
    bars = [line for line in picture.lines if line.endswith(BLOCKS.edge)]
    assert len(bars) == ROWS + 1
    assert bars[-1].startswith("all")
    assert f"{3 * len(HOSTILE) - ROWS} more rows not drawn" in picture.caption


def rule_of(name: str, title: str = "") -> Chart:
    return next(rule for rule in RULES if rule.table == name and title in rule.title)


def lines_of(rule: Chart, frame: pl.DataFrame, width: int = 80) -> tuple[str, ...] | None:
    picture = draw(rule, table(rule.table, "overview", frame), width, PLAIN)
    return picture.lines if picture else None


def test_known_hours_of_known_causes() -> None:
    frame = pl.DataFrame(
        {"queue": ["a", "all"], "fair_share_low_h": [3.0, 5.0], "capacity_low_h": [1.0, 5.0], "not_known_h": [0.0] * 2}
    )
    lines = lines_of(rule_of("delay_by_queue"), frame, 31)
    assert lines == (
        "queue  hours",
        "a          4 |############====|",
        "all       10 |########========|",
    )
    picture = draw(rule_of("delay_by_queue"), table("delay_by_queue", "overview", frame), 30, PLAIN)
    assert picture is not None
    assert "# fair share (50.0 % of all), = capacity (50.0 % of all)" in picture.caption


def test_known_waits_in_their_places() -> None:
    # 30 % at once, 50 % after 30 s, 20 % after an hour
    minutes = [60.0, 0.0, 0.5, 0.5, 0.5, 0.0, 60.0, 0.0, 0.5, 0.5]
    frame = pl.DataFrame({"size_bucket": ["1"] * 10, "wait_min": minutes})
    lines = lines_of(rule_of("waits"), frame, 40)
    assert lines is not None
    bar = lines[1].split("|")[1]
    assert lines[1].startswith("1      30.0 % |")
    assert [sign for sign in bar if sign != " "] == ["#", "-"]
    # the axis goes from 20 s to 1 h; a bin holds its upper edge
    assert bar[-1] == "-"
    assert bar.index("#") == math.floor(math.log(30 / 20) / math.log(3600 / 20) * len(bar))
    minute = lines[-1].index("|1 min") - lines[1].index("|") - 1
    assert minute == round(math.log(60 / 20) / math.log(3600 / 20) * len(bar))


def test_a_tiny_duration_does_not_stretch_the_axis() -> None:
    waits = pl.DataFrame({"size_bucket": ["1"] * 3, "wait_min": [1e-40, 1.0, 60.0]})
    picture = draw(rule_of("waits"), table("waits", "queueing", waits), 80, PLAIN)
    assert picture is not None
    assert picture.caption.startswith("0.05 s to 60 min, logarithmic, shorter ones in the first character; ")
    bar = picture.lines[1].split("|")[1]
    assert (bar[0], bar[-1], bar.count("#")) == ("#", "#", 3)


def test_sizes_stand_by_size_and_a_single_run_is_a_whole() -> None:
    waits = pl.DataFrame({"size_bucket": [">8", "unknown", "2-4", "1"], "wait_min": [1.0, 2, 3, 4]})
    lines = lines_of(rule_of("waits"), waits) or ()
    assert [line.split()[0] for line in lines[1:-1]] == ["1", "2-4", ">8", "unknown"]
    # as the analysis counts: 100 i / (n - 1), from 0
    runs = pl.DataFrame(
        {"size_bucket": ["1", *["2-4"] * 4], "minutes": [5.0, 0.0, 1, 1, 2], "cdf_pct": [0.0, 0, 100 / 3, 200 / 3, 100]}
    )
    lines = lines_of(rule_of("runtime_cdf"), runs) or ()
    assert [line.split()[:2] for line in lines[1:3]] == [["1", "0.0"], ["2-4", "25.0"]]
    assert [sorted(line.split("|")[1].replace(" ", "")) for line in lines[1:3]] == [["#"], [":", "="]]


def test_known_use_over_time_in_its_places() -> None:
    start = datetime(2017, 10, 2, tzinfo=UTC)
    frame = pl.DataFrame(
        {
            "ts": [start + timedelta(hours=12 * i) for i in range(4)],
            "gpus_busy": [0.0, 50.0, 100.0, None],
            "gpus_total": [100.0] * 4,
            "jobs_waiting": [0.0, 0.0, 3.0, 0.0],
        }
    )
    lines = lines_of(rule_of("occupancy"), frame, 43)
    assert lines is not None
    room = len(lines[0].split("|")[1])
    assert room % 4 == 0
    part = room // 4
    assert lines[0].split("|")[1] == " " * 2 * part + "#" * part + " " * part
    assert lines[2].split("|")[1] == " " * part + "#" * 2 * part + "?" * part
    assert lines[0].startswith("GPUs in use  100 ")
    assert lines[3].startswith("waiting        3 ")
    assert lines[6].index("|10-02") == lines[0].index("|") + 1
    assert lines[6].index("|10-03") == lines[0].index("|") + 1 + 2 * part


def test_a_replay_without_calendar_counts_from_its_start() -> None:
    frame = replayed()[0].with_columns(ts=pl.lit(None, pl.Datetime("us", "UTC")))
    picture = draw(rule_of("replay_timeline", "GPUs"), table("replay_timeline", "replay", frame), 80, BLOCKS)
    assert picture is not None
    assert picture.caption.startswith("0 s to 3.13 d;")
    assert "UTC" not in picture.caption
    assert re.search(r"│1 d +│2 d", picture.lines[-1])


def test_jobs_that_did_not_finish_are_reported() -> None:
    picture = draw(rule_of("replay_jct_cdf"), table("replay_jct_cdf", "replay", replayed()[1]), 80, BLOCKS)
    assert picture is not None
    assert "Without a value: fifo 10.0 %." in picture.caption


def test_bars_are_as_long_as_their_values_and_leave_the_total_out() -> None:
    one, two = (declared("users", f"bars on=terminal x=user y={y} title=T")[0] for y in ("a_h", "a_h:held,b_h:lost"))
    frame = pl.DataFrame({"user": ["ann", "bob", "all"], "a_h": [10.0, 5.0, 15.0], "b_h": [0.0, None, 1.0]})
    lines = lines_of(one, frame, 60)
    assert lines is not None
    full, half = (line.count(PLAIN.full) for line in lines[1:])
    assert abs(full - 2 * half) <= 1 < full
    named = [line.split(PLAIN.edge)[0].split() for line in (lines_of(two, frame, 60) or ())[1:]]
    assert named == [
        ["ann,", "held", "10"],
        ["ann,", "lost", "0"],
        ["bob,", "held", "5"],
        ["bob,", "lost", UNKNOWN],
    ]
    assert lines_of(one, frame.with_columns(a_h=pl.lit(0.0)), 60) is None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.table}-{rule.kind}")
def test_there_is_no_picture_of_nothing_or_of_something_else(rule: Chart) -> None:
    whole = table_of(sample(), rule.table)
    frame = whole.frame
    assert draw(rule, replace(whole, frame=frame.clear()), 80, BLOCKS) is None
    assert draw(rule, replace(whole, frame=pl.DataFrame({"other": [1]})), 80, BLOCKS) is None
    texts = frame.with_columns(pl.all().cast(pl.String))
    assert draw(rule, replace(whole, frame=texts), 80, BLOCKS) is None
    nested = frame.with_columns(pl.concat_list(pl.lit(1)).alias(name) for name in frame.columns)
    assert draw(rule, replace(whole, frame=nested), 80, BLOCKS) is None
    empty = frame.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in frame.schema.items())
    assert draw(rule, replace(whole, frame=empty), 80, BLOCKS) is None
    one = draw(rule, replace(whole, frame=frame.head(1)), 80, BLOCKS)
    assert one is None or max(map(cell_len, one.lines)) <= 80


@settings(max_examples=40)
@given(data=st.data(), rule=st.sampled_from(RULES), width=st.integers(1, 220), signs=st.sampled_from([BLOCKS, PLAIN]))
def test_any_numbers_make_lines_that_fit(data: st.DataObject, rule: Chart, width: int, signs: Signs) -> None:
    whole = table_of(sample(), rule.table)
    rows = data.draw(st.integers(1, 6))
    value = st.one_of(st.none(), st.floats(), st.floats(0, 1e6))
    frame = pl.DataFrame(
        {
            name: data.draw(st.lists(_of_kind(dtype, value), min_size=rows, max_size=rows), label=name)
            for name, dtype in whole.frame.schema.items()
        },
        schema={name: pl.Float64 if dtype.is_numeric() else dtype for name, dtype in whole.frame.schema.items()},
    )
    picture = draw(rule, replace(whole, frame=frame), width, signs)
    assert picture is None or max(map(cell_len, picture.lines)) <= width


def _of_kind(dtype: pl.DataType, value: st.SearchStrategy[float | None]) -> st.SearchStrategy[object]:
    if dtype.is_numeric():
        return value
    if dtype.is_temporal():
        return st.one_of(st.none(), st.datetimes(timezones=st.just(UTC)))
    return st.one_of(st.none(), st.just("all"), st.text(max_size=30))


def test_a_detail_table_that_is_named_has_its_picture_itself() -> None:
    found = sample()
    assert list(of_analysis(found, ["occupancy"], 80, BLOCKS)) == ["occupancy"]
    assert list(of_analysis(found, ["occupancy", "overview"], 80, BLOCKS)) == ["overview"]
    assert of_analysis(found, ["metrics"], 80, BLOCKS) == {}


def test_results_side_by_side() -> None:
    parts = labelled([sample(), sample()])
    assert of_results(parts, ["standout"], 80, BLOCKS) == {}
    pictures = of_results(parts, ["metrics"], 100, BLOCKS)["metrics"]
    assert [picture.title for picture in pictures] == [
        "philly (1): GPUs in use and attempts waiting over time",
        "philly (1): GPUs in use over time, by policy",
        "philly (2): GPUs in use and attempts waiting over time",
        "philly (2): GPUs in use over time, by policy",
        "Waits by result",
        "Job completion times (JCT), by result",
    ]
    waits = "\n".join(pictures[4].lines)
    assert re.search(r"philly \(1\) +50\.0 %", waits)
    assert re.search(r"philly \(2\) +50\.0 %", waits)
    assert "From waits and replay_wait_cdf." in pictures[4].caption
    assert max(cell_len(line) for picture in pictures for line in picture.lines) <= 100
    alone = of_results(parts[:1], ["metrics"], 80, BLOCKS)["metrics"]
    assert alone[0].title == "GPUs in use and attempts waiting over time"


class Stream(io.TextIOWrapper):
    terminal = True

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("shape", "terminal", "pictured"),
    [(None, True, True), (None, False, False), (OutputFormat.TABLE, True, False), (OutputFormat.JSON, True, False)],
)
def test_only_what_a_terminal_gets_unasked_has_pictures(
    monkeypatch: pytest.MonkeyPatch, shape: OutputFormat | None, terminal: bool, pictured: bool
) -> None:
    with Stream(io.BytesIO(), encoding="utf-8") as out:
        out.terminal = terminal
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setenv("COLUMNS", "80")
        found = sample()
        print_result(found, shape, None, None, Settings(color=False))
        out.flush()
        text = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
        monkeypatch.undo()
    assert ("over time, by policy" in text) is pictured
    assert (BLOCKS.full in text) is pictured
    if shape is OutputFormat.JSON:
        json.loads(text)


def test_a_summary_has_the_pictures_of_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = labelled([sample()])
    with Stream(io.BytesIO(), encoding="utf-8") as out:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setenv("COLUMNS", "80")
        print_result(summarize(parts), None, None, None, Settings(color=False), painter=partial(of_results, parts))
        out.flush()
        text = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
        monkeypatch.undo()
    assert "Waits by result" in text


AT = datetime(2017, 10, 2, 7, tzinfo=UTC)


def tried(number: int, queued: float, start: float | None, end: float | None) -> Tried:
    """An attempt; hours after `AT`."""
    times = [AT + timedelta(hours=hours) if hours is not None else None for hours in (queued, start, end)]
    wait = Wait(times[0], ((start if start is not None else queued) - queued) * 3600)
    return Tried(
        number, "failed", None, None, 1.0, None, None, None, None, times[1], times[2], None, None, None, None, None,
        wait, (), None, None, (), (), (),
    )  # fmt: skip


def explained(*tries: Tried, never: Wait | None = None) -> Explanation:
    return Explanation("philly", "job-1", "job-1", {"state": "failed"}, tries, never)


def test_when_a_job_waited_and_ran() -> None:
    picture = attempts(explained(tried(0, 0, 4, 5), tried(1, 5, 7, 10)), 32, PLAIN)
    assert picture is not None
    assert picture.lines[:2] == (
        "attempt 0 |--------##          |",
        "attempt 1 |          ----######|",
    )
    assert picture.caption.startswith("- waiting, # running; 2017-10-02 07:00 UTC to 2017-10-02 17:00 UTC; each")


def test_a_wait_that_continues_is_drawn_and_a_job_that_just_ran_is_not() -> None:
    never = attempts(explained(never=Wait(AT, 7200.0, never_started=True)), 60, BLOCKS)
    assert never is not None
    assert re.fullmatch(r"no attempt │░+│", never.lines[0])
    assert attempts(explained(never=Wait(AT, None, never_started=True)), 60, BLOCKS) is None
    assert attempts(explained(tried(0, 0, 0, 5)), 60, BLOCKS) is None
    assert attempts(explained(), 60, BLOCKS) is None
    assert attempts(explained(tried(0, 0, None, None)), 60, BLOCKS) is None
    assert attempts(explained(tried(0, 0, 4, 5)), 20, BLOCKS) is None


@settings(max_examples=40)
@given(
    hours=st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e5)), max_size=20),
    width=st.integers(1, 220),
)
def test_attempts_fit(hours: list[tuple[float, float, float]], width: int) -> None:
    tries = [tried(i, a, a + b, a + b + c) for i, (a, b, c) in enumerate(hours)]
    picture = attempts(explained(*tries), width, BLOCKS)
    assert picture is None or max(map(cell_len, picture.lines)) <= width


@pytest.mark.parametrize(("encoding", "sign"), [("utf-8", "█"), ("ascii", "#")])
def test_an_explanation_shows_it_only_if_asked_to(encoding: str, sign: str) -> None:
    texts = []
    for pictures in (False, True):
        with io.TextIOWrapper(io.BytesIO(), encoding=encoding) as out:
            found = explained(tried(0, 0, 4, 5), tried(1, 5, 7, 10))
            print_explanation(found, console_width=60, color=False, file=out, pictures=pictures)
            out.flush()
            texts.append(out.buffer.getvalue().decode(encoding))  # type: ignore[attr-defined]
    assert sign not in texts[0]
    assert f"{sign} running" in texts[1]
    assert max(map(cell_len, texts[1].splitlines())) <= 60
