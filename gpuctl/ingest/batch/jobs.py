"""Jobs made of several records, of one file or of several files, in whatever order these are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.core.states import State
from gpuctl.ingest.core.job_rows import add_queues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.ingest.core.format import Sink

BATCH = 20_000
"""Jobs that have ended are written this many at a time."""
OPEN = frozenset({State.PENDING.value, State.RUNNING.value, State.SUSPENDED.value})
KEPT = frozenset({"id_reused", "earlier_attempts_lost"})
"""Words of ``jobs.quirks`` that do not follow from the times of a job."""
REQUEUED = "requeued"
"""Reason of a run that ended and whose job is back in its queue."""
FACTS = (
    *("queue", "user", "account", "name", "array_job", "array_task", "submit_ts", "eligible_ts", "nodes", "cpus"),
    *("gpus", "gpu_type", "mem_mb", "time_limit_s", "priority"),
)
"""Columns of ``jobs`` that records of any kind may show."""
_NO_FACTS = dict.fromkeys(FACTS)
RUN = (
    *("start_ts", "end_ts", "state", "source_state", "gpus", "servers", "exit_code", "exit_signal", "reason", "cpu_s"),
    "quirks",
)
"""Columns of ``attempts`` that a run has of its own."""
_COPIED = ("start_ts", "end_ts", "source_state", "gpus", "exit_code", "exit_signal", "cpu_s")
_FACT_TIMES, _RUN_TIMES = ("submit_ts", "eligible_ts"), ("start_ts", "end_ts")
_TIMES = frozenset({"submit_ts", "eligible_ts", "start_ts", "end_ts", "queued_ts", "released_ts"})
_REALS = frozenset({"gpus", "wait_s", "run_s", "run_span_s", "run_sum_s", "run_last_s", "cpu_s"})
_COUNTS = frozenset(
    (
        *("nodes", "cpus", "mem_mb", "time_limit_s", "priority", "attempts", "attempt", "servers", "exit_code"),
        "exit_signal",
    )
)


class Job:
    """One job, as far as the records read so far describe it.

    Attributes:
        facts: known values of `FACTS`.
        runs: by start; of `RUN`, and ``placed`` and ``estimated``.
        final: whether the record of its end was read.
        last: the state, end and reason of a job that ended or waits without a run; None if its last run shows.
        line: number and text of the record of its end.
        quirks: oddities of its records, beside those of its times.
    """

    __slots__ = ("facts", "final", "last", "line", "quirks", "runs")

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.runs: dict[float | None, dict[str, Any]] = {}
        self.final = False
        self.last: tuple[str, float | None, str | None] | None = None
        self.line: tuple[int, str] | None = None
        self.quirks: list[str] = []

    def known(self, facts: dict[str, Any], *, later: bool = True) -> None:
        """Add facts; those of a later record count before the ones there are."""
        known = {name: value for name, value in facts.items() if value is not None}
        self.facts = known if not self.facts else {**self.facts, **known} if later else {**known, **self.facts}

    def add(self, older: Job) -> bool:
        """Add the store's facts of this job; return whether anything here is new.

        Args:
            older: the job as sources loaded before have it.
        """
        fresh = [k for k, run in self.runs.items() if k not in older.runs or ended(run) > ended(older.runs[k])]
        news = bool(fresh) or (not older.final and (self.final or self.last is not None))
        news = news or not self.facts.keys() <= older.facts.keys()
        self.known(older.facts, later=older.final and not self.final)
        for start, run in older.runs.items():
            if start not in self.runs or ended(run) >= ended(self.runs[start]):
                self.runs[start] = run
        if self.last is None or older.final:
            self.last = older.last
        self.final = self.final or older.final
        return news


def differ(facts: dict[str, Any], others: dict[str, Any]) -> bool:
    """Return whether two jobs of one number were submitted at different times."""
    both = {facts.get("submit_ts"), others.get("submit_ts")} - {None}
    return len(both) > 1


def ended(run: dict[str, Any]) -> bool:
    """Return whether a run is over."""
    return run["state"] not in OPEN


def when(run: dict[str, Any]) -> float:
    """Return the place of a run among the others of its job: its start, or if it never started its end."""
    at: float | None = run["start_ts"] if run["start_ts"] is not None else run["end_ts"]
    return float("inf") if at is None else at


def rows(name: str, job: Job) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the row of a job, and those of its attempts and placements."""
    runs = [*job.runs.values()] if len(job.runs) < 2 else sorted(job.runs.values(), key=when)
    back = bool(runs) and runs[-1]["reason"] == REQUEUED and (not job.final or job.last is not None)
    if not runs or back:
        state, end, reason = job.last or (State.PENDING.value, None, None)
        blank = dict.fromkeys(RUN) | {"state": state, "end_ts": end, "reason": reason, "quirks": [], "placed": {}}
        runs.append(blank | {"gpus": job.facts.get("gpus"), "estimated": False, "servers": None})
    submit = job.facts.get("submit_ts")
    queued, attempts, placed = submit, [], []
    for number, (run, after) in enumerate(zip(runs, [*runs[1:], None], strict=True)):
        attempts.append(_attempt(name, number, run, after, queued, job.facts.get("eligible_ts")))
        placed += [
            {"job": name, "attempt": number, "machine": host, "gpus": gpus, "estimated": run["estimated"]}
            for host, gpus in run["placed"].items()
        ]
        queued = run["end_ts"]
    starts = [run["start_ts"] for run in runs if run["start_ts"] is not None]
    start, last = (starts[0] if starts else None), attempts[-1]
    lengths = [attempt["run_s"] for attempt in attempts if attempt["run_s"] is not None]
    row = {
        **_NO_FACTS,
        **job.facts,
        **{key: last[key] for key in ("end_ts", "state", "source_state", "exit_code", "exit_signal", "reason")},
        "job": name,
        "start_ts": start,
        "eligible_ts": attempts[0]["eligible_ts"],
        "gpus": _size(attempts) if last["gpus"] is not None else job.facts.get("gpus"),
        "attempts": len(attempts),
        "wait_s": _span(submit, start),
        "run_span_s": _span(start, last["end_ts"]),
        "run_sum_s": sum(lengths) if lengths else None,
        "run_last_s": last["run_s"]
        if len(lengths) < len(attempts)
        else sum(one["run_s"] for one in last_try(attempts)),
        "quirks": [*_quirks(submit, start, last["state"]), *job.quirks],
    }
    return row, attempts, placed


