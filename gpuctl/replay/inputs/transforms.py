"""Other workloads made from one: parts of it, more load, other draws. Inputs are never modified."""

from __future__ import annotations

import dataclasses
import math
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import literal, named, note
from gpuctl.core.numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.job_filter import JobFilter, Name
    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Ints, Workload


DAY_S = 86_400.0
ENOUGH_DAYS = 5
"""Fewest whole days for a bootstrap over days; with fewer, it draws from `FEW_DAYS_BLOCKS` equal parts of the time."""
ENOUGH = 5
"""Fewest weeks or users from which their variation can be estimated."""

FEW_DAYS_BLOCKS = 20


def take(workload: Workload, jobs: Ints, *notes: Note) -> Workload:
    """Return a workload of some jobs of another one.

    Args:
        workload: to take from.
        jobs: job numbers, each at most once, ascending; shape (k,).
        notes: added to the workload's.

    Returns:
        those jobs with all their data. Names of queues, users and GPU types keep their numbers. Dependencies on other
            jobs are dropped, with a note.
    """
    place = np.full(workload.size, -1, np.int64)
    place[jobs] = np.arange(jobs.size)
    depends = place[workload.depends]
    inside = (depends >= 0).all(axis=1)
    lost = int(((depends[:, 0] >= 0) & ~inside).sum())
    more = (
        (
            note(
                "{lost:,} {lost|dependency|dependencies} on jobs outside the replay {lost|is|are} dropped",
                lost=lost,
            ),
        )
        if lost
        else ()
    )
    return dataclasses.replace(gather(workload, jobs), depends=depends[inside], notes=(*workload.notes, *notes, *more))


def forget_placement(workload: Workload) -> Workload:
    """Return the same jobs without recorded placements, whose node numbers are those of the trace's own cluster.

    For replays on other nodes, where recorded places are unknown: see `gpuctl.replay.models.speed`.
    """
    none = np.zeros(0, np.int64)
    if not workload.piece_node.size:
        return workload
    starts = np.zeros(workload.segment_s.size + 1, np.int64)
    text = note("recorded placements are not used: these are not the trace's nodes")
    return dataclasses.replace(
        workload, piece_start=starts, piece_node=none, piece_gpus=none, notes=(*workload.notes, text)
    )


def offered_gpus(workload: Workload) -> float:
    """Return the load that jobs offer: mean GPUs that they need from the first submission to the last one.

    GPU-seconds of all segments over the time between these submissions; inf if all are submitted at once.
    """
    if not workload.size:
        return 0.0
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    gpu_s = float((workload.segment_s * workload.gpus[owner]).sum())
    span = float(workload.submit.max() - workload.submit.min())
    return gpu_s / span if span else math.inf


def load_factor(text: str) -> float:
    """Return a factor of ``--scale-load``.

    Raises:
        UsageError: it is not a number.
    """
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--scale-load {text}: expected a number", hint="1.2 is 20 % more load") from None


def scale_load(workload: Workload, factor: float) -> Workload:
    """Return the same jobs submitted `factor` times as fast.

    The load, `offered_gpus`, is multiplied by `factor`: submissions and eligible times, in seconds, are divided by it;
    run times, gangs, limits and the order stay. Recorded starts no longer fit and are dropped. Nothing is drawn at
    random.

    Args:
        workload: the jobs.
        factor: above 0; 1 returns the workload unchanged.

    Raises:
        UsageError: the factor is not finite or not above 0.
    """
    if not (math.isfinite(factor) and factor > 0):
        raise UsageError(f"load factor {factor:g}: expected a finite number above 0", hint="1.2 is 20 % more load")
    if factor == 1:
        return workload
    return dataclasses.replace(
        workload,
        submit=workload.submit / factor,
        eligible=np.maximum(workload.eligible / factor, workload.submit / factor),
        deadline=_deadlines(workload, workload.submit / factor),
        recorded_start=np.full_like(workload.recorded_start, np.nan),
        notes=(
            *workload.notes,
            note(
                "load x {factor}: interarrival times are divided by it; calendar times are not real",
                factor=literal(number(factor)),
            ),
        ),
    )


