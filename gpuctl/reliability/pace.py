"""What an attempt's log tells of its pace: seconds a step, a checkpoint's write, the load before the first step.

Between consecutive points of an attempt dt = tau x steps + w x checkpoints written. Taking dt / steps over everything
would put the writes into tau.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles
from typing import NamedTuple


class Point(NamedTuple):
    """A line of a log.

    Attributes:
        kind: step, saved, saving, loaded or iteration.
        step: the step that it names.
        ts: seconds; None without a stamp.
        value: of kind iteration: seconds.
    """

    kind: str
    step: int | None
    ts: float | None
    value: float | None = None


@dataclass(frozen=True)
class Pace:
    """Of one run.

    Attributes:
        step_s: seconds a step; None: its logs do not tell.
        write_s: seconds for which a checkpoint blocks.
        write_range: first and third quartile of these.
        interval_steps: steps between checkpoints; None: fewer than two are known.
    """

    step_s: float | None
    write_s: float
    interval_steps: float | None
    write_range: tuple[float, float] = (0.0, 0.0)


def pace(logs: list[list[Point]]) -> Pace:
    """Find the pace of a run.

    Args:
        logs: of each attempt its lines, in order.
    """
    stated = [point.value for log in logs for point in log if point.kind == "iteration" and point.value]
    spans = [span for log in logs for span in _spans(log)]
    clean = [dt / dk for dk, dt, saves in spans if dk > 0 and not saves]
    step_s = median(stated) if stated else median(clean) if clean else None
    writes = [(dt - step_s * dk) / saves for dk, dt, saves in spans if saves] if step_s is not None else []
    between = [b - a for log in logs for a, b in pairwise(_saves(log)) if b > a]
    low, high = (max(0.0, end) for end in _quartiles(writes))
    return Pace(step_s, max(0.0, median(writes)) if writes else 0.0, median(between) if between else None, (low, high))


def _quartiles(values: list[float]) -> tuple[float, float]:
    if len(values) < 2:
        return (values[0], values[0]) if values else (0.0, 0.0)
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


def _spans(log: list[Point]) -> list[tuple[int, float, int]]:
    """Steps, seconds and checkpoints written between consecutive stamped points."""
    found: list[tuple[int, float, int]] = []
    before: tuple[int, float] | None = None
    saves = 0
    for point in log:
        saves += point.kind == "saved"
        if point.ts is None or point.step is None or point.kind not in {"step", "saved"}:
            continue
        if before is not None and point.ts >= before[1] and point.step >= before[0]:
            found.append((point.step - before[0], point.ts - before[1], saves))
        before, saves = (point.step, point.ts), 0
    return found


def _saves(log: list[Point]) -> list[int]:
    return [point.step for point in log if point.kind == "saved" and point.step is not None]


def _steps(log: list[Point]) -> list[int]:
    """Steps of the stamped lines."""
    return [point.step for point in log if point.kind == "step" and point.ts is not None and point.step is not None]


@dataclass(frozen=True)
class Work:
    """How an attempt's seconds were spent; they add up to its run time."""

    productive: float
    checkpoint: float
    load: float
    lost: float
    stalled: float
    uncertain: float = 0.0
    """Seconds of `stalled` that may be work done and lost: nothing was printed."""


def split(
    run: float,
    start: float,
    log: list[Point],
    of: Pace,
    usual_load: float,
    *,
    begun: int,
    resumed: int | None,
    whole: bool,
) -> Work | None:
    """Split an attempt's time.

    Args:
        run: seconds it ran.
        start: when it started.
        log: its lines.
        of: pace of its run.
        usual_load: median of the run's other attempts, for one that printed nothing.
        begun: step from which it went on.
        resumed: step from which the next attempt went on; None where that is not known.
        whole: whether all of its work counts: it completed, or runs.

    Returns:
        None where the run's logs tell no pace.
    """
    if of.step_s is None:
        return None
    tau, w = of.step_s, of.write_s
    saves, steps = _saves(log), _steps(log)
    writes = min(len(saves) * w, run)
    measured = first_load(start, log, of, begun)
    load = usual_load if measured is None else measured
    load = min(max(load, 0.0), max(0.0, run - writes))
    working = max(0.0, run - writes - load)
    if whole:
        return Work(working, writes, load, 0.0, 0.0)
    kept_step = saves[-1] if saves else begun
    if resumed is not None:
        kept_step = min(kept_step, max(resumed, begun))
    kept = min(max(0.0, (kept_step - begun) * tau), working)
    last = max([*steps, kept_step])
    lost = min(max(0.0, (last - kept_step) * tau), working - kept)
    rest = working - kept - lost
    gap = max((b - a for a, b in pairwise(steps)), default=0) * tau
    return Work(kept, writes, load, lost, rest, min(rest, gap) if gap else rest)


def first_load(start: float, log: list[Point], of: Pace, begun: int) -> float | None:
    """Seconds from an attempt's start to its first step; None where nothing tells."""
    if of.step_s is None:
        return None
    saves = 0
    for point in log:
        saves += point.kind == "saved"
        if point.kind == "step" and point.ts is not None and point.step is not None:
            return max(0.0, point.ts - start - (point.step - begun) * of.step_s - saves * of.write_s)
    return None
