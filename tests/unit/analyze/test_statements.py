"""Statements of `queries/`, each alone on tables of a few rows whose answer is worked out beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from gpuctl.analyze import registry, shared_sql
from gpuctl.queries.catalogue import parameters

if TYPE_CHECKING:
    from collections.abc import Sequence


class Tables:
    """Tables in memory; columns that end in ``_ts`` are given as seconds since 1970."""

    def __init__(self) -> None:
        self._con = duckdb.connect()
        self._con.execute("SET TimeZone = 'UTC'")

    def put(self, name: str, columns: str, *rows: Sequence[Any]) -> None:
        """Make a table; `columns` are names and types, as in `CREATE TABLE`."""
        names = [column.split()[0] for column in columns.split(", ")]
        self._con.execute(f"CREATE TABLE {name} ({columns.replace('_ts', '_ts TIMESTAMPTZ')})")
        marks = ", ".join("to_timestamp(?)" if each.endswith("_ts") else "?" for each in names)
        for row in rows:
            self._con.execute(f"INSERT INTO {name} VALUES ({marks})", list(row))

    def ask(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement; of the values those that it has parameters for."""
        return self._con.execute(sql, {key: values[key] for key in parameters(sql)}).fetchall()

    def named(self, sql: str) -> list[dict[str, Any]]:
        """The same rows, by column."""
        rows = self.ask(sql)
        return [dict(zip([column[0] for column in self._con.description or ()], row, strict=True)) for row in rows]


def analysis_sql(name: str) -> str:
    """The statement of a result table."""
    return registry.all_analyses()[name].sql


@pytest.fixture
def tables() -> Tables:
    return Tables()


def test_gangs_wait_from_when_they_may_start_until_they_hold_their_gpus_or_give_up(tables: Tables) -> None:
    tables.put(
        "base_attempts",
        "job TEXT, attempt INTEGER, queue TEXT, gpu_type TEXT, gpus DOUBLE, queued_ts, eligible_ts, held_from_ts, "
        "wait_s DOUBLE, gpu_type_request TEXT",
        ("plain", 0, "q", "A100", 2, 100, None, 110, 10, None),
        ("held", 0, "q", "A100", 0.5, 100, 104, 110, 10, "any"),
        ("early", 0, "q", None, 1, 100, 90, 110, 10, None),
        # eligible in the second in which it got its GPUs, or only later: it waited for nothing but being eligible
        ("on time", 0, "q", None, 1, 100, 110, 110, 10, None),
        ("late", 0, "q", None, 1, 100, 120, 110, 10, None),
        ("at once", 0, "q", None, 1, 100, None, 100, 0, None),
        ("no GPUs", 0, "q", None, 0, 100, None, 110, 10, None),
        ("unknown", 0, "q", None, 1, 100, None, 110, None, None),
        ("again", 0, "q", None, 1, 100, 107, 108, 8, None),
        ("again", 1, "q", None, 1, 130, 135, None, None, None),
    )  # fmt: skip
    tables.put(
        "base_never_started", "job TEXT, attempt INTEGER, queue TEXT, gpus DOUBLE, queued_ts, until_ts",
        ("again", 1, "q", 1, 130, 150),
        ("pending", None, "r", 0.5, 100, 160),
        ("given up", 0, "r", 4, 100, 130),
        ("instantly", None, "r", 4, 100, 100),
        ("open", None, "r", 4, 100, None),
        ("CPUs", None, "r", 0, 100, 160),
    )  # fmt: skip
    jobs = ["again", "pending", "given up", "instantly", "open", "CPUs"]
    tables.put("base_jobs", "job TEXT, gpu_type TEXT, gpu_type_request TEXT", *[(job, "H100", None) for job in jobs])
    found = tables.ask(shared_sql.base_sql("waiting_gangs"))
    assert found == [
        ("again", "q", "H100", 1, 135, 150),
        ("again", "q", None, 1, 107, 108),
        ("early", "q", None, 1, 100, 110),
        ("given up", "r", "H100", 4, 100, 130),
        ("held", "q", None, 0.5, 104, 110),
        ("pending", "r", "H100", 0.5, 100, 160),
        ("plain", "q", "A100", 2, 100, 110),
    ]


