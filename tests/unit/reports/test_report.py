"""Several results as one report: labels, the baseline, checks, and what a CI shows of them."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.reports.ci import write_junit, write_markdown
from gpuctl.reports.conditions import parse
from gpuctl.reports.html import render_report
from gpuctl.reports.metrics import METRICS
from gpuctl.reports.report import (
    against_baseline,
    all_metrics,
    compared,
    earlier,
    failed,
    is_summary,
    labelled,
    summarize,
    verdict,
)
from gpuctl.reports.screens.report import screen
from tests.result_tables import table_of
from tests.unit.reports.fakes import HOSTILE, make_analysis, table

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import Analysis
    from gpuctl.reports.report import Part


def waits(name: str, p95_min: float | None, **queues: float) -> Analysis:
    """A result that tells 95th percentiles of waits."""
    all_sizes = pl.DataFrame({"size_bucket": ["all"], "waits": [9], "mean_min": [1.0], "p95_min": [p95_min]})
    of_queues = pl.DataFrame(
        {
            "queue": list(queues),
            "size_bucket": ["all"] * len(queues),
            "waits": [9] * len(queues),
            "p95_min": queues.values(),
        },
        schema={"queue": pl.String, "size_bucket": pl.String, "waits": pl.Int64, "p95_min": pl.Float64},
    )
    tables = (table("wait_by_size", "queueing", all_sizes), table("wait_by_queue", "queueing", of_queues))
    return replace(make_analysis(points=5), cluster=name, tables=tables)


def checked(summary: Analysis) -> list[tuple[str, str, float | None, float | None, bool]]:
    found = table_of(summary, "checks")
    return found.frame.select("result", "metric", "value", "limit", "failed").rows()


def test_results_of_one_name_are_numbered() -> None:
    parts = labelled([waits("a", 1), waits("b", 1), waits("a", 2), waits("metric", 1)])
    assert [part.label for part in parts] == ["a (1)", "b", "a (2)", "metric (1)"]


def test_kept_results_follow_the_names_that_they_were_kept_under(tmp_path: Path) -> None:
    parts = labelled([waits("a", 1), waits("a", 2), waits("a", 3)], [HOSTILE[0], None, "unit"])
    assert [part.label for part in parts] == [HOSTILE[0], "a", "unit (1)"]
    summary = summarize(parts)
    write_markdown(summary, tmp_path / "r.md")
    for text in (render_report(parts, summary), (tmp_path / "r.md").read_text()):
        assert HOSTILE[0] not in text
    assert "&lt;script&gt;alert(1)" in render_report(parts, summary)


def test_a_report_is_as_many_baselines_as_it_had_results() -> None:
    old = summarize(labelled([waits("a", 60.0, q=30.0), waits("b", 120.0)]))
    assert is_summary(old)
    assert not is_summary(waits("a", 60.0))
    assert [part.label for part in earlier([waits("c", 1.0), old])] == ["c", "a", "b"]
    new = summarize(labelled([waits("b", 240.0), waits("a", 60.0, q=60.0)]), baseline=earlier([old]))
    metrics = table_of(new, "metrics")
    changes = {(r["result"], r["metric"]): r["change_pct"] for r in metrics.frame.iter_rows(named=True)}
    assert against_baseline(summarize(labelled([waits("a", 60.0)]))) is None
    told = against_baseline(new)
    assert told is not None
    assert [c.name for c in told.columns][:4] == ["result", "metric", "value", "unit"]
    assert told.frame.height == sum(change is not None for change in changes.values())
    assert changes["b", "queueing.p95_wait_h"] == 100.0
    assert changes["a", "queueing.p95_wait_h"] == 0.0
    assert changes["a", "queueing.p95_wait_h{queue=q}"] == 100.0


def test_changes_are_not_taken_for_effects(tmp_path: Path) -> None:
    parts = labelled([waits("a", 240.0)])
    for before, is_told in ((60.0, True), (None, False)):
        old = None if before is None else earlier([summarize(labelled([waits("a", before)]))])
        summary = summarize(parts, baseline=old)
        write_markdown(summary, tmp_path / "r.md")
        shown = [str(block) for block in screen(parts, summary).blocks]
        for text in (" ".join(shown), render_report(parts, summary), (tmp_path / "r.md").read_text()):
            assert ("Periods also differ by chance" in text) == is_told


def test_a_result_without_metrics_needs_no_baseline() -> None:
    bare = replace(waits("bare", 1.0), tables=())
    old = earlier([summarize(labelled([waits("a", 60.0), waits("b", 60.0)]))])
    summarize(labelled([bare, waits("a", 60.0)]), baseline=old)
    with pytest.raises(UsageError, match="the baseline has no result named 'c'"):
        summarize(labelled([bare, waits("c", 60.0)]), baseline=old)


def test_conditions_are_held_against_the_results_that_have_the_metric() -> None:
    parts = labelled([waits("old", 60.0, q=30.0), waits("new", 240.0, q=600.0)])
    conditions = [parse(text) for text in (
        "queueing.p95_wait_h > 2", "queueing.p95_wait_h{queue=q} > 1", "queueing.p95_wait_h{result=old} > 0.5",
        "overview.occupancy_pct < 50",
    )]  # fmt: skip
    summary = summarize(parts, conditions)
    assert checked(summary) == [
        ("old", "queueing.p95_wait_h", 1.0, 2.0, False),
        ("new", "queueing.p95_wait_h", 4.0, 2.0, True),
        ("old", "queueing.p95_wait_h{queue=q}", 0.5, 1.0, False),
        ("new", "queueing.p95_wait_h{queue=q}", 10.0, 1.0, True),
        ("old", "queueing.p95_wait_h", 1.0, 0.5, True),
        ("old", "overview.occupancy_pct", None, 50.0, True),
    ]
    assert failed(summary) == [
        "new: queueing.p95_wait_h is 4 h; checked: queueing.p95_wait_h > 2",
        "new: queueing.p95_wait_h{queue=q} is 10 h; checked: queueing.p95_wait_h{queue=q} > 1",
        "old: queueing.p95_wait_h is 1 h; checked: queueing.p95_wait_h{result=old} > 0.5",
        "old: overview.occupancy_pct was not measured; checked: overview.occupancy_pct < 50",
    ]


def test_the_baseline_is_that_of_the_same_label_or_the_only_one() -> None:
    grown = [parse("queueing.p95_wait_h > baseline * 1.1")]
    both = labelled([waits("a", 60.0), waits("b", 60.0)])
    before = labelled([waits("b", 50.0), waits("a", 60.0)])
    assert [row[2:] for row in checked(summarize(both, grown, before))] == [
        (1.0, pytest.approx(1.1), False),
        (1.0, pytest.approx(55 / 60), True),
    ]
    other_name = labelled([waits("last week", 60.0)])
    assert failed(summarize(both[:1], grown, other_name)) == []
    with pytest.raises(UsageError, match="the baseline has no result named 'a'"):
        summarize(both, grown, labelled([waits("b", 50.0), waits("c", 60.0)]))
    with pytest.raises(UsageError, match="there is no result 'z'"):
        summarize(both, [parse("queueing.p95_wait_h{result=z} > 1")])


def test_what_the_baseline_lacks_has_failed() -> None:
    new = labelled([waits("a", 60.0, q=1.0)])
    summary = summarize(new, [parse("queueing.p95_wait_h{queue=q} > baseline")], labelled([waits("a", 60.0)]))
    assert failed(summary) == [
        "a: queueing.p95_wait_h{queue=q} is 0.0166667 h and has no baseline; "
        "checked: queueing.p95_wait_h{queue=q} > baseline"
    ]


def test_changes_against_the_baseline_are_reported() -> None:
    summary = summarize(labelled([waits("a", 90.0)]), (), labelled([waits("a", 60.0)]))
    metrics = table_of(summary, "metrics")
    row = metrics.frame.filter(pl.col("metric") == "queueing.p95_wait_h").to_dicts()[0]
    assert (row["value"], row["baseline"], row["change_pct"], row["better"]) == (1.5, 1.0, 50.0, "low")


def test_percentages_change_by_points(tmp_path: Path) -> None:
    def failed_of(share: float) -> Part:
        rows = pl.DataFrame({"size_bucket": ["all"], "failed_pct": [share], "retried_pct": [0.0]})
        made = replace(make_analysis(points=5), tables=(table("attempts_by_size", "failures", rows),), cluster="a")
        return labelled([made])[0]

    summary = summarize([failed_of(36.8)], baseline=[failed_of(45.7)])
    metrics = table_of(summary, "metrics")
    row = metrics.frame.filter(pl.col("metric") == "failures.failed_jobs_pct").to_dicts()[0]
    assert row["change"] == pytest.approx(-8.9)
    assert row["change_pct"] is None
    write_markdown(summary, tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text("utf-8")
    assert "| 45.7 % | 36.8 % | -8.9 points (low is better) |" in text
    assert "retried" not in text.partition("### What stands out")[0]


@pytest.mark.parametrize(("failing", "told"), [(0, "All 2 checks passed."), (1, "1 of 2 checks failed.")])
def test_the_verdict(failing: int, told: str) -> None:
    parts = labelled([waits("a", 60.0)])
    conditions = [parse(f"queueing.p95_wait_h > {limit}") for limit in (9, 0.5 if failing else 8)]
    assert verdict(summarize(parts, conditions)) == told
    assert verdict(summarize(parts)) == ""


def test_results_stand_side_by_side() -> None:
    parts = labelled([waits("a", 60.0), waits("b", 90.0, q=6.0)])
    found = compared(parts, summarize(parts))
    assert found is not None
    rows = {row[0]: row[1:6] for row in found.frame.iter_rows()}
    assert rows["queueing.p95_wait_h"] == ("h", 1.0, 1.5, 0.5, 50.0)
    assert rows["queueing.p95_wait_h{queue=q}"] == ("h", None, 0.1, None, None)
    assert [c.name for c in found.columns] == found.frame.columns


def test_metrics_are_documented_and_named_once() -> None:
    keys = [(metric.name, tuple(metric.labels)) for metric in METRICS]
    assert len(set(keys)) == len(keys)
    assert all(metric.unit and metric.text and not metric.text.endswith(".") for metric in METRICS)
    listed = all_metrics().tables[0].frame["metric"].to_list()
    assert "queueing.p95_wait_h{queue=...}" in listed
    assert len(listed) == len(METRICS)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str, tmp_path: Path) -> None:
    parts = labelled([waits(name, 60.0, **{name: 300.0}), waits("b", 60.0)])
    summary = summarize(parts, [parse("queueing.p95_wait_h{queue=*} > 2")])
    write_junit(summary, tmp_path / "checks.xml")
    root = ET.parse(tmp_path / "checks.xml").getroot()
    assert root.attrib == {"tests": "1", "failures": "1"}
    assert [case.tag for case in root.iter()] == ["testsuites", "testsuite", "testcase", "failure"]
    write_markdown(summary, tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {line.count("|") - line.count("\\|") for line in rows} == {7}
    assert not re.search(r"(?<!\\)<(script|img)", text)
    page = render_report(parts, summary)
    assert "<script>alert" not in page
    assert "<img" not in page


def test_ids_of_a_page_of_several_results_are_unique() -> None:
    parts = labelled([make_analysis(points=20), make_analysis(points=30), waits("w", 1.0)])
    page = render_report(parts, summarize(parts))
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets <= set(ids)
    assert page == render_report(parts, summarize(parts))


def test_markdown_tells_checks_changes_and_what_stands_out(tmp_path: Path) -> None:
    parts = labelled([waits("a", 90.0, x=20.0, y=40.0, z=90.0)])
    summary = summarize(parts, [parse("queueing.p95_wait_h > 1")], labelled([waits("a", 60.0)]), "gpuctl report a.json")
    write_markdown(summary, tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text("utf-8")
    assert "**The check failed.**" in text
    assert "| failed | a | queueing.p95\\_wait\\_h | 1.5 h | 1 h | queueing.p95\\_wait\\_h \\> 1 |" in text
    assert "| a | queueing.p95\\_wait\\_h | 1 h | 1.5 h | +50.0 % (low is better) |" in text


def test_labels_are_never_two_of_one_name() -> None:
    names = [part.label for part in labelled([waits(name, 1.0) for name in ("x", "x", "x (1)", "unit")])]
    assert names == ["x (2)", "x (3)", "x (1)", "unit (1)"]


def test_baselines_of_one_name_are_refused() -> None:
    old = [summarize(labelled([waits("a", p95)])) for p95 in (60.0, 600.0)]
    with pytest.raises(UsageError, match="several baselines have a result named 'a'"):
        earlier(old)


def test_a_baseline_that_is_no_number_has_no_value() -> None:
    old = summarize(labelled([waits("a", 60.0)]))
    metrics = table_of(old, "metrics")
    broken = replace(metrics, frame=metrics.frame.with_columns(value=pl.lit(math.inf)))
    condition = parse("queueing.p95_wait_h > baseline * 0.1")
    summary = summarize(labelled([waits("a", 60.0)]), [condition], earlier([replace(old, tables=(broken,))]))
    assert failed(summary) == [
        "a: queueing.p95_wait_h is 1 h and has no baseline; checked: queueing.p95_wait_h > baseline * 0.1"
    ]


def test_a_queue_that_was_not_measured_has_failed() -> None:
    parts = labelled([waits("a", 60.0, p=6.0), waits("b", 60.0)])
    bare = waits("a", 60.0, p=6.0)
    of_queues = table_of(bare, "wait_by_queue")
    hole = of_queues.frame.with_columns(queue=pl.lit("q"), p95_min=pl.lit(None, pl.Float64))
    tables = (*bare.tables[:1], replace(of_queues, frame=pl.concat([of_queues.frame, hole])))
    parts = labelled([replace(bare, tables=tables), waits("b", 60.0)])
    told = failed(summarize(parts, [parse("queueing.p95_wait_h{queue=*} > 1")]))
    assert told == ["a: queueing.p95_wait_h{queue=q} was not measured; checked: queueing.p95_wait_h{queue=*} > 1"]


def test_what_was_nothing_before_is_among_the_changes(tmp_path: Path) -> None:
    queues = {f"q{k}": 60.0 + k for k in range(40)}
    new = waits("a", 90.0, **queues)
    old = earlier([waits("a", 0.0, **dict.fromkeys(queues, 30.0))])
    write_markdown(summarize(labelled([new]), baseline=old), tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text("utf-8")
    changes = [line for line in text.splitlines() if "| a | queueing" in line]
    assert changes[0].endswith("| 0 h | 1.5 h | +1.5 h (low is better) |")
    assert len(changes) == 25
    assert "\n16 smaller changes are on the page.\n" in text
