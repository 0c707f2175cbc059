"""Conditions of ``gpuctl report --fail-if``."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.errors import UsageError
from gpuctl.reports.conditions import check, parse
from gpuctl.reports.metrics import METRICS, Value, written

WAIT, OF_QUEUE = (metric for metric in METRICS if metric.name == "queueing.p95_wait_h")
MEASURED = (
    Value(WAIT, (), 2.5),
    Value(OF_QUEUE, (("queue", "research"),), 3.0),
    Value(OF_QUEUE, (("queue", "a b"),), 1.0),
    Value(OF_QUEUE, (("queue", "none"),), None),
)


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("queueing.p95_wait_h > 2", [True]),
        ("queueing.p95_wait_h>2.5", [False]),
        ("queueing.p95_wait_h >= 2.5", [True]),
        ("queueing.p95_wait_h < 1e1", [True]),
        ("queueing.p95_wait_h == 2.5", [True]),
        ("queueing.p95_wait_h != 2.5", [False]),
        ("queueing.p95_wait_h{queue=research} > 2.9", [True]),
        ('queueing.p95_wait_h{queue="a b"} > 2', [False]),
        ("queueing.p95_wait_h{queue=*} > 2", [True, False, True]),
        ("queueing.p95_wait_h{queue=nobody} > 2", [True]),
        ("queueing.p95_wait_h > baseline", [True]),
        ("queueing.p95_wait_h > baseline * 1.3", [False]),
        ("queueing.p95_wait_h > baseline + 0.4", [True]),
        ("queueing.p95_wait_h < baseline - 0.1", [False]),
        ("queueing.p95_wait_h{queue=research} > baseline", [True]),
        ("queueing.mean_wait_h > 5", [True]),
    ],
)
def test_conditions(text: str, failed: list[bool]) -> None:
    """What was not measured, or has no baseline, has failed."""
    found = check(parse(text), "site", MEASURED, {"queueing.p95_wait_h": 2.0})
    assert [one.failed for one in found] == failed


def test_a_metric_that_has_only_labels_means_all_of_them() -> None:
    metric = next(m for m in METRICS if m.name == "replay.mean_wait_h")
    measured = [Value(metric, (("policy", name),), wait) for name, wait in (("fifo", 3.0), ("srtf", 1.0))]
    found = check(parse("replay.mean_wait_h > 2"), "r", measured, None)
    assert [(one.key, one.failed) for one in found] == [
        ("replay.mean_wait_h{policy=fifo}", True),
        ("replay.mean_wait_h{policy=srtf}", False),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a condition"),
        ("queueing.p95_wait_h", "not a condition"),
        ("queueing.p95_wait_h > ", "not a condition"),
        ("queueing.p95_wait_h > 1 2", "not a condition"),
        ("queueing.p95_wait_h > 1e", "is not a finite number"),
        ("queueing.p95_wait_h > __import__('os')", "not a condition"),
        ("queueing.p95_wait > 2", "there is no metric queueing.p95_wait"),
        ("queueing.p95_wait_h{user=x} > 2", "has no label user"),
        ("overview.jobs{queue=x} > 2", "has no label queue"),
        ("queueing.p95_wait_h{queue} > 2", "labels are not NAME=VALUE pairs"),
        ("queueing.p95_wait_h{queue=a,queue=b} > 2", "labels are not NAME=VALUE pairs"),
    ],
)
def test_an_invalid_condition_is_reported(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(text)


def test_a_near_name_is_offered() -> None:
    with pytest.raises(UsageError) as told:
        parse("queueing.p95_wait > 2")
    assert "queueing.p95_wait_h" in str(told.value.hint)


def test_a_baseline_has_to_be_there() -> None:
    with pytest.raises(UsageError, match="there is no baseline"):
        check(parse("queueing.p95_wait_h > baseline"), "site", MEASURED, None)


@given(name=st.text(max_size=20).filter(lambda text: text != "*"))
def test_a_key_can_be_requested_as_written(name: str) -> None:
    value = replace(MEASURED[1], labels=(("queue", name),))
    [found] = check(parse(f"{value.key} > 2"), "site", [*MEASURED, value], None)[:1]
    assert found.key == written("queueing.p95_wait_h", value.labels)
    assert found.value in {3.0, 1.0, None}


def test_a_total_is_meant_only_where_it_is_named() -> None:
    metric = next(m for m in METRICS if m.name == "failures.category_gpu_time_pct")
    measured = [Value(metric, (("category", name),), share) for name, share in (("user", 40.0), ("all", 100.0))]
    for text in ("failures.category_gpu_time_pct > 50", "failures.category_gpu_time_pct{category=*} > 50"):
        assert [one.failed for one in check(parse(text), "r", measured, None)] == [False]
    [one] = check(parse("failures.category_gpu_time_pct{category=all} > 50"), "r", measured, None)
    assert one.failed


@pytest.mark.parametrize("limit", ["1e999", "-1e999", "baseline * 1e999", "1e"])
def test_limits_are_finite(limit: str) -> None:
    with pytest.raises(UsageError, match="finite number"):
        parse(f"queueing.p95_wait_h > {limit}")


def test_a_limit_beyond_all_numbers_is_none() -> None:
    [one] = check(parse("queueing.p95_wait_h > baseline * 1e300"), "r", MEASURED, {"queueing.p95_wait_h": 1e300})
    assert one.failed
    assert one.limit is None


def test_an_argument_that_is_no_utf8() -> None:
    assert parse('queueing.p95_wait_h{queue="\udcff"} > 1').labels == {"queue": "udcff"}