def test_each_job_with_a_progress_is_of_one_kind(tables: Tables) -> None:
    tables.put(
        "base_training",
        "usable BOOLEAN, points INTEGER, metrics INTEGER, valid BOOLEAN, unit TEXT, points_not_finite INTEGER, "
        "placed TEXT",
        (True, 9, 0, True, "epochs", 0, "stamps"),
        (True, 9, 2, False, "steps", 1, "elapsed"),
        (True, 9, 0, False, "steps", 3, "even"),
        (True, 9, 0, False, "epochs", 0, "even"),
        # a point or none; where there is none, other metrics or none
        (False, 1, 0, True, "steps", 1, "stamps"),
        (False, 1, 1, False, None, 0, None),
        (False, 0, 1, False, None, 0, None),
        (False, 0, 3, False, None, 0, None),
        (False, 0, 2, False, None, 0, None),
        (False, 0, 0, False, None, 0, None),
    )  # fmt: skip
    names = [name for name in shared_sql.numbers("population") if name.startswith("training_")]
    asked = shared_sql.scalars("population", sorted({*names} - {"training_unknown"}))
    assert {row["name"]: row["value"] for row in tables.named(asked)} == {
        "training_jobs": 10, "training_usable": 4, "training_unusable": 6, "training_few": 2, "training_other": 3,
        "training_silent": 1, "training_valid": 1, "training_steps": 2, "training_nan": 2, "training_stamps": 1,
        "training_elapsed": 1, "training_even": 2,
    }  # fmt: skip


def test_waits_of_the_paper_are_those_of_gangs_that_ran_a_minute(tables: Tables) -> None:
    columns = "job TEXT, attempt INTEGER, wait_s DOUBLE, gpus DOUBLE, ineligible_s DOUBLE, scheduler_s DOUBLE"
    tables.put(
        "base_delays", columns,
        ("a", 0, 0.5, 2, 0.2, 0), ("b", 0, 0.5, 2, 0.5, 0.1), ("c", 0, 0, 2, 0, 0), ("d", 0, 5, 1, 0, 5),
        ("d", 1, 5, 2, 0, 0),
    )  # fmt: skip
    runs = [("a", 0, 60), ("b", 0, 59), ("c", 0, 100), ("d", 0, 100), ("d", 1, 61)]
    tables.put("base_attempts", "job TEXT, attempt INTEGER, run_s DOUBLE", *runs)
    names = ("delays_waited", "paper_waits", "delays_ineligible", "delays_eligible_waited", "delays_while_free")
    found = {row["name"]: row["value"] for row in tables.named(shared_sql.scalars("population", names))}
    assert [found[name] for name in names] == [4, 2, 2, 3, 2]


def test_containers_preempted_while_a_job_waited_are_those_within_its_waits(tables: Tables) -> None:
    tables.put(
        "base_attempts", "job TEXT, queued_ts, start_ts, held_until_ts",
        ("mine", 100, 200, 300),
        ("mine", 400, None, 500),
        ("mine", None, 700, 800),
        ("other", 0, 900, 1000),
    )  # fmt: skip
    tables.put("yarn_built", "cluster TEXT, job TEXT", *[("c", job) for job in ("mine", "a", "b")], ("d", "stranger"))
    tables.put(
        "containers", "cluster TEXT, job TEXT, state TEXT, gpus DOUBLE, end_ts",
        ("c", "a", "preempted", 2, 99), ("c", "a", "preempted", 1, 100), ("c", "a", "preempted", 4, 200),
        # after its start it held GPUs, and waited no longer
        ("c", "a", "preempted", 8, 201), ("c", "a", "preempted", 8, 300), ("c", "a", "completed", 8, 150),
        ("c", "b", "preempted", None, 500), ("c", "b", "preempted", 8, 501), ("c", "b", "preempted", 8, 750),
        ("c", "mine", "preempted", 16, 290), ("c", "mine", "killed", 16, 291),
        ("c", "stranger", "preempted", 8, 150), ("d", "stranger", "preempted", 8, 150),
        ("d", "mine", "preempted", 8, 150),
    )  # fmt: skip
    sql = shared_sql.base_sql("explain_preempted")
    sql = f"SELECT own, job, containers, gpus, epoch(first_ts), epoch(last_ts) FROM ({sql})"
    assert tables.ask(sql, cluster="c", job="mine") == [
        (True, "mine", 1, 16, 290, 290),
        (False, "a", 2, 5, 100, 200),
        (False, "b", 1, None, 500, 500),
    ]


def _correlations(tables: Tables, *hours: float) -> dict[tuple[str, str], tuple[float, float, int]]:
    """By measure and lag: the lag in hours, the value, and the number of spans."""
    tables.put("base_workload", "submit_s DOUBLE", *[(3600 * hour,) for hour in hours])
    return {row[:2]: row[2:] for row in tables.ask(analysis_sql("arrival_correlation"))}