def window(workload: Workload, start: str | float | None = None, end: str | float | None = None) -> Workload:
    """Return the jobs submitted from `start` on and before `end`; their times stay unchanged.

    The replay begins with an empty cluster, so a note counts the jobs left out that ran or waited at `start`, if
    recorded starts are known.

    Args:
        workload: the jobs.
        start: seconds, or an ISO date or time (``2017-10-09``, ``2017-10-09T12:00``), in the zone of the workload's
            ``origin`` if it names none; None: from the first job on.
        end: the same; None: to the last job.

    Raises:
        UsageError: it is not a time, the workload has no calendar, `end` is not after `start`, or no job is between
            them.
    """
    begin = -math.inf if start is None else instant(workload, start)
    until = math.inf if end is None else instant(workload, end)
    if not begin < until:
        raise UsageError(f"the window ends at {end}, which is not after its start, {start}")
    jobs = np.flatnonzero((workload.submit >= begin) & (workload.submit < until))
    if not jobs.size:
        raise UsageError(
            f"no job was submitted in the window from {start} to {end}; the first one was at "
            f"{_calendar_time(workload, workload.submit.min())}, "
            f"the last one at {_calendar_time(workload, workload.submit.max())}"
        )
    begins = note("the first") if start is None else named("value", str(start))
    ends = note("the last") if end is None else named("value", str(end))
    notes = [
        note(
            "{size:,} of {size_2:,} job{size_2||s} {size|is|are} in the window from {begins} to {ends}",
            size=jobs.size,
            size_2=workload.size,
            begins=begins,
            ends=ends,
        )
    ]
    before = workload.submit < begin
    if before.any() and np.isfinite(workload.recorded_start).any():
        running, waiting = (int((state & before).sum()) for state in _recorded_at(workload, begin))
        notes.append(
            note(
                "the cluster starts empty; in the trace, {running:,} earlier job{running||s} {running|was|were} "
                "running and {waiting:,} "
                "waiting at the window's start",
                running=running,
                waiting=waiting,
            )
        )
    elif before.any():
        notes.append(
            note(
                "the cluster starts empty, so the first waits come out too short: the {earlier:,} job{earlier||s} "
                "submitted before the window {earlier|is|are} left out, and it is not known which of them ran or "
                "waited at its start. --warmup leaves the first jobs of the window out of the figures",
                earlier=int(before.sum()),
            )
        )
    return take(workload, jobs, *notes)


def instant(workload: Workload, when: str | float) -> float:
    """Return the second of a workload given by a number of seconds or an ISO date or time.

    Raises:
        UsageError: it is neither, or the workload has no calendar.
    """
    try:
        second = float(when)
    except ValueError:
        pass
    else:
        if not math.isfinite(second):
            raise UsageError(f"{when!r} is not a time", hint=_TIMES)
        return second
    try:
        parsed = datetime.fromisoformat(str(when))
    except ValueError as error:
        raise UsageError(f"{when!r} is not a time", hint=_TIMES) from error
    origin = workload.origin
    if origin is None:
        raise UsageError(f"{when!r}: these jobs have no calendar", hint="give seconds")
    zone = origin.tzinfo
    if parsed.tzinfo is not None and zone is not None:
        parsed = parsed.astimezone(zone)
    # differences of the zone's wall clock, like the workload's times
    return (parsed.replace(tzinfo=None) - origin.replace(tzinfo=None)).total_seconds()


_TIMES = "expected seconds (86400) or an ISO date or time (2017-10-09, 2017-10-09T12:00)"


