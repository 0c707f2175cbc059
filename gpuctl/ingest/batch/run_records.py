"""Writes jobs of sources in which a record describes one run of a job, or a job as it stands at an instant.

A job may have several records, in one file or in several: it was requeued, files overlap, or an accounting file
completes what a listing of the queue shows. A scheduler whose job numbers start again at 1 gives one number to several
jobs: the time of submission tells them apart, and behind the number of the later one it becomes part of its name.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gpuctl.core.states import State
from gpuctl.ingest.batch.jobs import BATCH, REQUEUED, Job, Writer, differ, ended, when
from gpuctl.ingest.core.format import RAW_LIMIT
from gpuctl.ingest.core.job_rows import DUPLICATE_JOB, OTHER_RECORD
from gpuctl.ingest.core.known_jobs import KnownJobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.ingest.core.format import Sink

_SAME = ("end_ts", "state", "gpus", "exit_code", "exit_signal")
"""Columns in which two records of one run agree, where both have a value."""


Key: TypeAlias = tuple[str, float | None]
"""A job's number and the time of its submission."""


class Record(NamedTuple):
    """What one record states.

    Attributes:
        job: the job's name.
        facts: columns of ``jobs`` (`gpuctl.ingest.batch.jobs.FACTS`), None if not stated.
        run: columns of ``attempts``, made by `run_of`; None if the job waits.
        earlier: runs before it, as far as the record states them.
        started: how often the job had started up to this run, if the record counts that.
    """

    job: str
    facts: dict[str, Any]
    run: dict[str, Any] | None
    earlier: Sequence[dict[str, Any]] = ()
    started: int | None = None


def run_of(
    start: float | None, end: float | None, state: State, source_state: str | None, gpus: float | None, **more: Any
) -> dict[str, Any]:
    """Return a run; times in seconds since 1970.

    Args:
        start: None if the job ended without having started.
        end: None if it runs.
        state: of the run.
        source_state: the source's word; never None if it did not start.
        gpus: that it held.
        more: further columns, ``placed`` (GPUs on each node) and ``estimated``.
    """
    blank = {"servers": None, "exit_code": None, "exit_signal": None, "reason": None, "cpu_s": None}
    own = {"start_ts": start, "end_ts": end, "state": state.value, "source_state": source_state, "gpus": gpus}
    return {**blank, "quirks": [], "placed": {}, "estimated": False, **own, **more}