def test_hours_without_a_job_count_in_the_correlation_of_arrivals(tables: Tables) -> None:
    # of the hours 0 to 5 the first and the last are cut off: 2, 0, 2, 0 about a mean of 1
    found = _correlations(tables, 0.5, 1.1, 1.2, 3.1, 3.2, 5)
    assert found.pop(("index of dispersion", "1 min"))[2] == 269, "0:31 to 4:59"
    # three products of 1 and -1 over four squares of 1; a lag of 2 h leaves too few hours
    assert found == {("autocorrelation", "1 h"): (1, -0.75, 3)}


@pytest.mark.parametrize(
    ("last", "lags"),
    [(4, [1]), (5, [1, 2]), (6, [1, 2]), (8, [1, 2]), (9, [1, 2, 6]), (339, [1, 2, 6, 12, 24, 48, 168, 336])],
)
def test_a_lag_needs_three_pairs_of_hours(last: int, lags: list[int], tables: Tables) -> None:
    # a job in every hour, two in the first whole one
    found = _correlations(tables, *range(last + 2), 1)
    auto = {key[1]: row for key, row in found.items() if key[0] == "autocorrelation"}
    assert {lag: row[::2] for lag, row in auto.items()} == {f"{lag} h": (lag, last - lag) for lag in lags}
    # the first hour is d = 1 - 1/n above the mean, and n - 1 hours are 1/n below it: n - lag - 1 pairs of these
    d, low = 1 - 1 / last, 1 / last
    for lag in lags:
        products = (last - lag - 1) * low * low - d * low
        assert auto[f"{lag} h"][1] == pytest.approx(products / (d * d + (last - 1) * low * low), abs=1e-6)
    # 1 + 1/n jobs an hour on average
    mean = 1 + 1 / last
    spread = ("index of dispersion", "1 h")
    assert (spread in found) == (last > 5)
    if last > 5:
        assert found[spread] == (1, pytest.approx(((last + 3) / last - mean**2) / mean), last)


def test_events_of_machines_are_on_the_clock_of_the_log_and_end_with_it(tables: Tables) -> None:
    at = 1_000_000_000  # 2001-09-09; in Los Angeles 7 h less
    tables.put(
        "clusters", "cluster TEXT, clock TEXT, timezone TEXT, last_ts",
        ("wall", "wall", "America/Los_Angeles", at + 100), ("utc", "utc", "America/Los_Angeles", at + 100),
    )  # fmt: skip
    events = (
        ("m2", "drain", "b", at + 10, at + 20), ("m1", "down", "a", at + 50, None),
        ("m1", "down", "c", at + 30, at + 31), ("m1", "down", "no time", at + 40, at + 40),
        ("m1", "down", "at its end", at + 100, None),
        ("m1", "down", "back", at + 40, at + 39), ("m3", "down", "after the log", at + 200, at + 300),
    )  # fmt: skip
    tables.put(
        "machine_events", "cluster TEXT, machine TEXT, state TEXT, reason TEXT, from_ts, to_ts",
        *[(cluster, *event) for cluster in ("wall", "utc") for event in events],
    )  # fmt: skip
    rows = [("m1", "down", "c", 30, 31), ("m1", "down", "a", 50, 100), ("m2", "drain", "b", 10, 20)]
    rows.append(("m3", "down", "after the log", 200, 300))
    for cluster, off in (("wall", at - 7 * 3600), ("utc", at)):
        found = tables.ask(shared_sql.base_sql("machine_events"), cluster=cluster)
        assert found == [(*row[:3], row[3] + off, row[4] + off) for row in rows]
        down = f"SELECT machine, epoch(from_ts), epoch(to_ts) FROM ({shared_sql.base_sql('machines_down')})"
        assert tables.ask(down, cluster=cluster) == [(row[0], row[3] + at, row[4] + at) for row in rows]


FIGURES = (
    "wait_p50_min", "wait_p95_min", "lost_gpu_hours", "lost_node_hours", "lost_pct", "own_lost_pct", "failed_h",
    "killed_h", "retried_h", "failed_jobs", "measured_jobs", "util_mean_pct", "util_p10_pct", "idle_jobs",
    "idle_gpu_hours",
)  # fmt: skip