def bootstrap(workload: Workload, n: int, seed: int, *, weeks: bool = False) -> Workload:
    """Return `n` jobs drawn from a workload, at the same load on average.

    Days (or weeks) from the first submission on are drawn with replacement and put one after the other, each with its
    jobs at their times of day, until there are `n` jobs; the rest of the last one is cut off. Time after the last whole
    one is not used. With fewer than `ENOUGH_DAYS` whole days the time from the first submission to the last one is cut
    into `FEW_DAYS_BLOCKS` equal parts that are drawn instead.

    Args:
        workload: what to draw from; at least one job.
        n: how many, at least 1.
        seed: of numpy's generator; the same one gives the same jobs.
        weeks: draw weeks of seven days, so that working days and weekends stay together.

    Returns:
        jobs called ``NAME~K`` for the K-th draw (0-based) of their block. Recorded starts and dependencies are dropped,
            with a note. Second 0 is the first day's start; there is no calendar.

    Raises:
        UsageError: `n` is less than 1, there is no job to draw from, or fewer than `ENOUGH` whole weeks.
    """
    if n < 1 or not workload.size:
        raise UsageError(f"cannot draw {n} jobs from {workload.size}")
    first = float(workload.submit.min())
    span = float(workload.submit.max()) - first
    whole = 7 * DAY_S if weeks else DAY_S
    days = int(span // whole)
    if weeks and days < ENOUGH:
        raise UsageError(
            f"{workload.name}: {days} whole weeks; drawing weeks takes at least {ENOUGH}", hint="--resample days"
        )
    blocks, length = (days, whole) if days >= ENOUGH_DAYS else (FEW_DAYS_BLOCKS if span else 1, span / FEW_DAYS_BLOCKS)
    block = np.floor((workload.submit - first) / length).astype(np.int64) if span else np.zeros(workload.size, np.int64)
    if days < ENOUGH_DAYS:
        block = np.minimum(block, blocks - 1)
    source = np.flatnonzero(block < blocks)
    source = source[np.argsort(block[source], kind="stable")]
    begin = np.searchsorted(block[source], np.arange(blocks + 1))
    sizes = np.diff(begin)
    rng = np.random.default_rng(seed)
    drawn = np.zeros(0, np.int64)
    while sizes[drawn].sum() < n:
        drawn = np.append(drawn, rng.integers(0, blocks, 2 + int((n - sizes[drawn].sum()) / sizes.mean())))
    counts = sizes[drawn]
    slot = np.repeat(np.arange(drawn.size), counts)[:n]
    jobs = source[_ranges(begin[drawn], counts)[:n]]
    shift = slot * length - (first + block[jobs] * length)
    order = np.argsort(jobs, kind="stable")
    times = np.empty(n, np.int64)
    times[order] = np.arange(n) - np.searchsorted(jobs[order], jobs[order])
    made = gather(workload, jobs)
    parts = note("weeks") if weeks else note("days") if length == DAY_S else note("equal parts of the time")
    text = note("{n:,} job{n||s} drawn from {blocks} {parts} (seed {seed})", n=n, blocks=blocks, parts=parts, seed=seed)
    # rounding must not swap neighbours across the boundary of two days
    submit = np.maximum.accumulate(made.submit + shift)
    return dataclasses.replace(
        made,
        ids=tuple(f"{name}~{k}" for name, k in zip(made.ids, times.tolist(), strict=True)),
        submit=submit,
        eligible=np.maximum(made.eligible + shift, submit),
        deadline=_deadlines(made, submit),
        app=np.arange(n, dtype=np.int64),
        depends=np.zeros((0, 2), np.int64),
        recorded_start=np.full_like(made.recorded_start, np.nan),
        origin=None,
        notes=(*workload.notes, text, *_dropped(workload)),
    )


def bootstrap_users(workload: Workload, seed: int) -> Workload:
    """Return the jobs of as many users as there are, drawn with replacement, each user with all jobs.

    Jobs stay at their times, so that users who work at the same time still do; the number of jobs and the load differ
    between draws. Jobs without a user count as one user's.

    Args:
        workload: what to draw from.
        seed: of numpy's generator; the same one gives the same jobs.

    Returns:
        jobs called ``NAME~K`` for the K-th draw (0-based) of their user. A repeated user becomes another user,
            ``USER~K``. Recorded starts and dependencies are dropped, with a note.

    Raises:
        UsageError: there are fewer than `ENOUGH` users.
    """
    known = np.unique(workload.user)
    if known.size < ENOUGH:
        raise UsageError(
            f"{workload.name}: {known.size} users; drawing users takes at least {ENOUGH}", hint="--resample days"
        )
    drawn = np.bincount(np.random.default_rng(seed).integers(0, known.size, known.size), minlength=known.size)
    times = drawn[np.searchsorted(known, workload.user)]
    jobs = np.repeat(np.arange(workload.size), times)
    again = _ranges(np.zeros(workload.size, np.int64), times)
    order = np.lexsort((again, jobs))
    jobs, again = jobs[order], again[order]
    names = {(user, 0): user for user in range(len(workload.users))}
    users = list(workload.users)
    for user, count in zip(known.tolist(), drawn.tolist(), strict=True):
        for k in range(1, count):
            if user >= 0:
                names[user, k] = len(users)
                users.append(f"{workload.users[user]}~{k}")
    user = np.array(
        [names.get(key, -1) for key in zip(workload.user[jobs].tolist(), again.tolist(), strict=True)], np.int64
    )
    made = gather(workload, jobs)
    return dataclasses.replace(
        made,
        ids=tuple(f"{name}~{k}" for name, k in zip(made.ids, again.tolist(), strict=True)),
        user=user.astype(workload.user.dtype),
        users=tuple(users),
        app=np.arange(jobs.size, dtype=np.int64),
        recorded_start=np.full_like(made.recorded_start, np.nan),
        notes=(
            *workload.notes,
            note(
                "{size:,} job{size||s} of {users:,} user{users||s} drawn from {users:,} (seed {seed})",
                size=jobs.size,
                users=known.size,
                seed=seed,
            ),
            *_dropped(workload),
        ),
    )


def _dropped(workload: Workload) -> tuple[Note, ...]:
    if not len(workload.depends):
        return ()
    return (note("{depends:,} {depends|dependency is|dependencies are} dropped", depends=len(workload.depends)),)


def gather(workload: Workload, jobs: Ints) -> Workload:
    """The jobs of these numbers, which may repeat, without dependencies."""
    w = workload
    segments, segment_start = _ragged(w.segment_start, jobs)
    pieces, piece_start = _ragged(w.piece_start, segments)
    ids, state = np.array([*w.ids, ""], object)[jobs], np.array([*w.state, ""], object)[jobs]
    return dataclasses.replace(
        w,
        ids=tuple(ids.tolist()),
        submit=w.submit[jobs],
        eligible=w.eligible[jobs],
        gpus=w.gpus[jobs],
        queue=w.queue[jobs],
        user=w.user[jobs],
        time_limit=w.time_limit[jobs],
        gpu_type=w.gpu_type[jobs],
        app=w.app[jobs],
        depends=np.zeros((0, 2), np.int64),
        segment_start=segment_start,
        segment_s=w.segment_s[segments],
        segment_fails=w.segment_fails[segments],
        recorded_start=w.recorded_start[segments],
        piece_start=piece_start,
        piece_node=w.piece_node[pieces],
        piece_gpus=w.piece_gpus[pieces],
        state=tuple(state.tolist()),
        think=_of(w.think, jobs),
        predicted=_of(w.predicted, jobs),
        epochs=_of(w.epochs, jobs),
        checkpoint_bytes=_of(w.checkpoint_bytes, jobs),
        planned=_of(w.planned, jobs),
        cpus=_of(w.cpus, jobs),
        mem_mb=_of(w.mem_mb, jobs),
        account=None if w.account is None else w.account[jobs],
        qos=None if w.qos is None else w.qos[jobs],
        min_nodes=None if w.min_nodes is None else w.min_nodes[jobs],
        nice=None if w.nice is None else w.nice[jobs],
        job_class=None if w.job_class is None else w.job_class[jobs],
        min_gpus=None if w.min_gpus is None else w.min_gpus[jobs],
        max_gpus=None if w.max_gpus is None else w.max_gpus[jobs],
        curve=None if w.curve is None else w.curve[jobs],
        curves=w.curves,
        phase=None if w.phase is None else w.phase[jobs],
        beyond=_of(w.beyond, jobs),
        deadline=_of(w.deadline, jobs),
        checkpoint_s=_of(w.checkpoint_s, jobs),
        traits={name: values[jobs] for name, values in w.traits.items()},
        line=None if w.line is None else w.line[jobs],
        failures=None if w.failures is None else w.failures.of(segments),
        own=None if w.own is None else w.own[jobs],
    )


def _deadlines(workload: Workload, submit: Floats) -> Floats | None:
    """Deadlines of jobs with new submission times: the same span after submission."""
    return None if workload.deadline is None else submit + (workload.deadline - workload.submit)


def _of(values: Floats | None, jobs: Ints) -> Floats | None:
    return None if values is None else values[jobs]


def _ragged(starts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The elements of some rows, concatenated, and the start of each row."""
    counts = starts[rows + 1] - starts[rows]
    return _ranges(starts[rows], counts), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _ranges(first: Ints, counts: Ints) -> Ints:
    """``first[0], first[0] + 1, …`` (`counts[0]` numbers), then the next range, and so on."""
    before = np.cumsum(counts) - counts
    return np.asarray(np.repeat(first - before, counts) + np.arange(counts.sum()), np.int64)


def _recorded_at(workload: Workload, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Masks of the jobs running, and of those submitted but waiting, at a second of the trace."""
    w = workload
    owner = np.repeat(np.arange(w.size), np.diff(w.segment_start))
    start, end = w.recorded_start, w.recorded_start + w.segment_s
    running, over = np.zeros(w.size, bool), np.ones(w.size, bool)
    running[owner[(start <= t) & (t < end)]] = True
    over[owner[end > t]] = False
    return running, ~running & ~over


def _calendar_time(workload: Workload, second: Floats | float) -> str:
    """A second as a calendar time, if the workload has a calendar."""
    from datetime import timedelta

    if workload.origin is None:
        return f"{float(second):g}"
    return f"{workload.origin.replace(tzinfo=None) + timedelta(seconds=float(second)):%Y-%m-%dT%H:%M:%S}"


def choose(workload: Workload, wanted: JobFilter) -> Workload:
    """Return the jobs that match a filter, with a note that the load of the others is missing.

    Args:
        workload: the jobs.
        wanted: the filter; a job for which the workload lacks a filtered field does not match.

    Raises:
        UsageError: a name that no job has, an invalid time, or no match.
    """
    of: dict[Name, tuple[Ints | None, Sequence[str]]] = {
        "user": (workload.user, workload.users),
        "queue": (workload.queue, workload.queues),
        "account": (workload.account, workload.accounts),
    }
    wanted.check({kind: _there(numbers, names) for kind, (numbers, names) in of.items()})
    selected = np.ones(workload.size, bool)
    for kind, names in wanted.names.items():
        numbers, known = of[kind]
        if names and numbers is not None:
            selected &= np.isin(numbers, [k for k, name in enumerate(known) if name in names])
    if wanted.state:
        if not any(workload.state):
            raise UsageError("--state: these jobs have no final states", hint="leave it out")
        selected &= np.isin(np.array(workload.state, object), list(wanted.state))
    if wanted.gpus is not None:
        selected &= (workload.gpus >= wanted.gpus[0]) & (workload.gpus <= wanted.gpus[1])
    if wanted.since is not None:
        selected &= workload.submit >= instant(workload, wanted.since)
    if wanted.until is not None:
        selected &= workload.submit < instant(workload, wanted.until)
    jobs = np.flatnonzero(selected)
    if not jobs.size:
        wanted.refuse_empty(workload.size)
    text = note("the filter keeps {selected:,} of {of:,} job{of||s}", selected=jobs.size, of=workload.size)
    alone = note("{text}; they are replayed alone, without the load of other jobs", text=text)
    return take(workload, jobs, alone)


def _there(numbers: Ints | None, names: Sequence[str]) -> set[str]:
    """The names that occur among jobs."""
    return set() if numbers is None else {names[k] for k in np.unique(numbers).tolist() if k >= 0}
