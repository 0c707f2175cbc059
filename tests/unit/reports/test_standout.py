"""What stands out in a result, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from gpuctl.core.results import Analysis
from gpuctl.reports.standout import Finding, findings
from gpuctl.reports.summary import headlines
from tests.unit.reports.fakes import make_analysis, table

Rows = list[dict[str, Any]]


def found(name: str, rows: Rows, **more: Rows) -> list[Finding]:
    tables = {name: rows} | more
    made = tuple(table(key, "s", pl.DataFrame(each)) for key, each in tables.items())
    return list(findings(replace(make_analysis(points=5), tables=made)))


def like(p: float = 0.001, *, queue: str = "q2", size: str = "all") -> dict[str, Rows]:
    row = {"queue": queue, "size_bucket": size, "ratio": 4.0, "ratio_low": 2.0, "ratio_high": 8.0, "p": p}
    return {"wait_like_for_like": [row]}


LARGE = {name: like(queue="all", size=name)["wait_like_for_like"][0] for name in (">8", "5-8", "2-4")}
WAITS = {"wait_like_for_like": [*like()["wait_like_for_like"], *LARGE.values()]}


def causes(**hours: float) -> Rows:
    names = ("fair_share", "capacity", "fragmentation", "scheduler", "ineligible")
    parts = {f"{name}_h": hours.get(name, 0.0) for name in names}
    total, main = sum(parts.values()), max(names, key=lambda name: parts[f"{name}_h"])
    share = 100 * parts[f"{main}_h"] / total if total else None
    ends = {"main_cause": main if total else None, "main_low_pct": share, "main_high_pct": share}
    return [{"size_bucket": "all", "waits": 50, "wait_h": total, **parts, **ends}]


def test_the_main_cause_of_waits_is_reported() -> None:
    [one] = found("delay_by_size", causes(fragmentation=60.0, capacity=30.0, scheduler=10.0))
    assert (
        one.text
        == "60.0\xa0% of the queueing time (60 of 100\xa0h) passed because GPUs were free, but not close together."
    )
    assert one.table == "delay_by_size"
    assert found("delay_by_size", causes(fragmentation=39.0, capacity=31.0, scheduler=30.0)) == []
    assert found("delay_by_size", causes()) == []
    [row] = causes(fragmentation=60.0, capacity=40.0)
    assert found("delay_by_size", [row | {"main_cause": None, "main_low_pct": None, "main_high_pct": None}]) == []


def ranged(**shares: tuple[float, float, float]) -> Rows:
    rows = [
        {"cause": cause, "waits": 25, "hours": share, "share_pct": share, "low_pct": low, "high_pct": high}
        for cause, (low, share, high) in shares.items()
    ]
    return [
        *rows,
        {"cause": "all", "waits": 50, "hours": 100.0, "share_pct": 100.0, "low_pct": 100.0, "high_pct": 100.0},
    ]


def test_the_main_cause_is_reported_as_the_range_that_it_is_known_to() -> None:
    [one] = found("delay_causes", ranged(fair_share=(41.2, 45.0, 47.6), capacity=(30.0, 33.0, 40.0)))
    assert one.text.startswith("41 to 48\xa0% of the queueing time (45 of 100\xa0h) passed because the queue")
    [one] = found("delay_causes", ranged(capacity=(60.1, 60.2, 60.3), fair_share=(39.0, 39.5, 39.9)))
    assert one.text.startswith("60.2\xa0% of the queueing time")


def test_no_cause_is_reported_if_the_ranges_overlap() -> None:
    assert found("delay_causes", ranged(fair_share=(41.0, 45.0, 60.0), capacity=(20.0, 33.0, 41.0))) == []
    assert found("delay_causes", ranged(fair_share=(0.0, 45.0, 60.0), capacity=(0.0, 33.0, 61.0))) == []
    both = ranged(fair_share=(45.0, 45.0, 48.0), capacity=(40.0, 33.0, 44.0))
    assert [one.text[:8] for one in found("delay_causes", both)] == ["45 to 48"]


def queues(*p95: float | None, waits: int = 30) -> Rows:
    return [
        {"queue": f"q{k}", "size_bucket": "all", "waits": waits, "p95_min": minutes} for k, minutes in enumerate(p95)
    ]


def test_the_queue_that_waits_longest_is_reported() -> None:
    [one] = found("wait_by_queue", queues(10.0, 30.0, 200.0), **WAITS)
    assert one.text == (
        "Queue q2 waits longest: 95\xa0% of its attempts start within 200\xa0min, against 30\xa0min in the median "
        "queue. Its mean is 4 times (2 to 8) the mean for the same sizes on the same days in other queues."
    )
    for rows in (
        queues(10.0, 30.0, 59.0), queues(1.0, 2.0, 29.0), queues(10.0, 200.0), queues(10.0, 30.0, 200.0, waits=19),
        queues(10.0, None, 200.0),
    ):  # fmt: skip
        assert found("wait_by_queue", rows, **WAITS) == []


def test_waits_that_sizes_days_queues_or_chance_explain_are_not_reported() -> None:
    rows = queues(10.0, 30.0, 200.0)
    assert found("wait_by_queue", rows) == []
    assert found("wait_by_queue", rows, **like(0.03)) == []
    three = [row for name in ("q0", "q1", "q2") for row in like(0.01, queue=name)["wait_like_for_like"]]
    assert found("wait_by_queue", rows, wait_like_for_like=three) == []
    assert found("wait_by_size", gangs(300.0, 6.0)) == []
    assert found("wait_by_size", gangs(300.0, 6.0), **like(0.03, queue="all", size=">8")) == []


def test_scattered_jobs_that_use_their_gpus_less_are_reported_once() -> None:
    rows = [
        {"gpus": gpus, "nodes": nodes, "gpu_minutes": minutes, "mean_pct": pct}
        for gpus, nodes, minutes, pct in [
            (8, 1, 5000, 60.0),
            (8, 2, 5000, 52.0),
            (8, 4, 5000, 45.0),
            (8, 8, 999, 1.0),
        ]
    ]
    [one] = found("gpu_util_by_nodes", rows)
    assert one.text == (
        "Jobs of 8 GPUs: 45.0\xa0% GPU utilization on 4 nodes, 60.0\xa0% on 1: a difference, not an effect "
        "(see gpuctl lessons)."
    )
    assert found("gpu_util_by_nodes", rows[1:2]) == []


def speed(low: float | None, high: float | None) -> Rows:
    row = {"size_bucket": "all", "placement": "more nodes", "ratio": 0.8, "ratio_low": low, "ratio_high": high}
    return [row, row | {"size_bucket": "2-4"}]


def test_the_cost_of_spreading_compares_similar_jobs_with_an_interval() -> None:
    [one] = found("locality_speed", speed(0.7, 0.9))
    assert one.text == (
        "Gangs on more nodes reach 0.8 of the GPU utilization of comparable gangs on the fewest nodes "
        "(90\xa0% interval 0.7 to 0.9)."
    )
    assert found("locality_speed", speed(0.7, 1.0)) == []


def compared(*intervals: tuple[str, float, float, float]) -> Rows:
    return [
        {
            "policy": policy, "measure": "wait", "size_bucket": "all", "baseline": "fifo", "mean_s": 7200.0 + mean,
            "baseline_mean_s": 7200.0, "diff_mean_s": mean, "diff_low_s": low, "diff_high_s": high,
            "p": 0.5 if low <= 0 <= high else 0.001,
        }
        for policy, low, mean, high in intervals
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (compared(("las", -3600, -1800, -900)), ["Better than fifo by mean wait: las by 30\xa0min (15 to 60\xa0min)."]),
        (
            compared(("las", 900, 1800, 3600)),
            [
                "las lengthens the mean wait by 30\xa0min (95\xa0% interval 15 to 60\xa0min), from 120 under fifo "
                "to 150\xa0min."
            ],
        ),
        (
            compared(("b", -99, -50, -1), ("a", -3600, -1800, -900), ("c", 1, 50, 99), ("d", 1, 60, 99)),
            ["Better than fifo by mean wait: a by 30", "d lengthens the mean wait by 1\xa0min"],
        ),
        (
            compared(("las", -900, -450, 0), ("sjf", 0, 450, 900)),
            [
                "No policy's mean wait differs significantly from fifo's; "
                "the 95\xa0% intervals range from -15 to 15\xa0min."
            ],
        ),
        (
            [row | {"p": 0.04} for row in compared(("las", 60, 1800, 3600))],
            [
                "No policy's mean wait differs significantly from fifo's; the 95\xa0% intervals range from 1 to "
                "60\xa0min."
            ],
        ),
        (
            [row | {"mean_s": 0.0, "baseline_mean_s": 0.0, "p": None} for row in compared(("las", 0, 0, 0))],
            ["No job waits under any of these policies, so these jobs cannot show which is better."],
        ),
        (
            [row | {"p": None} for row in compared(("las", 0, 0, 0))],
            ["Every job waits equally long under all of these policies and fifo."],
        ),
    ],
)
def test_policies_are_compared_by_their_intervals(rows: Rows, told: list[str]) -> None:
    texts = [one.text for one in found("replay_vs_baseline", rows)]
    assert len(texts) == len(told)
    assert all(text.startswith(start) for text, start in zip(texts, told, strict=True))


def test_every_better_policy_is_named_and_the_best_that_can_be_used_is_first() -> None:
    rows = compared(
        ("srtf", -5400, -4500, -3600), ("las", -5400, -4400, -900), ("easy", -5400, -3600, -1800),
        ("sjf", -99, -50, -1), ("fair", -99, -50, 1),
    )  # fmt: skip
    summary = [
        {"policy": "srtf", "oracle": True, "preemptions": 128},
        {"policy": "las", "oracle": False, "preemptions": 1},
        {"policy": "easy", "oracle": False, "preemptions": 0},
        {"policy": "sjf", "oracle": True, "preemptions": 0},
        {"policy": "fair", "oracle": False, "preemptions": 0},
    ]
    tables = (table("replay_vs_baseline", "s", pl.DataFrame(rows)), table("replay_summary", "s", pl.DataFrame(summary)))
    first, others, bounds = findings(replace(make_analysis(points=5), tables=tables))
    assert first.text == (
        "easy cuts the mean wait by 60\xa0min (95\xa0% interval 30 to 90\xa0min), from 120 under fifo to 60\xa0min; "
        "it needs no oracle and preempted no job."
    )
    assert others.text == "Also better than fifo by mean wait: las by 73.3\xa0min (15 to 90\xa0min, 1 preemption)."
    assert bounds.text == (
        "Oracles, which know true run times, unlike real schedulers: srtf, sjf. Their results are bounds. They "
        "bound the possible reduction of the mean wait:"
        " srtf by 75\xa0min (60 to 90\xa0min, oracle, 128 preemptions); "
        "sjf by 0.833\xa0min (0.017 to 1.65\xa0min, oracle)."
    )


def test_chance_differences_of_many_policies_are_not_reported() -> None:
    some = [row | {"p": 0.01} for row in compared(("a", -90, -50, -10))]
    assert found("replay_vs_baseline", some)[0].text.startswith("Better than fifo")
    more = [row | {"p": 0.01} for row in compared(("a", -90, -50, -10), ("b", -9, 0, 9), ("c", -9, 0, 9))]
    assert found("replay_vs_baseline", more)[0].text.startswith("No policy's mean wait differs significantly")


def test_jobs_without_an_end_and_true_run_times_are_reported() -> None:
    rows = [
        {"policy": "srtf", "oracle": True, "preemptions": 0, "jobs": 10, "jobs_finished": 10},
        {"policy": "fifo", "oracle": False, "preemptions": 0, "jobs": 10, "jobs_finished": 7},
    ]
    first, second = found("replay_summary", rows)
    assert first.text == "Jobs that did not finish, excluded from every mean: fifo 3."
    assert second.text.startswith("Oracles, which know true run times, unlike real schedulers: srtf.")


def test_rejected_rows_are_reported_with_why() -> None:
    rows = [{"rows_in": 1000, "rows_rejected": 2, "most_rejected_for": "cut <b>off"}]
    [one] = found("sources", rows)
    assert one.text == "2 of 1,000 rows of the sources were rejected (0.2\xa0%), most for: cut <b>off."
    assert found("sources", [{"rows_in": 3000, "rows_rejected": 2, "most_rejected_for": "x"}]) == []


def reason(**changes: Any) -> Rows:
    row = {"reason": "oom", "trials": 5, "users": 2, "rtf_p50_min": 90.0, "gpu_minutes_pct": 15.0}
    return [row | changes, row | {"reason": "all", "gpu_minutes_pct": 100.0}]


def gangs(large: float, small: float, waits: int = 20, bucket: str = ">8") -> Rows:
    return [
        {"size_bucket": "1", "waits": 20, "mean_min": small},
        {"size_bucket": bucket, "waits": waits, "mean_min": large},
    ]


def spread(drop: float, minutes: int = 1000) -> Rows:
    return [
        {"gpus": 8, "nodes": nodes, "gpu_minutes": minutes, "mean_pct": pct}
        for nodes, pct in ((1, 60.0), (2, 60.0 - drop))
    ]


def lost(pct: float) -> Rows:
    parts = {"killed_h": 50.0, "failed_h": 100.0, "retried_h": 0.0}
    return [{"size_bucket": "all", "gpu_hours": 1000.0, "lost_pct": pct, **parts}]


def converged(pct: float, jobs: int = 20) -> Rows:
    return [{"state": "all", "jobs_timed": jobs, "after_gpu_hours_pct": pct}]


def few_waits(rows: Rows, waits: int) -> Rows:
    return [row | {"waits": waits} for row in rows]


@pytest.mark.parametrize(
    ("name", "at", "below"),
    [
        ("delay_causes", ranged(capacity=(40.0, 41.0, 42.0)), [ranged(capacity=(39.9, 41.0, 42.0))]),
        (
            "delay_by_size",
            few_waits(causes(capacity=40.0, scheduler=30.0, fair_share=30.0), 20),
            [
                causes(capacity=39.9, scheduler=30.1, fair_share=30.0),
                few_waits(causes(capacity=40.0, scheduler=30.0, fair_share=30.0), 19),
            ],
        ),
        ("wait_by_queue", queues(10.0, 30.0, 60.0), [queues(10.0, 30.0, 59.9)]),
        ("wait_by_queue", queues(1.0, 15.0, 30.0, waits=20), [queues(1.0, 14.9, 29.9)]),
        ("wait_by_size", gangs(30.0, 6.0), [gangs(29.9, 1.0), gangs(30.0, 6.1), gangs(30.0, 6.0, waits=19)]),
        ("wait_by_size", gangs(30.0, 6.0, bucket="5-8"), [gangs(30.0, 6.0, bucket="2-4")]),
        ("gpu_util_by_nodes", spread(5.0), [spread(4.9), spread(5.0, minutes=999)]),
        ("gpu_hours_lost", lost(20.0), [lost(19.9)]),
        ("failure_reasons", reason(), [reason(trials=4), reason(gpu_minutes_pct=14.9)]),
        (
            "failure_savings",
            [{"lesson": "x", "gpu_hours": 10.0, "gpu_hours_pct": 2.0}],
            [[{"lesson": "x", "gpu_hours": 10.0, "gpu_hours_pct": 1.9}]],
        ),
        ("training_convergence", converged(10.0), [converged(9.9), converged(10.0, jobs=19)]),
        (
            "sources",
            [{"rows_in": 1000, "rows_rejected": 1, "most_rejected_for": None}],
            [[{"rows_in": 1001, "rows_rejected": 1, "most_rejected_for": None}]],
        ),
    ],
)
def test_a_rule_holds_from_its_own_threshold_on(name: str, at: Rows, below: list[Rows]) -> None:
    more = WAITS if name in {"wait_by_queue", "wait_by_size"} else {}
    [one] = found(name, at, **more)
    # what lies further beyond its threshold comes first
    assert one.weight == pytest.approx(1.0)
    for rows in below:
        assert found(name, rows, **more) == []


def machines(*bad: str) -> Rows:
    row = {"failures": 9, "attempts": 10, "expected": 2.5, "adjusted_p": 0.001}
    return [{"machine": f"m{k}", "bad": word, **row} for k, word in enumerate(bad)]


def test_at_most_five_bad_machines_are_named_and_no_good_one() -> None:
    told = found("failure_nodes", machines("no", "yes", "unknown", *["yes"] * 5))
    assert [one.text.split()[1] for one in told] == ["m1", "m3", "m4", "m5", "m6"]
    assert told[0].text.endswith("9 of 10 attempts, 2.5 expected (p = 0.001, corrected for 8 nodes).")


def test_the_costliest_reason_has_the_largest_share() -> None:
    known = [reason(reason=name, gpu_minutes_pct=pct)[0] for name, pct in (("a", 20.0), ("b", 50.0), ("c", None))]
    [one] = found("failure_reasons", [*known, *reason(reason="No signature", gpu_minutes_pct=60.0)])
    assert one.text == (
        "b accounts for 50.0\xa0% of failed attempts' GPU-time: 5 attempts of 2 users, half of which failed "
        "within 90\xa0min. No other known reason cost more; 60.0\xa0% has no known reason."
    )


def test_no_finding_is_first_for_its_size_alone() -> None:
    unfinished = [{"policy": "fifo", "oracle": False, "jobs": 10, "jobs_finished": 7}]
    weights = {"replay_summary": unfinished, "wait_by_size": gangs(900.0, 6.0), "wait_by_queue": queues(0.0, 0.0, 30.0)}
    assert [
        found(name, rows, **({} if name == "replay_summary" else WAITS))[0].weight for name, rows in weights.items()
    ] == [5.0, 5.0, 2.0]


def test_what_was_lost_is_split_in_shares_of_all_gpu_hours() -> None:
    [one] = found("gpu_hours_lost", lost(20.0))
    assert one.text == (
        "20.0\xa0% of 1,000 GPU-hours were lost in unsuccessful attempts: 5.0\xa0% killed, 10.0\xa0% failed."
    )


def test_empty_tables_and_missing_columns_report_nothing() -> None:
    whole = make_analysis(points=5)
    empty = replace(whole, tables=tuple(replace(each, frame=each.frame.clear()) for each in whole.tables))
    assert findings(empty) == ()
    bare = replace(whole, tables=tuple(replace(each, frame=each.frame.select(pl.first())) for each in whole.tables))
    assert isinstance(bare, Analysis)
    assert findings(bare) == ()


def cards(rows: Rows, *policies: tuple[str, float, bool]) -> list[tuple[str, str, str]]:
    summary = [
        {"policy": name, "wait_mean_s": wait, "jct_mean_s": None, "oracle": oracle} for name, wait, oracle in policies
    ]
    frames = {"replay_vs_baseline": pl.DataFrame(rows)} if rows else {}
    frames["replay_summary"] = pl.DataFrame(summary, schema_overrides={"jct_mean_s": pl.Float64})
    tables = tuple(table(name, "s", frame) for name, frame in frames.items())
    made = headlines(replace(make_analysis(points=5), tables=tables))
    return [(one.label, f"{one.value} {one.unit}", one.detail.replace("\xa0", " ")) for one in made]


def test_no_oracle_wins_a_card() -> None:
    rows = compared(("srtf", -6600, -6000, -5400), ("easy", -5400, -3600, -1800))
    [card] = cards(rows, ("fifo", 7200.0, False), ("srtf", 1200.0, True), ("easy", 3600.0, False))
    assert card == ("Shortest mean wait", "60 min", "easy; fifo 120 min; bound: srtf 20 min (oracle)")
    assert cards([], ("srtf", 1200.0, True)) == [("Mean wait", "20 min", "srtf, an oracle: a bound")]


def test_no_policy_wins_a_card_by_chance() -> None:
    rows = compared(("las", -3600, -1800, 60))
    [card] = cards(rows, ("fifo", 7200.0, False), ("las", 5400.0, False))
    assert card == ("Mean wait", "120 min", "fifo; no other policy is significantly better")
    assert cards([], ("las", 5400.0, False)) == [("Mean wait", "90 min", "las")]


def test_each_finding_names_whom_to_start_with() -> None:
    users = [{"user": "ana", "lost_gpu_hours": 30.0}, {"user": "bo", "lost_gpu_hours": 170.0}]
    users += [{"user": None, "lost_gpu_hours": 900.0}]
    [one] = found("gpu_hours_lost", lost(20.0), users=users)
    assert one.action == "Start with user bo, who lost most: 170 of 200 GPU-hours."
    assert found("gpu_hours_lost", lost(20.0))[0].action == ""
    queues = [
        {"queue": name, "fragmentation_h": hours} for name, hours in (("a", 9.0), ("\x1b[2J", 51.0), ("all", 60.0))
    ]
    [one] = found("delay_by_size", causes(fragmentation=60.0, capacity=40.0), delay_by_queue=queues)
    assert "first for queue \\x1b[2J: 51 of 60\xa0h" in one.action
    nodes = {"bad": "yes", "attempts": 9, "failures": 8, "expected": 2.0, "adjusted_p": 0.01, "top_reason": "ECC error"}
    [one] = found("failure_nodes", [{"machine": "n1", **nodes}])
    assert one.action == "Drain node n1 and test it before it gets more jobs; most of its failures: ECC error."


def test_idle_gpus_are_reported_from_a_tenth_on() -> None:
    rows = [{"user": user, "measured_jobs": 10, "gpu_hours": 50.0, "idle_gpu_hours": idle} for user, idle in
            (("ana", 2.0), ("bo", 8.0))]  # fmt: skip
    [one] = found("idle_users", rows)
    assert one.text.startswith("10.0\xa0% of 100 measured GPU-hours")
    assert one.action == "Start with user bo, who left most idle: 8 of 10 GPU-hours."
    assert found("idle_users", [row | {"idle_gpu_hours": 4.9} for row in rows]) == []


def test_waits_over_an_hour_are_counted_in_words() -> None:
    def tile(share: float) -> str:
        row = {"wait_p50_min": 1.0, "wait_p95_min": 90.0, "wait_over_1h_pct": share}
        overview = table("overview", "s", pl.DataFrame([row]))
        [one] = headlines(replace(make_analysis(points=5), tables=(overview,)))
        return f"{one.value} {one.unit}; {one.detail}".replace("\xa0", " ")

    assert tile(8.3) == "90 min; median 1 min; 1 attempt in 12 waited over an hour"
    assert tile(80.0) == "90 min; median 1 min; 80.0 % of attempts waited over an hour"
    assert tile(0.0) == "90 min; median 1 min; no attempt waited over an hour"