def test_queues_have_shares_of_node_hours_where_gpus_are_unknown(tables: Tables) -> None:
    tables.put(
        "base_jobs",
        'job TEXT, queue TEXT, "user" TEXT',
        ("1", "p", "u"),
        ("2", "p", "v"),
        ("3", "q", None),
        ("4", "r", "u"),
    )
    columns = ", ".join(f"{name} DOUBLE" for name in ("gpu_hours", "node_hours", *FIGURES))
    none = [None] * len(FIGURES)
    tables.put(
        "base_queue_figures", f"name TEXT, {columns}",
        ("p", None, 1.5, *none), ("q", None, 4.5, *none), ("r", 8, None, *range(len(FIGURES))),
    )  # fmt: skip
    tables.put(
        "base_quotas",
        "queue TEXT, quota_gpus DOUBLE, limit_gpus DOUBLE, quota_source TEXT",
        ("p", 4, 8, "given"),
        ("q", 2, float("inf"), "inferred"),
    )
    found = {row["queue"]: row for row in tables.named(analysis_sql("queues"))}
    assert list(found) == ["r", "q", "p"]
    names = ("jobs", "users", "gpu_hours", "gpu_hours_pct", "node_hours", "node_hours_pct", "quota_gpus", "limit_gpus")
    assert [found["p"][name] for name in names] == [2, 2, None, None, 1.5, 25, 4, 8]
    assert [found["q"][name] for name in names] == [1, None, None, None, 4.5, 75, 2, None]
    assert [found["r"][name] for name in names] == [1, 1, 8, 100, None, None, None, None]
    assert [found["r"][name] for name in FIGURES] == list(range(len(FIGURES)))


def test_a_queue_that_held_nodes_for_microseconds_has_its_share(tables: Tables) -> None:
    tables.put("base_jobs", 'job TEXT, queue TEXT, "user" TEXT', ("1", "p", "u"))
    columns = ", ".join(f"{name} DOUBLE" for name in ("gpu_hours", "node_hours", *FIGURES))
    tables.put("base_queue_figures", f"name TEXT, {columns}", ("p", 4e-6 / 3600, 4e-6 / 3600, *[None] * len(FIGURES)))
    tables.put("base_quotas", "queue TEXT, quota_gpus DOUBLE, limit_gpus DOUBLE, quota_source TEXT")
    [found] = tables.named(analysis_sql("queues"))
    assert (found["gpu_hours_pct"], found["node_hours_pct"]) == pytest.approx((100, 100))


def test_gangs_gather_their_containers_from_the_first_to_their_start(tables: Tables) -> None:
    tables.put(
        "base_attempts", "size_bucket TEXT, gpus DOUBLE, queued_ts, am_start_ts, first_container_ts, start_ts",
        ("1", 1, 0, 60, 120, 240),
        ("5-8", 8, 0, 120, 300, 1200),
        ("5-8", 6, 0, 240, 240, 840),
        # without its master, its first container, its start, or its submission
        ("5-8", 8, 0, None, 300, 1200), ("5-8", 8, 0, 120, None, 1200), ("5-8", 8, 0, 120, 300, None),
        ("5-8", 8, None, 120, 300, 1200), (">8", 9, None, 120, 300, 1200),
    )  # fmt: skip
    one, eight, every = tables.named(analysis_sql("gang_acquisition"))
    assert [(row["size_bucket"], row["attempts"]) for row in (one, eight, every)] == [("1", 1), ("5-8", 2), ("all", 3)]
    medians = ("master_p50_min", "first_p50_min", "gather_p50_min")
    assert [one[name] for name in medians] == [1, 1, 2]
    assert [eight[name] for name in medians] == [3, 1.5, 12.5]
    assert [every[name] for name in medians] == [2, 1, 10]
    assert (eight["master_p95_min"], eight["gather_p95_min"]) == pytest.approx((2 + 0.95 * 2, 10 + 0.95 * 5))
    # GPU-hours: 1 GPU for 2 min, 8 for 15 min and 6 for 10 min
    assert [row["gather_gpu_h"] for row in (one, eight, every)] == pytest.approx([1 / 30, 3, 3 + 1 / 30])


def test_curves_of_host_utilization_have_a_point_each_half_percent(tables: Tables) -> None:
    # tenths of a percent; a point holds what lies above the one before, and up to itself
    tables.put(
        "base_host_histogram", "measure TEXT, tenth SMALLINT, samples BIGINT",
        ("cpu", 0, 1), ("cpu", 1, 2), ("cpu", 5, 3), ("cpu", 6, 4), ("cpu", 1000, 10),
        ("memory", 10, 5), ("memory", 11, 15),
    )  # fmt: skip
    assert tables.ask(analysis_sql("host_util_cdf")) == [
        ("cpu", 0, 5), ("cpu", 0.5, 30), ("cpu", 1, 50), ("cpu", 100, 100), ("memory", 1, 25), ("memory", 1.5, 100),
    ]  # fmt: skip
