"""An analysis like the ones of a real trace, of any size, with hostile names in it."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

import polars as pl

from gpuctl.core.notes import Note, named, note
from gpuctl.core.results import Analysis, Column, ResultTable, SourceInfo

HOSTILE = (
    "<script>alert(1)</script>",
    "[/red]",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror="alert(3)">',
    "right\u202eleft\u200bzero\x1b[31mred\x00nul\nline",
    "{{ 7*7 }}{% raw %}",
    "$x^2$ | a\\b | =1+1",
)

SIZES = ("1", "2-4", "5-8", ">8")

UNITS = {
    "minutes": "min", "cdf_pct": "%", "gpus_busy": "GPUs", "gpus_total": "GPUs", "jobs_waiting": "jobs",
    "gpus_waited_for": "GPUs", "waits": "waits", "gpus": "GPUs", "nodes": "nodes", "gpu_minutes": "GPU-min",
    "jobs": "jobs", "gpu_hours": "GPU-h", "ts": "-", "rows": "rows",
}  # fmt: skip
ENDINGS = {"_pct": "%", "_h": "h", "_min": "min", "_s": "s"}


def unit_of(name: str) -> str:
    """The unit that a column's name says."""
    ending = next((unit for end, unit in ENDINGS.items() if name.endswith(end)), "-")
    return UNITS.get(name, ending)


def table(
    name: str, section: str, frame: pl.DataFrame, *, detail: bool = False, notes: tuple[str, ...] = ()
) -> ResultTable:
    """A result table around a frame."""
    title = name.replace("_", " ").capitalize()
    columns = tuple(Column(c, unit_of(c), f"The {c.replace('_', ' ')} of the row.") for c in frame.columns)
    return ResultTable(
        name=name,
        section=section,
        title=title,
        question=f"What is the {title.lower()} of this cluster?",
        population=note("{rows:,} rows of 96,260 jobs; 13,990 left out because they never started.", rows=frame.height),
        notes=tuple(Note(text) for text in notes),
        columns=columns,
        frame=frame,
        detail=detail,
    )


def cdf(rng: random.Random, points: int, low: float, high: float) -> tuple[list[float], list[float]]:
    """A rising curve between two values, spread over decades."""
    xs = sorted(round(math.exp(rng.triangular(math.log(low), math.log(high))), 4) for _ in range(points))
    return xs, [100.0 * (i + 1) / points for i in range(points)]


