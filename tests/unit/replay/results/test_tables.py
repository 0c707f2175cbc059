from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.errors import UsageError
from gpuctl.core.results import Analysis
from gpuctl.replay.engine.state import ENDS
from gpuctl.replay.results import columns, tables
from gpuctl.replay.results.tables import CDF_POINTS, LISTED, cdf_points, result
from gpuctl.reports.export.files import write_tables
from gpuctl.reports.html import render_html
from gpuctl.reports.terminal.printer import print_analysis
from tests.result_tables import table_of
from tests.unit.replay.outcomes import (
    decided,
    make_cluster,
    make_outcome,
    make_workload,
    random_outcome,
    random_workload,
)
from tests.unit.replay.results.test_metrics import FIFO, FOUR, SRTF, TWO


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    workload = random_workload(900, seed=5)
    outcomes = [random_outcome(workload, seed=i, policy=p, nodes=70) for i, p in enumerate(("fifo", "srtf", "las"))]
    return result(
        [replace(outcome, by_traits=True) for outcome in outcomes],
        workload,
        make_cluster(70, 8),
        against_recorded=True,
        command="gpuctl replay x",
        version="1",
        warmup=0.1,
    )


def test_every_table_is_there_and_every_column_documented(analysis: Analysis) -> None:
    # random attempts have no loans, moves, packs, deadlines and failures, and nothing was changed in these replays
    missing = {"replay_changes", "replay_deadlines", "replay_failures", "replay_gpus", "replay_vs_unchanged"}
    assert {t.name for t in analysis.tables} == set(columns._TABLES) - missing
    for t in analysis.tables:
        assert [c.name for c in t.columns] == t.frame.columns, t.name
        assert t.question.endswith("?")
        assert t.population.endswith(".")
        for column in t.columns:
            assert column.description.endswith("."), column
        assert {t.section} <= {key for key, _ in analysis.sections}


def test_a_share_above_the_nodes_gpus_is_withheld_and_a_note_reports_it() -> None:
    made = result([FIFO, SRTF], TWO, make_cluster(1, 2))
    table = table_of(made, "replay_summary")
    assert table.frame.select("utilization_pct", "goodput_pct").rows() == [(None, None)] * 2
    assert [n for n in table.notes if "withheld" in n] == [
        "more GPU-hours were held than the nodes that were up had under fifo, srtf: utilization and goodput are "
        "withheld, as a share above 100 % contradicts itself"
    ]
    assert table_of(made, "replay_heatmap").frame["busy_pct"].drop_nulls().le(100).all()
    assert render_html(made)
    assert not [n for n in table_of(result([FIFO], TWO, FOUR), "replay_summary").notes if "withheld" in n]


def test_some_tables_alone_are_those_of_the_whole_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = result([FIFO, SRTF], TWO, FOUR, against_recorded=True)
    for name in tables._MAKERS:
        if name != "replay_timeline":
            monkeypatch.setitem(tables._MAKERS, name, None)  # whoever makes it fails
    some = result([FIFO, SRTF], TWO, FOUR, against_recorded=True, tables=("replay_timeline",))
    assert [each.name for each in some.tables] == ["replay_timeline"]
    assert replace(some, tables=()) == replace(whole, tables=())
    assert table_of(some, "replay_timeline").frame.equals(table_of(whole, "replay_timeline").frame)


def test_units_are_those_of_the_names(analysis: Analysis) -> None:
    endings = {"_s": "s", "_pct": "%", "_gpu_h": "GPU-h", "_gpu_s": "GPU-s"}
    for t in analysis.tables:
        for column in t.columns:
            ending = next((unit for end, unit in endings.items() if column.name.endswith(end)), None)
            assert ending is None or column.unit in {ending, "GPU-s"}, column
            if column.name.startswith("jobs") and not column.name.endswith("_h"):
                assert column.unit == "jobs", column


def test_two_jobs_on_paper() -> None:
    found = result([FIFO, SRTF], TWO, FOUR, baseline="srtf", command="c", version="v")
    assert table_of(found, "replay_summary").frame["jct_mean_s"].to_list() == [120, 100]
    against = table_of(found, "replay_vs_baseline").frame
    assert set(against["policy"]) == {"fifo"}
    assert against.filter(pl.col("measure") == "jct")["diff_mean_s"].to_list() == [20, 20]
    assert table_of(found, "replay_preemptions").frame["of_2_to_4_gpus"].to_list() == [0, 1]
    assert table_of(found, "replay_jct_cdf").frame.rows() == [
        ("fifo", 100 / 60, 50.0), ("fifo", 140 / 60, 100.0), ("srtf", 50 / 60, 50.0), ("srtf", 150 / 60, 100.0),
    ]  # fmt: skip
    assert table_of(found, "replay_unfinished").frame.height == 0
    assert found.table("replay_fidelity") is None
    assert table_of(found, "replay_timeline").frame["ts"].null_count() == 1000


