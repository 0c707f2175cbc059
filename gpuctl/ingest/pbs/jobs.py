"""Jobs of PBS and Torque, made from the records of one file and completed from files loaded before."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from gpuctl.core.states import State
from gpuctl.ingest.core.job_rows import DUPLICATE_JOB, add_queues

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

BATCH = 20_000
"""Jobs that have ended are written this many at a time."""
OPEN = frozenset({State.PENDING.value, State.RUNNING.value})
REQUEUED = "requeued"
"""Reason of a run that ended and whose job is back in its queue."""
_QUARTER_S, _NEAR_S, _FARTHEST_S = 900, 90, 14 * 3600
FACTS = (
    *("queue", "user", "account", "name", "array_job", "array_task", "submit_ts", "eligible_ts", "nodes", "cpus"),
    *("gpus", "mem_mb", "time_limit_s"),
)
"""Columns of ``jobs`` that records of any kind may show."""
RUN = ("start_ts", "end_ts", "state", "source_state", "gpus", "servers", "exit_code", "exit_signal", "reason", "quirks")
"""Columns of ``attempts`` that a run has of its own."""
_FACT_TIMES, _RUN_TIMES = ("submit_ts", "eligible_ts"), ("start_ts", "end_ts")
_TIMES = frozenset({"submit_ts", "eligible_ts", "start_ts", "end_ts", "queued_ts", "released_ts"})
_REALS = frozenset({"gpus", "wait_s", "run_s", "run_span_s", "run_sum_s", "run_last_s"})
_COUNTS = frozenset(
    ("nodes", "cpus", "mem_mb", "time_limit_s", "attempts", "attempt", "servers", "exit_code", "exit_signal")
)


class Clock:
    """The offset of the stamps of records, which carry no zone, from UTC.

    The stamp of the record of an end and the time ``end`` in it are the same instant: their difference, in quarters of
    an hour, holds until another record shows another one. Without such a record the zone is the sink's.
    """

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        self._since: list[int] = []
        self._offsets: list[int] = []

    def learn(self, stamp: int, end: int) -> None:
        """Take a stamp, as if it were UTC, and the same instant in seconds from 1970."""
        offset = round((stamp - end) / _QUARTER_S) * _QUARTER_S
        if abs(stamp - end - offset) > _NEAR_S or abs(offset) > _FARTHEST_S:
            return
        if not self._since or (stamp >= self._since[-1] and offset != self._offsets[-1]):
            self._since.append(stamp)
            self._offsets.append(offset)

    def utc(self, stamp: int) -> int:
        """Return the seconds from 1970 of a stamp that is given as if it were UTC."""
        if self._since:
            return stamp - self._offsets[max(0, bisect_right(self._since, stamp) - 1)]
        local = datetime.fromtimestamp(stamp, UTC).replace(tzinfo=self._zone)
        return int(local.timestamp())


class Job:
    """One job, as far as the records read so far describe it.

    Attributes:
        facts: known values of `FACTS`.
        runs: by start; of `RUN`, and ``placed`` and ``estimated``.
        final: whether the record of its end was read.
        last: the state, end and reason of a job that ended or waits without a run; None if its last run shows.
        line: number and text of the record of its end.
    """

    __slots__ = ("facts", "final", "last", "line", "runs")

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.runs: dict[int | None, dict[str, Any]] = {}
        self.final = False
        self.last: tuple[str, int | None, str | None] | None = None
        self.line: tuple[int, str] | None = None

    def known(self, facts: dict[str, Any], *, later: bool = True) -> None:
        """Add facts; those of a later record count before the ones there are."""
        known = {name: value for name, value in facts.items() if value is not None}
        self.facts = {**self.facts, **known} if later else {**known, **self.facts}

    def add(self, older: Job) -> bool:
        """Add the store's facts of this job; return whether anything here is new.

        Args:
            older: the job as sources loaded before have it.
        """
        fresh = [k for k, run in self.runs.items() if k not in older.runs or _ended(run) > _ended(older.runs[k])]
        news = bool(fresh) or (not older.final and (self.final or self.last is not None))
        news = news or not self.facts.keys() <= older.facts.keys()
        self.known(older.facts, later=older.final and not self.final)
        for start, run in older.runs.items():
            if start not in self.runs or _ended(run) >= _ended(self.runs[start]):
                self.runs[start] = run
        if self.last is None or older.final:
            self.last = older.last
        self.final = self.final or older.final
        return news


def _differ(facts: dict[str, Any], others: dict[str, Any]) -> bool:
    """Whether two jobs of one number were submitted at different times."""
    both = {facts.get("submit_ts"), others.get("submit_ts")} - {None}
    return len(both) > 1


def _ended(run: dict[str, Any]) -> bool:
    return run["state"] not in OPEN


def rows(name: str, job: Job) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the row of a job, and those of its attempts and placements."""
    runs = sorted(job.runs.values(), key=lambda run: (run["start_ts"] is None, run["start_ts"] or 0))
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
        **{fact: job.facts.get(fact) for fact in FACTS},
        **{key: last[key] for key in ("end_ts", "state", "source_state", "exit_code", "exit_signal", "reason")},
        "job": name,
        "start_ts": start,
        "eligible_ts": attempts[0]["eligible_ts"],
        "gpus": last["gpus"] if last["gpus"] is not None else job.facts.get("gpus"),
        "attempts": len(attempts),
        "wait_s": _span(submit, start),
        "run_span_s": _span(start, last["end_ts"]),
        "run_sum_s": sum(lengths) if lengths else None,
        "run_last_s": last["run_s"],
        "quirks": _quirks(submit, start, last["state"]),
    }
    return row, attempts, placed