def _attempt(  # noqa: PLR0917 - a run and what is around it
    name: str,
    number: int,
    run: dict[str, Any],
    after: dict[str, Any] | None,
    queued: float | None,
    eligible: float | None,
) -> dict[str, Any]:
    start, end, state = run["start_ts"], run["end_ts"], run["state"]
    quirks = [*run["quirks"]]
    # of a run whose end is unknown no GPUs count as held, as data_quality says
    released = None if state in OPEN else max((at for at in (start, end) if at is not None), default=None)
    if after is not None and state in OPEN:
        state, released = State.UNKNOWN.value, after["start_ts"]
        quirks.append("no_end")
    elif end is None and start is not None and state not in OPEN:
        quirks.append("end_unknown")
    if start is not None and end is not None and end < start:
        quirks.append("end_before_start")
    if start is None and state in {State.COMPLETED.value, State.FAILED.value, State.TIMEOUT.value}:
        quirks.append("no_start")
    if not run["placed"]:
        quirks.append("nodes_unknown")
    ready = max(eligible, queued) if eligible is not None and queued is not None else eligible
    if ready is not None and start is not None and ready > start:
        ready = start
        quirks.append("eligible_clamped")
    return {
        **{key: run[key] for key in _COPIED},
        "job": name, "attempt": number, "queued_ts": queued, "eligible_ts": ready, "released_ts": released,
        "state": state, "servers": len(run["placed"]) or run["servers"] or 0, "reason": run["reason"],
        "wait_s": _span(queued, start), "run_s": _span(start, end), "quirks": list(dict.fromkeys(quirks)),
    }  # fmt: skip