def test_every_way_to_lose_gpus_has_a_column() -> None:
    ways = [end for end in ENDS if end not in {"running", "finished", "preempted", "time_limit"}]
    for way in ways:
        lost = replace(FIFO, attempts=FIFO.attempts.with_columns(end=pl.lit(way, pl.Enum(ENDS))))
        row = table_of(result([lost], TWO, FOUR), "replay_preemptions").frame.row(0, named=True)
        assert {name: row[name] for name in ways} == {name: lost.attempts.height * (name == way) for name in ways}


def test_the_names_that_stay() -> None:
    jobs = table_of(result([FIFO], TWO, FOUR), "replay_jobs").frame
    assert jobs.columns[:9] == [
        "policy", "job", "submit_s", "start_s", "end_s", "gpus", "wait_s", "jct_s", "preemptions",
    ]  # fmt: skip
    assert result([FIFO], TWO, FOUR).table("replay_vs_baseline") is None


def test_policies_with_true_run_times_are_reported() -> None:
    found = result([FIFO, SRTF], TWO, FOUR)
    assert found.settings["told true run times"] == "srtf"
    assert any("srtf" in w and "true run times" in w for w in found.warnings)
    assert found.settings["placement"] == "any"
    assert found.settings["baseline"] == "fifo"
    assert result([FIFO], TWO, FOUR).settings["told true run times"] == "none of the policies"


def test_settings_that_differ_are_told_apart() -> None:
    other = replace(SRTF, settings={**SRTF.settings, "placement": "spread"})
    settings = result([FIFO, other], TWO, FOUR).settings
    assert (settings["placement"], settings["placement (srtf)"]) == ("any", "spread")


def test_one_policy_twice_keeps_two_names() -> None:
    twice = [replace(FIFO, params={"strict": True}), replace(FIFO, params={"strict": False}), FIFO, FIFO]
    names = table_of(result(twice, TWO, FOUR), "replay_summary").frame["policy"].to_list()
    assert names == ["fifo (strict=True)", "fifo (strict=False)", "fifo", "fifo #2"]


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no policy 'las'.*fifo, srtf"):
        result([FIFO, SRTF], TWO, FOUR, baseline="las")


def test_jobs_that_did_not_finish_are_listed_with_the_last_reason() -> None:
    workload = make_workload([0, 0, 0], [10, 10, 10], [1, 99, 1])
    outcome = make_outcome(workload, [[(0, 10, "finished")], [], []], states={1: "unplaceable"}, end_s=12)
    log = [
        (0.0, "start", "j0", 1, 1, "fits"), (0.0, "reserve", "j2", 1, 0, "first"),
        (5.0, "reserve", "j2", 1, 0, "quota"),
        (0.0, "reject", "j1", 99, 0, "larger than the cluster"),
    ]  # fmt: skip
    outcome = replace(outcome, log=decided(log, ["j0", "j1", "j2"]))
    found = result([outcome], workload, FOUR)
    rows = table_of(found, "replay_unfinished").frame.select("job", "state", "wait_s", "reason").rows()
    assert rows == [("j1", "unplaceable", 12.0, "larger than the cluster"), ("j2", "waiting", 12.0, "quota")]
    assert any("fifo 2" in w for w in found.warnings)
    # of the two that could be placed, one finished
    assert table_of(found, "replay_jct_cdf").frame["cdf_pct"].to_list() == [50]
    assert "fifo 1 of 2" in table_of(found, "replay_jct_cdf").population


def test_a_long_list_is_exported_not_printed(analysis: Analysis) -> None:
    unfinished = table_of(analysis, "replay_unfinished")
    assert unfinished.frame.height > LISTED
    assert unfinished.detail
    assert "exported but not printed" in unfinished.notes[0]


def test_no_recorded_starts_are_reported() -> None:
    found = result([FIFO], TWO, FOUR, against_recorded=True)
    assert any("no recorded starts" in w for w in found.warnings)
    assert table_of(found, "replay_fidelity").frame["pairs"].sum() == 0