def _attempt(  # noqa: PLR0917 - a run and what is around it
    name: str, number: int, run: dict[str, Any], after: dict[str, Any] | None, queued: int | None, eligible: int | None
) -> dict[str, Any]:
    start, end, state = run["start_ts"], run["end_ts"], run["state"]
    quirks = [*run["quirks"]]
    released = None if state in OPEN else end if start is None or end is None else max(start, end)
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
        **{key: run[key] for key in ("start_ts", "end_ts", "source_state", "gpus", "exit_code", "exit_signal")},
        "job": name, "attempt": number, "queued_ts": queued, "eligible_ts": ready, "released_ts": released,
        "state": state, "servers": len(run["placed"]) or run["servers"] or 0, "reason": run["reason"],
        "wait_s": _span(queued, start), "run_s": _span(start, end), "quirks": list(dict.fromkeys(quirks)),
    }  # fmt: skip


def _span(since: int | None, until: int | None) -> float | None:
    return float(until - since) if since is not None and until is not None and until >= since else None


def _quirks(submit: int | None, start: int | None, state: str) -> list[str]:
    early = submit is not None and start is not None and start < submit
    return [*(["start_before_submit"] if early else []), *(["unknown_state"] if state == State.UNKNOWN.value else [])]


class Writer:
    """Writes jobs into the store, merged with its rows of the same jobs.

    Args:
        sink: takes the rows.
        name: of the format: jobs of sources of another one are left as they are.
    """

    def __init__(self, sink: Sink, name: str) -> None:
        self._sink = sink
        self._name = name
        self._queues: set[str] = set()

    def write(self, jobs: dict[str, Job]) -> None:
        """Write some jobs; the record of an end that adds nothing counts as already stored."""
        known, others = self._stored(list(jobs))
        stale, made = [], []
        for name, job in jobs.items():
            older = known.get(name)
            reused = older is not None and older.final and _differ(job.facts, older.facts)
            if name in others or reused:
                if job.line is not None:
                    self._sink.reject(job.line[0], DUPLICATE_JOB, job.line[1])
                continue
            if older is not None and not job.add(older):
                if job.line is not None:
                    self._sink.already_stored()
                continue
            if older is not None:
                stale.append(name)
            if job.line is not None:
                self._sink.loaded()
            made.append(rows(name, job))
        own: dict[str, object] = {"cluster": self._sink.cluster, "jobs": stale}
        for table in ("job_rows", "attempt_rows", "placements") if stale else ():
            self._sink.execute(
                f"DELETE FROM {table} WHERE cluster = $cluster AND job IN (SELECT unnest($jobs::VARCHAR[]))",  # noqa: S608
                own,
            )
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

    def _stored(self, names: list[str]) -> tuple[dict[str, Job], set[str]]:
        """Return the jobs that the store has from such logs, and which it has from other sources."""
        of: dict[str, object] = {"cluster": self._sink.cluster, "jobs": names}
        there = "cluster = $cluster AND job IN (SELECT unnest($jobs::VARCHAR[]))"
        mine = "(source = $source OR source IN (SELECT source FROM sources WHERE format = $format))"
        with_source = {**of, "source": self._sink.source, "format": self._name}
        found = self._sink.query(_seconds(f"SELECT * FROM job_rows WHERE {there} AND {mine}", _FACT_TIMES), with_source)  # noqa: S608
        known: dict[str, Job] = {}
        for row in found.iter_rows(named=True):
            job = known[row["job"]] = Job()
            job.facts = {name: row[name] for name in FACTS if row[name] is not None}
            job.final = row["state"] not in OPEN
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
            run["quirks"] = [quirk for quirk in run["quirks"] if quirk == "suspended"]
            if "no_end" in row["quirks"]:
                run["state"] = State.RUNNING.value
            job.runs[row["start_ts"]] = run


def _seconds(sql: str, times: tuple[str, ...]) -> str:
    changed = ", ".join(f"epoch({name})::BIGINT AS {name}" for name in times)
    return f"SELECT * REPLACE ({changed}) FROM ({sql})"  # noqa: S608


def _frame(each: list[dict[str, Any]]) -> Any:
    import polars as pl

    kinds: dict[str, Any] = {
        name: pl.List(pl.String) if name == "quirks" else pl.Boolean if name == "estimated" else
        pl.Float64 if name in _REALS else pl.Int64 if name in _COUNTS | _TIMES else pl.String
        for name in each[0]
    }  # fmt: skip
    frame = pl.DataFrame(each, schema=kinds)
    return frame.with_columns(
        (pl.col(name) * 1_000_000).cast(pl.Datetime("us", "UTC")) for name in frame.columns if name in _TIMES
    )