class RunRecords:
    """Takes the records of one file.

    Args:
        sink: takes the rows, and the count of each record as loaded, already stored or rejected.
        names: of the formats that describe the same jobs.
        slack_s: seconds by which the ends of one run may differ between records.
        reused: whether a job of a number that another one has, submitted at another time, is a job of its own.
    """

    def __init__(self, sink: Sink, *names: str, slack_s: float = 0.0, reused: bool = True) -> None:
        self._sink = sink
        self._reused = reused
        self._slack_s = slack_s
        self._writer = Writer(sink, *names)
        self._jobs: dict[Key, Job] = {}
        self._times: dict[str, list[float | None]] = {}
        self._lines: dict[Key, list[tuple[float | None, int, str]]] = {}
        """Of each job: start of the run, line and text of the record."""
        self._started: dict[Key, int] = {}
        self._seen = KnownJobs()
        has_jobs = "SELECT count(*) > 0 FROM jobs WHERE cluster = $cluster"
        self._others = bool(sink.query(has_jobs, {"cluster": sink.cluster}).item())

    def add(self, record: Record, line: int, raw: str) -> None:
        """Take a record.

        Args:
            record: what it states.
            line: 1-based line or number of the record.
            raw: its text, for a reject.
        """
        facts, run = record.facts, record.run
        key = self._key(record.job, facts.get("submit_ts"))
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = Job()
            self._lines[key] = []
        if record.started is not None:
            self._started[key] = max(record.started, self._started.get(key, 0))
        for each in record.earlier:
            job.runs.setdefault(each["start_ts"], each)
        start = run["start_ts"] if run is not None else None
        if run is None:
            if any(not ended(each) or each["reason"] != REQUEUED for each in job.runs.values()):
                self._sink.already_stored()
                return
        elif start in job.runs and not _lacks(job.runs[start], run):
            self._repeat(job, run, facts, line, raw)
            return
        else:
            _take(job, run)
        job.known(facts, later=run is not None and _newest(job) is run)
        self._lines[key].append((start, line, raw[:RAW_LIMIT]))
        if len(self._jobs) >= BATCH:
            self._flush()

    def _key(self, name: str, submit: float | None) -> Key:
        """Tell the jobs of one number apart by their submission; a record without one is of the first of them."""
        times = self._times.setdefault(name, [])
        if not self._reused or submit is None or times == [None]:
            submit = times[0] if times else submit
        if submit not in times:
            times.append(submit)
        return name, submit

    def finish(self) -> None:
        """Write what is left, and the queues."""
        self._flush()
        self._writer.finish()

    def _repeat(self, job: Job, run: dict[str, Any], facts: dict[str, Any], line: int, raw: str) -> None:
        before = job.runs[run["start_ts"]]
        if ended(run) and not ended(before):
            _take(job, run)
            job.known(facts)
            self._sink.loaded()
        elif self._agree(run, before) or not ended(run):
            job.known(facts, later=False)
            self._sink.already_stored()
        else:
            self._sink.reject(line, OTHER_RECORD, raw)

    def _agree(self, run: dict[str, Any], other: dict[str, Any]) -> bool:
        for name in _SAME:
            one, two = run[name], other[name]
            if one is None or two is None or one == two:
                continue
            if name != "end_ts" or abs(one - two) > self._slack_s:
                return False
        return True

    def _flush(self) -> None:
        jobs, lines, started = self._jobs, self._lines, self._started
        self._jobs, self._lines, self._started, self._times = {}, {}, {}, {}
        known, others = self._known([*dict.fromkeys(name for name, _ in jobs)])
        names = self._named(jobs, known)
        later = [name for key, name in names.items() if name != key[0]]
        if later:
            more, foreign = self._writer.stored(later)
            known, others = {**known, **more}, others | foreign
        made, stale = {}, []
        for key, name in names.items():
            job, older = jobs[key], known.get(name)
            if name in others or (older is not None and differ(job.facts, older.facts)):
                for _, line, raw in lines[key]:
                    self._sink.reject(line, DUPLICATE_JOB, raw)
            elif older is None:
                self._sink.loaded(len(lines[key]))
                _mark_missing(job, started.get(key))
                made[name] = job
            elif self._merge(job, older, lines[key], started.get(key)):
                made[name] = job
                stale.append(name)
        self._writer.put(made, stale)

    def _named(self, jobs: dict[Key, Job], known: dict[str, Job]) -> dict[Key, str]:
        """Return the name of each job: its number, or with the time of submission if another job has that number."""
        names: dict[Key, str] = {}
        taken: set[str] = set()
        # a job that the store has keeps its name, whichever comes first in this file
        stored = {key for key, job in jobs.items() if key[0] in known and not differ(job.facts, known[key[0]].facts)}
        for key, job in jobs.items():
            name = key[0]
            plain = key in stored or (name not in known and name not in taken)
            if plain or not self._reused:
                taken.add(name)
                names[key] = name
            else:
                job.quirks.append("id_reused")
                names[key] = later_name(name, job.facts)
        return names

    def _known(self, names: list[str]) -> tuple[dict[str, Job], set[str]]:
        """Return the jobs that the store has; it is not asked about jobs that neither it nor this file had before."""
        import polars as pl

        if not names:
            return {}, set()
        again = self._seen.add(pl.Series(names), pl.Series(range(len(names)))) > 0
        asked = names if self._others else pl.Series(names).filter(again).to_list()
        return self._writer.stored(asked) if asked else ({}, set())

    def _merge(self, job: Job, older: Job, lines: list[tuple[float | None, int, str]], started: int | None) -> bool:
        """Add the store's runs of a job; return whether the records have anything new."""
        news = False
        for start, line, raw in lines:
            run, before = job.runs.get(start), older.runs.get(start)
            if run is None or (before is not None and not ended(run)):
                self._sink.already_stored()
            elif before is None or not ended(before) or _lacks(before, run):
                news = True
                self._sink.loaded()
            elif self._agree(run, before):
                self._sink.already_stored()
            else:
                self._sink.reject(line, OTHER_RECORD, raw)
        if not news:
            return False
        latest, latest_before = _newest(job), _newest(older)
        newer = latest is not None and (latest_before is None or when(latest) >= when(latest_before))
        kept = {
            start: run
            for start, run in older.runs.items()
            if start not in job.runs or (ended(run) and not _lacks(run, job.runs[start]))
        }
        job.runs = {**job.runs, **kept}
        job.quirks = list(dict.fromkeys([*older.quirks, *job.quirks]))
        job.known(older.facts, later=not newer)
        job.final = job.final or older.final
        if newer:
            _mark_missing(job, started)
        return True


def later_name(name: str, facts: dict[str, Any]) -> str:
    """Return the name of a job whose number an earlier job had: with the time of its submission."""
    at = datetime.fromtimestamp(facts["submit_ts"], UTC)
    return f"{name}@{at:%Y-%m-%dT%H:%M:%SZ}"


def _mark_missing(job: Job, started: int | None) -> None:
    """Mark a job of which not all runs are known, and take the mark off where the last missing one was found."""
    if started is None:
        return
    known = sum(start is not None for start in job.runs)
    job.quirks = [quirk for quirk in job.quirks if quirk != "earlier_attempts_lost"]
    if known < started:
        job.quirks.append("earlier_attempts_lost")


def _take(job: Job, run: dict[str, Any]) -> None:
    job.runs[run["start_ts"]] = run
    job.final = job.final or (ended(run) and run["reason"] != REQUEUED)


def _lacks(run: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a run that is over has no end, and another record of it has one."""
    return ended(run) and run["end_ts"] is None and other["end_ts"] is not None


def _newest(job: Job) -> dict[str, Any] | None:
    runs = job.runs.values()
    return next(iter(runs)) if len(runs) == 1 else max(runs, key=when, default=None)