def last_try(attempts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last attempt with those before it of which it is the continuation: only the size of the job changed."""
    first = len(attempts) - 1
    while first > 0 and "resized" in attempts[first - 1]["quirks"]:
        first -= 1
    return attempts[first:]


def _size(attempts: list[dict[str, Any]]) -> float | None:
    """The largest size that a job had in its last try; None if that is not known."""
    sizes = [one["gpus"] for one in last_try(attempts)]
    return None if None in sizes else max(sizes)


def _span(since: float | None, until: float | None) -> float | None:
    return float(until - since) if since is not None and until is not None and until >= since else None


def _quirks(submit: float | None, start: float | None, state: str) -> list[str]:
    early = submit is not None and start is not None and start < submit
    return [*(["start_before_submit"] if early else []), *(["unknown_state"] if state == State.UNKNOWN.value else [])]


class Writer:
    """Writes jobs into the store, in place of its rows of the same jobs.

    Args:
        sink: takes the rows.
        names: of the formats that describe the same jobs: jobs of sources of other formats are left as they are.
    """

    def __init__(self, sink: Sink, *names: str) -> None:
        self._sink = sink
        self._names = list(names)
        self._queues: set[str] = set()

    def put(self, jobs: dict[str, Job], stale: Sequence[str]) -> None:
        """Write some jobs, each whole, once the rows of those that the store has already are gone.

        Args:
            jobs: by name.
            stale: those that the store has, of `stored`.
        """
        own: dict[str, object] = {"cluster": self._sink.cluster, "jobs": list(stale)}
        for table in ("job_rows", "attempt_rows", "placements") if stale else ():
            self._sink.execute(
                f"DELETE FROM {table} WHERE cluster = $cluster AND job IN (SELECT unnest($jobs::VARCHAR[]))",  # noqa: S608
                own,
            )
        made = [rows(name, job) for name, job in jobs.items()]
        for table, each in (
            ("jobs", [row for row, _, _ in made]),
            ("attempts", [row for _, many, _ in made for row in many]),
            ("placements", [row for _, _, many in made for row in many]),
        ):
            if each:
                self._sink.insert(table, _frame(each))
        self._queues.update(row["queue"] for row, _, _ in made if row["queue"])

    def finish(self) -> None:
        """Write the queues."""
        add_queues(self._sink, self._queues)

    def stored(self, names: list[str]) -> tuple[dict[str, Job], set[str]]:
        """Return the jobs that the store has from such logs, and which it has from other sources."""
        of: dict[str, object] = {"cluster": self._sink.cluster, "jobs": names}
        there = "cluster = $cluster AND job IN (SELECT unnest($jobs::VARCHAR[]))"
        mine = "(source = $source OR source IN (SELECT source FROM sources WHERE list_contains($formats, format)))"
        with_source = {**of, "source": self._sink.source, "formats": self._names}
        found = self._sink.query(_seconds(f"SELECT * FROM job_rows WHERE {there} AND {mine}", _FACT_TIMES), with_source)  # noqa: S608
        known: dict[str, Job] = {}
        for row in found.iter_rows(named=True):
            job = known[row["job"]] = Job()
            job.facts = {name: row[name] for name in FACTS if row[name] is not None}
            job.final = row["state"] not in OPEN
            job.quirks = [quirk for quirk in row["quirks"] or () if quirk in KEPT]
        every = self._sink.query(f"SELECT job FROM jobs WHERE {there}", of)["job"].to_list()  # noqa: S608
        if known:
            self._runs(known, of, there)
        return known, set(every) - set(known)

    def _runs(self, known: dict[str, Job], of: dict[str, object], there: str) -> None:
        placed: dict[tuple[str, int], dict[str, Any]] = {}
        for row in self._sink.query(f"SELECT * FROM placements WHERE {there}", of).iter_rows(named=True):  # noqa: S608
            spot = placed.setdefault((row["job"], row["attempt"]), {"placed": {}, "estimated": row["estimated"]})
            spot["placed"][row["machine"]] = row["gpus"]
        sql = _seconds(f"SELECT * FROM attempt_rows WHERE {there} ORDER BY job, attempt", _RUN_TIMES)  # noqa: S608
        for row in self._sink.query(sql, of).iter_rows(named=True):
            job = known.get(row["job"])
            if job is None:
                continue
            if row["start_ts"] is None:
                if job.final and (row["end_ts"] is not None or row["source_state"] is None):
                    job.last = (row["state"], row["end_ts"], row["reason"])
                if row["source_state"] is None:
                    continue
            run = {name: row[name] for name in RUN} | {"placed": {}, "estimated": False}
            run |= placed.get((row["job"], row["attempt"]), {})
            run["quirks"] = [quirk for quirk in run["quirks"] if quirk in {"suspended", "resized"}]
            if "no_end" in row["quirks"]:
                run["state"] = State.RUNNING.value
            job.runs[row["start_ts"]] = run


def _seconds(sql: str, times: tuple[str, ...]) -> str:
    changed = ", ".join(f"epoch_us({name}) / 1000000 AS {name}" for name in times)
    return f"SELECT * REPLACE ({changed}) FROM ({sql})"  # noqa: S608


def _frame(each: list[dict[str, Any]]) -> Any:
    import polars as pl
    import pyarrow as pa

    kinds: dict[str, Any] = {
        name: pl.List(pl.String) if name == "quirks" else pl.Boolean if name == "estimated" else
        pl.Float64 if name in _REALS | _TIMES else pl.Int64 if name in _COUNTS else pl.String
        for name in each[0]
    }  # fmt: skip
    # Polars makes a list column row by row, Arrow in one pass
    made: dict[str, Any] = {name: [row[name] for row in each] for name in kinds}
    if "quirks" in made:
        made["quirks"] = pl.Series(pa.array(made["quirks"], pa.list_(pa.string())))
    frame = pl.DataFrame(made, schema=kinds, strict=False)
    return frame.with_columns(
        (pl.col(name) * 1_000_000).round().cast(pl.Int64).cast(pl.Datetime("us", "UTC"))
        for name in frame.columns
        if name in _TIMES
    )