def test_populations_name_the_warm_up(analysis: Analysis) -> None:
    assert "the first 90 by submission (warm-up, 10%)" in table_of(analysis, "replay_summary").population
    assert table_of(analysis, "replay_jobs").frame.height == 3 * 900
    for policy in table_of(analysis, "replay_summary").frame.to_dicts():
        assert (policy["jobs_warmup"], policy["jobs"]) == (90, 810)


def test_curves_over_time_are_on_the_calendar_and_on_common_bins(analysis: Analysis) -> None:
    frame = table_of(analysis, "replay_timeline").frame
    assert frame.height == 1500
    assert frame["ts"].null_count() == 0
    starts = [frame.filter(pl.col("policy") == p)["t_s"].to_list() for p in ("fifo", "srtf", "las")]
    assert starts[0] == starts[1] == starts[2]
    held = table_of(analysis, "replay_jobs").frame.group_by("policy", maintain_order=True).agg(pl.col("gpu_s").sum())
    width = pl.col("t_end_s") - pl.col("t_s")
    busy = frame.group_by("policy", maintain_order=True).agg((pl.col("gpus_busy") * width).sum())
    assert busy["gpus_busy"].to_list() == pytest.approx(held["gpu_s"].to_list())
    heat = table_of(analysis, "replay_heatmap").frame
    assert heat.height == 3 * 64 * 100
    assert heat["nodes"].null_count() == 0


def test_every_form_of_output_takes_it(analysis: Analysis) -> None:
    out = io.BytesIO()
    write_tables(analysis, "json", out)
    assert set(json.loads(out.getvalue())["tables"]) >= {"replay_summary", "replay_fidelity"}
    text = io.StringIO()
    print_analysis(analysis, console_width=100, color=False, file=text)
    assert "Policies compared" in text.getvalue()
    assert "Mean JCT" in render_html(analysis)


def test_the_same_outcomes_give_the_same_tables() -> None:
    workload = random_workload(120, seed=6)
    outcomes = [random_outcome(workload, seed=i, policy=str(i)) for i in range(2)]
    one, two = (result(outcomes, workload, make_cluster(4, 8), against_recorded=True) for _ in range(2))
    for a, b in zip(one.tables, two.tables, strict=True):
        assert a.frame.equals(b.frame), a.name


def test_no_jobs_at_all() -> None:
    workload = make_workload([], [], [])
    found = result([make_outcome(workload, [], end_s=0.0)], workload, FOUR, against_recorded=True)
    assert table_of(found, "replay_summary").frame["jobs"].to_list() == [0]
    assert render_html(found)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e7), st.sampled_from([0.0, 60.0])), max_size=700), st.integers(0, 5))
def test_points_of_a_distribution_are_exact_and_rise(values: list[float | None], more: int) -> None:
    known = np.array([v for v in values if v is not None])
    points = cdf_points(pl.Series(values, dtype=pl.Float64), len(values) + more)
    assert points.height <= CDF_POINTS
    assert points["minutes"].is_sorted()
    assert (np.diff(points["cdf_pct"].to_numpy()) > 0).all()
    for minutes, share in points.iter_rows():
        assert share == pytest.approx(100 * (known / 60 <= minutes).sum() / (len(values) + more))
    if known.size:
        assert points["minutes"][-1] == known.max() / 60


def test_a_terminal_shows_the_first_columns_and_counts_the_rest(analysis: Analysis) -> None:
    short, named = io.StringIO(), io.StringIO()
    print_analysis(analysis, console_width=200, color=False, file=short)
    print_analysis(analysis, console_width=200, color=False, file=named, names=["replay_summary"])
    hidden = len(columns.columns("replay_summary")) - 15
    assert f"{hidden} more columns: --table replay_summary" in short.getvalue()
    assert "instants" not in short.getvalue()
    assert "instants" in named.getvalue()
    assert "more columns" not in named.getvalue()


def test_a_note_of_several_policies_is_reported_once() -> None:
    told = [replace(FIFO, notes=("both", "mine")), replace(SRTF, notes=("both",))]
    notes = table_of(result(told, TWO, FOUR, command="c", version="v"), "replay_summary").notes
    assert [note for note in notes if note.endswith(("both", "mine"))] == ["fifo, srtf: both", "fifo: mine"]