def curves(rng: random.Random, points: int, *, queues: tuple[str, ...] = ()) -> pl.DataFrame:
    """Curves of minutes, one a job size (and queue)."""
    frames = []
    for queue in queues or ("",):
        for index, size in enumerate(SIZES):
            xs, ys = cdf(rng, points, 0.02, 3000.0 * (index + 1) ** 2)
            if queues:
                xs[: points // 4] = [0.0] * (points // 4)
            labels = {"size_bucket": [size] * points} | ({"queue": [queue] * points} if queues else {})
            frames.append(pl.DataFrame({**labels, "minutes": xs, "cdf_pct": ys}))
    return pl.concat(frames)


def by_hour(*names: str) -> pl.DataFrame:
    """Figures of two days."""
    rng = random.Random(8)
    hours = [datetime(2017, 10, 2, tzinfo=UTC) + timedelta(hours=k) for k in range(48)]
    return pl.DataFrame({"ts": hours} | {name: [rng.uniform(0, 40) for _ in hours] for name in names})


def occupancy(rng: random.Random, points: int) -> pl.DataFrame:
    """A cluster that fills up and empties."""
    start = datetime(2017, 10, 3, tzinfo=UTC)
    step = timedelta(days=75) / points
    busy = [int(1900 + 350 * math.sin(i * 50 / points) + rng.randint(-60, 60)) for i in range(points)]
    wait = [max(0, b - 2000 + rng.randint(0, 80)) for b in busy]
    return pl.DataFrame(
        {
            "ts": [start + step * i for i in range(points)],
            "gpus_busy": busy,
            "gpus_total": [2490] * points,
            "jobs_waiting": [w // 3 for w in wait],
            "gpus_waited_for": wait,
        }
    )


LEAST = {"fair_share": 4000.5, "capacity": 2000.0, "fragmentation": 900.25, "scheduler": 12.25}


def delays(key: str, names: tuple[str, ...]) -> pl.DataFrame:
    """Hours of waiting by cause; the last row is the total."""
    names = (*names, "all")
    count = len(names)
    return pl.DataFrame(
        {
            key: names,
            "waits": [40321 // (i + 1) for i in range(count)],
            "wait_h": [17320.5 / (i + 1) + 2000 for i in range(count)],
            "fair_share_h": [9320.123456789 / (i + 1) for i in range(count)],
            "capacity_h": [2000.0 + 31 * i for i in range(count)],
            "fragmentation_h": [3000.5 * (i + 1) / count for i in range(count)],
            "scheduler_h": [12.25 * i for i in range(count)],
            **{f"{cause}_low_h": [hours * (1 - 0.1 * i) for i in range(count)] for cause, hours in LEAST.items()},
            "not_known_h": [500.0 * i for i in range(count)],
            "fair_share_pct": [55.04 - i for i in range(count)],
        }
    )


def status() -> pl.DataFrame:
    """Final states of the jobs."""
    return pl.DataFrame(
        {
            "state": ["completed", "killed", "failed", "running", "all"],
            "source_state": ["Pass", "Killed", "Failed", "Running", None],
            "jobs": [66696, 20200, 9345, 19, 96260],
            "jobs_pct": [69.2873, 20.985, 9.708, 0.0197, 100.0],
            "gpu_hours": [1733112.33, 1471000.0, 391200.9, 120.05, 3595433.28],
            "gpu_hours_pct": [48.19, 40.93, 10.88, 0.0033, 100.0],
            "run_p50_min": [13.7, 41.25, 2.6, None, 12.0],
        }
    )


def utilization() -> pl.DataFrame:
    """Mean and quantiles by job size and nodes."""
    rows = [(1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 4), (16, 2), (16, 4), (16, 8)]
    return pl.DataFrame(
        {
            "gpus": [g for g, _ in rows],
            "nodes": [s for _, s in rows],
            "gpu_minutes": [9_000_000 // (i + 1) for i in range(len(rows))],
            "mean_pct": [56.9 - 3.1 * i for i in range(len(rows))],
            "p50_pct": [73.0 - 6 * i for i in range(len(rows))],
            "p90_pct": [98.0] * len(rows),
            "p95_pct": [100.0] * len(rows),
        }
    )


def utilization_cdf() -> pl.DataFrame:
    """Curves of utilization by size and final state."""
    frames = []
    for size in ("all", "1", "2", "4", "8", "16", "32"):
        for k, state in enumerate(("all", "completed", "killed", "failed")):
            xs = [float(x) for x in range(101)]
            ys = [100 * (x / 100) ** (0.5 + 0.2 * k + len(size) / 10) for x in xs]
            frames.append(pl.DataFrame({"size": [size] * 101, "state": [state] * 101, "util_pct": xs, "cdf_pct": ys}))
    return pl.concat(frames)


def host_cdf() -> pl.DataFrame:
    """Curves of processor and memory use."""
    xs = [float(x) for x in range(101)]
    return pl.concat(
        pl.DataFrame(
            {"measure": [m] * 101, "util_pct": xs, "cdf_pct": [100 * (x / 100) ** p for x in xs]}
        )
        for m, p in (("cpu", 0.35), ("memory", 0.8))
    )  # fmt: skip


def failure_reasons() -> pl.DataFrame:
    """Shares of failed attempts, the last row their sum."""
    return pl.DataFrame(
        {
            "reason": ["CPU out of memory", "Incorrect inputs", HOSTILE[0], "all"],
            "trials_pct": [60.0, 30.0, 10.0, 100.0],
            "gpu_minutes_pct": [12.5, 87.5, 0.0, 100.0],
        }
    )


def hours(key: str, *names: str) -> pl.DataFrame:
    """GPU-hours by a key; the last row is the total."""
    parts = [1200.5 / (i + 1) for i in range(len(names) - 1)]
    return pl.DataFrame({key: names, "gpu_hours": [*parts, sum(parts)]})


def ends(key: str, where: str, kind: str, *values: str) -> pl.DataFrame:
    """Figures with the ends of their intervals by a key; the last row has no figure."""
    rows = [(f"{key} {n}", kind, 1.5 * n, 1.2 * n, 2.0 * n) for n in range(1, 4)]
    names = [key, where, *values]
    return pl.DataFrame([*rows, (f"{key} 4", kind, None, None, None)], schema=names, orient="row")


def reasons(rows: int) -> pl.DataFrame:
    """Why jobs failed: the first names are hostile."""
    names = [HOSTILE[i] if i < len(HOSTILE) else f"job-{i:04d} gpu[001-{i:03d}]" for i in range(rows)]
    return pl.DataFrame(
        {
            "reason": names,
            "queue": [None if i % 5 == 4 else "" if i % 7 == 6 else f"vc{i % 3}" for i in range(rows)],
            "first_ts": [datetime(2017, 10, 3, 0, 44, 36, tzinfo=UTC) + timedelta(minutes=17 * i) for i in range(rows)],
            "jobs": [5000 // (i + 1) for i in range(rows)],
            "lost_gpu_hours": [float("nan") if i == 3 else 0.1 + 0.2 + i for i in range(rows)],
            "share_pct": [100.0 / (i + 1) ** 2 for i in range(rows)],
        }
    )


def totals() -> pl.DataFrame:
    """One row with many columns."""
    return pl.DataFrame(
        {
            "jobs": [96260], "queues": [15], "users": [319], "gpus": [2490], "gpu_hours": [3595433.28],
            "first_ts": [datetime(2017, 8, 7, 8, 0, tzinfo=UTC)], "completed_pct": [69.2873],
        }
    )  # fmt: skip


SECTIONS = (
    ("overview", "Overview"),
    ("runtime", "Run times"),
    ("queueing", "Queueing"),
    ("utilization", "Utilization"),
    ("failures", "Failures"),
)


def workload() -> dict[str, pl.DataFrame]:
    """The tables of the section ``workload`` that are drawn."""
    hours = {name: [1.0 + hour % 7 for hour in range(24)] for name in ("jobs_an_hour", "working_day", "weekend")}
    shares = {"jobs_pct": [60.0, 40.0], "work_pct": [20.0, 80.0]}
    return {
        "arrivals_by_hour": pl.DataFrame({"hour": list(range(24)), **hours}),
        "arrivals_by_weekday": pl.DataFrame({"weekday": list(range(1, 8)), "jobs_a_day": [9.0] * 5 + [3.0, 2.0]}),
        "job_sizes": pl.DataFrame({"size": ["1", "8"], **shares}),
        "runtime_by_outcome": pl.DataFrame(
            {"size_bucket": ["1", ">8"], "state": ["all", "all"], "run_p50_s": [60.0, 600.0], "run_p90_s": [1e3, 1e4]}
        ),
        "user_shares": pl.DataFrame({"users_pct": [1, 100], **shares}),
    }


def make_analysis(*, points: int = 300, rows: int = 40, jobs: int = 1000, names: tuple[str, ...] = HOSTILE) -> Analysis:
    """An analysis with every table that a chart reads.

    Args:
        points: of each curve.
        rows: of the table of reasons.
        jobs: rows of the table with one row a job.
        names: hostile strings for queues, warnings, notes, paths.
    """
    rng = random.Random(7)
    queues = ("6214e9", "ee9e8c", "11cb48", *names)
    per_job = pl.DataFrame(
        {"job": [f"application_{i}" for i in range(jobs)], "wait_min": [0.1 * i for i in range(jobs)]}
    )
    tables = (
        table("totals", "overview", totals()),
        table("status", "overview", status(), notes=("A job counts once, whatever its attempts.",)),
        table("occupancy", "overview", occupancy(rng, points), detail=True),
        table("activity", "overview", by_hour("gpus_busy", "waiting_gpus"), detail=True),
        table("fragmentation", "overview", by_hour("free_gpus", "stranded_gpus", "largest_gang"), detail=True),
        table("runtime_cdf", "runtime", curves(rng, points), detail=True),
        table("wait_cdf", "queueing", curves(rng, points, queues=("all", *queues[:2])), detail=True),
        table("delay_by_size", "queueing", delays("size_bucket", SIZES), notes=("Quotas are inferred.",)),
        table("delay_by_queue", "queueing", delays("queue", queues), notes=tuple(names[:2])),
        table("job_waits", "queueing", per_job, detail=True),
        table("gpu_util_by_nodes", "utilization", utilization()),
        table("gpu_util_cdf", "utilization", utilization_cdf(), detail=True),
        table(
            "gpu_util_by_colocation",
            "utilization",
            pl.DataFrame(
                {
                    "gpus": [8, 8, 16, 16],
                    "colocation": ["dedicated", "colocated"] * 2,
                    "gpu_minutes": [1e6, 2e6, 3e6, 4e5],
                    "mean_pct": [62.0, 57.1, 50.2, 43.6],
                    "p50_pct": [71.0, 60.0, 55.0, 40.0],
                }
            ),
        ),
        table("host_util_cdf", "utilization", host_cdf(), detail=True),
        *(table(name, "workload", frame) for name, frame in workload().items()),
        table("reasons", "failures", reasons(rows)),
        table("failure_reasons", "failures", failure_reasons()),
        table("interruptions", "failures", hours("cause", "infrastructure", "user_program", "all")),
        table("goodput_loss", "failures", hours("kind", "productive", "idle", "capacity")),
        table("failure_rates", "failures", ends("group", "by", "month", "per_1000_node_days", "low", "high")),
        table("mttf_by_size", "failures", ends("gpus", "kind", "measured", "mttf_h", "mttf_low_h", "mttf_high_h")),
        table(
            "empty",
            "failures",
            pl.DataFrame({"reason": [], "jobs": []}, schema={"reason": pl.String, "jobs": pl.Int64}),
        ),
    )
    sources = tuple(
        SourceInfo(f"/logs/{name}", "philly-jobs", f"{i:064x}", 1000 + i, 100 + i, 98 + i, 2)
        for i, name in enumerate(("cluster_job_log", *names))
    )
    return Analysis(
        cluster=named("cluster", "philly"),
        tables=tables,
        sections=SECTIONS,
        sources=sources,
        settings={"quotas": note("inferred"), "definition": note("attempts")},
        command="gpuctl analyze /logs --html report.html",
        version="0.1.0",
        warnings=(
            note("Clock changes on 2017-11-05: durations that cross it are one hour off."),
            *(named("queue", name) for name in names[:1]),
        ),
    )
