"""Waits, runs and GPU releases of one job's attempts; pure functions on its stamps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from gpuctl.core.local_time import Stamp, elapsed, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

Span = tuple[Stamp | None, Stamp | None]
"""The logged start and end of one attempt; None if the log has none."""


@dataclass(slots=True)
class Attempt:
    """One attempt; durations in seconds of the log's clock (`gpuctl.core.local_time.elapsed`).

    Attributes:
        start: as logged, None if missing.
        end: as logged, None if missing.
        queued: since when it waited: the submission for the first attempt, else the end of the attempt before it;
            None if that is missing or lies after the start.
        wait: ``start`` - ``queued``; None if either is.
        run: ``end`` - ``start`` as recorded; None if either is missing or the end is the earlier one.
        released: when its GPUs were free again: the end, but if another attempt of the job had started before
            it, that start (a job runs one attempt at a time, so the recorded end is the job's, not this attempt's).
            An end before the start counts as the start. A missing end is the next start or end of the job that
            the log has after it, of whatever later attempt; None if there is none: still running.
        held: ``released`` - ``start``; None if ``run`` is. Sums of it count no GPU-second twice.
        quirks: what is odd about it: ``no_start``, ``no_end``, ``start_before_submit``, ``end_before_start``,
            ``overlap`` (another attempt started before it ended), ``ambiguous_hour`` (a stamp in the hour that
            the clock showed twice).
    """

    start: Stamp | None
    end: Stamp | None
    queued: Stamp | None
    wait: int | None
    run: int | None
    released: Stamp | None
    held: int | None
    quirks: list[str]


@dataclass(slots=True)
class Timeline:
    """All attempts of a job and the durations of the job as a whole, seconds, None if not known.

    Attributes:
        submit: as logged.
        attempts: in the order of the log.
        wait: submission to first start; None also where the start is the earlier one.
        run_span: first attempt's start to last attempt's end, the gaps between them included.
        run_sum: what the attempts held their GPUs, added up (`Attempt.held`).
        run_last: the last attempt's ``run``.
        quirks: ``no_attempts``; ``missing_time`` if a submission, start or end is not logged, which is so too
            for a job that still runs; and ``ambiguous_hour``, ``overlap``, ``start_before_submit``,
            ``end_before_start`` if an attempt or the submission has it.
    """

    submit: Stamp | None
    attempts: list[Attempt]
    wait: int | None
    run_span: int | None
    run_sum: int | None
    run_last: int | None
    quirks: list[str]


def timeline(submit: Stamp | None, spans: Sequence[Span]) -> Timeline:
    """Work out the waits and runs of one job.

    Args:
        submit: None if the log has none.
        spans: start and end of every attempt in the order of the log.
    """
    if any(stamp is not None and stamp.later is not None for span in spans for stamp in span):
        spans = _settle_all(submit, spans)
    attempts = [_attempt(submit if i == 0 else spans[i - 1][1], span, first=i == 0) for i, span in enumerate(spans)]
    if len(attempts) > 1:
        _cut_overlaps(attempts)
        _release_unended(attempts)
    runs = [attempt.held for attempt in attempts if attempt.held is not None]
    return Timeline(
        submit=submit,
        attempts=attempts,
        wait=attempts[0].wait if attempts else None,
        run_span=_span(attempts),
        run_sum=sum(runs) if runs else None,
        run_last=attempts[-1].run if attempts else None,
        quirks=_job_quirks(submit, attempts),
    )


def _settle_all(submit: Stamp | None, spans: Sequence[Span]) -> list[Span]:
    before, settled = submit, []
    for span in spans:
        start = span[0] and settle(span[0], before)
        before = start or before
        end = span[1] and settle(span[1], before)
        before = end or before
        settled.append((start, end))
    return settled


def _attempt(queued: Stamp | None, span: Span, *, first: bool) -> Attempt:
    start, end = span
    quirks = []
    wait = run = None
    released = end
    if start is None:
        quirks.append("no_start")
    elif queued is not None:
        wait = elapsed(queued, start)
        if wait < 0:
            wait = queued = None
            if first:
                quirks.append("start_before_submit")
    if end is None:
        quirks.append("no_end")
    elif start is not None:
        run = elapsed(start, end)
        if run < 0:
            run, released = None, start
            quirks.append("end_before_start")
    if any(stamp is not None and stamp.later is not None for stamp in span):
        quirks.append("ambiguous_hour")
    return Attempt(start, end, queued, wait, run, released, run, quirks)


def _cut_overlaps(attempts: list[Attempt]) -> None:
    """Let every attempt give back its GPUs when the next one, in order of time, starts."""
    started = sorted((a.start.utc, i) for i, a in enumerate(attempts) if a.start is not None)
    for (_, i), (_, j) in pairwise(started):
        one, start, next_start = attempts[i], attempts[i].start, attempts[j].start
        if one.run is None or one.end is None or start is None or next_start is None:
            continue
        if elapsed(next_start, one.end) > 0:
            one.released, one.held = next_start, max(0, elapsed(start, next_start))
            one.quirks.append("overlap")


def _release_unended(attempts: list[Attempt]) -> None:
    for i, one in enumerate(attempts[:-1]):
        if one.end is None:
            later = (stamp for a in attempts[i + 1 :] for stamp in (a.start, a.end) if stamp is not None)
            one.released = next((t for t in later if one.start is None or t.utc >= one.start.utc), None)


def _span(attempts: list[Attempt]) -> int | None:
    if not attempts or attempts[0].start is None or attempts[-1].end is None:
        return None
    span = elapsed(attempts[0].start, attempts[-1].end)
    return span if span >= 0 else None


def _job_quirks(submit: Stamp | None, attempts: list[Attempt]) -> list[str]:
    found = {quirk for attempt in attempts for quirk in attempt.quirks}
    quirks = [] if attempts else ["no_attempts"]
    if submit is None or not found.isdisjoint(("no_start", "no_end")):
        quirks.append("missing_time")
    if "ambiguous_hour" in found or (submit is not None and submit.later is not None):
        quirks.append("ambiguous_hour")
    return quirks + [q for q in ("overlap", "start_before_submit", "end_before_start") if q in found]
