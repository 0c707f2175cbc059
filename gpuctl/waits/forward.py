"""Waits by simulation: the present queue, run forward many times with drawn run times and past submissions.

`gpuctl.waits.forward_kernel` has the rules. At each instant the simulation knows the waiting and running jobs, the run
times of jobs that had ended by then, and earlier submissions. The number of nodes is the most that were ever held at
once by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.compiled.background_loop import aside, watch
from gpuctl.compiled.jit import read_only
from gpuctl.waits import features, quantiles, run_times
from gpuctl.waits.forward_kernel import (
    AGE,
    CLASSES,
    CLOCKS,
    COUNTERS,
    DELAYS,
    FAIR,
    HORIZON_S,
    MOST_EFFORT,
    NODES,
    OWN,
    PIECES,
    POOL,
    SIZE,
    SLOTS,
    WAITING,
    WEIGHTS,
    WIDTH,
    Queue,
)
from gpuctl.waits.forward_run_kernel import SHORT_S, sweep, whole_line
from gpuctl.waits.state_kernel import END, ENTER, START

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from numpy.typing import NDArray

    from gpuctl.waits.features import WaitQueries
    from gpuctl.waits.queue_log import WaitLog

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

SAMPLES = 16
"""Simulations of one answer."""
_MORE = 4096
"""Places of the line for submissions to come."""
ORDERS = {
    "age": {AGE: 1.0},
    "fair-share": {AGE: 1.0, FAIR: 10.0, SIZE: 1.0},
    "fair-share and some age": {AGE: 3.0, FAIR: 10.0},
    "fair-share and age": {AGE: 10.0, FAIR: 10.0},
    "age and some fair-share": {AGE: 30.0, FAIR: 10.0},
}
"""Weights of priorities, by the name of an order: first come, first served, SchedMD's example, and others."""
ORDERS_SAID = {
    name: "first come, first served"
    if name == "age"
    else "Slurm's multifactor priority, all users' shares equal, "
    f"weights of age {weights[AGE]:g}, fair-share {weights[FAIR]:g}, size {weights.get(SIZE, 0.0):g}"
    for name, weights in ORDERS.items()
}


def for_queries(
    log: WaitLog,
    queries: WaitQueries,
    order: str,
    wanted: Mask | None = None,
    count: int = SAMPLES,
    *,
    run_curves: tuple[Floats, Floats] | None = None,
    progress: Callable[[int], None] | None = None,
    watched: Ints | None = None,
) -> tuple[Floats, Floats]:
    """Simulate the waits of jobs that join a queue, in the log or not, each from what was known at its arrival.

    Args:
        log: of the cluster.
        queries: the jobs.
        order: one of `ORDERS`.
        wanted: which of them to simulate; None: all.
        count: simulations per job.
        run_curves: run times of the log's jobs and of the queries by trees, see `run_times.for_queries`. None: draw run
            times from the past alone.
        progress: called with the number of jobs simulated so far.
        watched: of `gpuctl.compiled.background_loop.watch`; at the end, the number of simulated jobs and the effort.

    Returns:
        seconds, in ascending order, and those of a plan in which all jobs run to their limits without new submissions;
        NaN: not simulated (not wanted, or behind a queue that takes too long), of no size, or larger than all nodes
        [asks, count], [asks].
    """
    curve, own_curve = run_curves or (run_times.nothing(log.ready_s.size), run_times.nothing(queries.ready_s.size))
    own = np.empty((queries.ready_s.size, 7 + own_curve.shape[1]))
    own[:, 7:] = own_curve
    per, nodes = shapes(features.sizes(queries.rows), log.width)
    limit = features.limits(queries.rows)
    own[:, 0], own[:, 1], own[:, 2], own[:, 4] = per, nodes, limit_class(limit), limit
    users, own[:, 3] = _users(log, queries.rows["user"].to_list())
    own[:, 5], own[:, 6] = _limited(log, queries.rows)
    s, when, kind, of = empty(log, users, order, curve)
    f = twin(s)
    out, plan = np.full((queries.ready_s.size, count), np.nan), np.full(queries.ready_s.size, np.nan)
    answered = np.ones(queries.ready_s.size, np.bool_) if wanted is None else wanted
    f.effort[1] = MOST_EFFORT
    args = (
        s,
        f,
        when,
        kind,
        of,
        log.ready_s,
        log.wait_s,
        _ran(log),
        queries.ready_s,
        own,
        queries.place,
        answered,
        out,
        plan,
    )
    aside(sweep, *args, watched=watch() if watched is None else watched, on_progress=progress)
    return np.sort(out, axis=1), plan


def of_log(
    log: WaitLog,
    order: str,
    wanted: Mask | None = None,
    count: int = SAMPLES,
    *,
    run_curves: Floats | None = None,
    progress: Callable[[int], None] | None = None,
    watched: Ints | None = None,
) -> tuple[Floats, Floats]:
    """Simulate every job of a log [jobs, count], [jobs]; `run_curves`: run times of its jobs by trees."""
    queries = features.WaitQueries(log.rows, log.ready_s, np.arange(log.ready_s.size))
    both = None if run_curves is None else (run_curves, run_curves)
    return for_queries(log, queries, order, wanted, count, run_curves=both, progress=progress, watched=watched)


def of_waiting(
    log: WaitLog,
    order: str,
    priority: Floats | None = None,
    nodes: int | None = None,
    count: int = SAMPLES,
    *,
    run_curves: Floats | None = None,
) -> tuple[Ints, Floats, Floats]:
    """Simulate the waits of all waiting jobs from the log's last instant on.

    Args:
        log: of the cluster.
        order: one of `ORDERS`.
        priority: Slurm's priority of each job of the log; takes precedence over `order`. None: unknown.
        nodes: number of nodes that are up; None: the most that were held at once.
        count: simulations.
        run_curves: run times of the log's jobs by trees; None: draw run times from the past alone.

    Returns:
        numbers of the jobs in the log; seconds, in ascending order [jobs, count]; those of a plan [jobs]. A job that
        does not start within `HORIZON_S` has that many seconds.
    """
    now = log.taken_s
    s = at_end(log, order, run_curves, nodes or 1)
    if nodes is not None:
        held = s.piece_node[: _pieces(s)].max(initial=-1) + 1
        s.c[NODES] = max(nodes, int(held))
    length = int(s.c[WAITING])
    line = s.line_job[:length]
    fits = s.per[line] * s.count[line] <= s.c[NODES] * s.t[WIDTH]
    fitting = np.flatnonzero(fits)
    if priority is not None:
        priorities = np.nan_to_num(priority[line[fitting]], nan=-1.0)
        fitting = fitting[np.lexsort((log.ready_s[line[fitting]], -priorities))]
        s.weights[FAIR] = s.weights[SIZE] = 0.0
    s.line_job[: fitting.size], s.line_ready[: fitting.size] = line[fitting].copy(), s.line_ready[fitting].copy()
    if priority is not None:
        # by that order, and ahead of all later arrivals
        s.line_ready[: fitting.size] = now - fitting.size + np.arange(fitting.size) - 1.0
    s.line_who[: fitting.size] = np.arange(fitting.size)
    s.c[WAITING] = fitting.size
    begins = np.full((count + 1, fitting.size), now + HORIZON_S)
    if fitting.size:
        f = twin(s)
        f.effort[1] = np.iinfo(np.int64).max
        entered = int(np.searchsorted(log.ready_s, now, "right"))
        aside(whole_line, s, f, now, log.ready_s, entered, fitting.size, begins, watched=watch())
    waits = np.minimum(begins - now, HORIZON_S)
    return s.line_job[: fitting.size].copy(), np.sort(waits[1:], axis=0).T, waits[0]


def at_end(log: WaitLog, order: str, run_curves: Floats | None = None, least: int = 1) -> Queue:
    """Return the queue at a log's last instant, including its events, on at least `least` nodes."""
    curve = run_times.nothing(log.ready_s.size) if run_curves is None else run_curves
    users, _ = _users(log, [])
    s, when, kind, of = empty(log, users, order, curve, least)
    nobody, no = np.zeros((1, 7 + curve.shape[1])), np.zeros(1, np.bool_)
    at = read_only(np.array([log.taken_s + 0.5]))
    aside(
        sweep, s, twin(s), when, kind, of, log.ready_s, log.wait_s, _ran(log), at, nobody,
        np.array([log.ready_s.size]), no, np.empty((1, 1)), np.empty(1), watched=watch(),
    )  # fmt: skip
    return s


def _pieces(queue: Queue) -> int:
    return int(queue.c[PIECES])


def curves(samples: Floats) -> Floats:
    """Return `quantiles.LEVELS` of simulated waits, as log(1 + seconds) [LEVELS, jobs]."""
    place = np.array(quantiles.LEVELS) * (samples.shape[1] - 1)
    low = place.astype(np.int64)
    part = (place - low)[:, None]
    logs = np.log1p(samples).T
    found: Floats = (1 - part) * logs[low] + part * logs[np.minimum(low + 1, samples.shape[1] - 1)]
    return found


_HALF_FROM = 0.3
"""Level from which on, and up to one less it, simulations count for a half."""


def blended(trees: Floats, simulated: Floats) -> Floats:
    """Blend the curves of trees with those of simulations [LEVELS, jobs].

    Equal weights at the median; the ends are those of trees, since simulations do not measure their own error.
    """
    levels = np.array(quantiles.LEVELS)
    share = 0.5 * np.minimum(np.minimum(levels, 1 - levels) / _HALF_FROM, 1)[:, None]
    found: Floats = np.sort((1 - share) * trees + share * simulated, axis=0)
    return found


FEATURES = {
    **{f"simulated_p{round(100 * level)}": f"log(1 + the {level:.0%} quantile of its simulated waits)"
       for level in (0.1, 0.3, 0.5, 0.7, 0.9)},
    "simulated_mean": "log(1 + their mean)",
    "simulated_plan": "log(1 + its wait in a plan in which limits are used up and nobody else comes)",
    "simulated_at_once": "share of them that are shorter than five minutes",
}  # fmt: skip
"""What trees may look at beside `features.ALL`."""


def described(samples: Floats, plan: Floats) -> Floats:
    """Return `FEATURES` of simulated waits [jobs, FEATURES]; NaN: not simulated."""
    levels = np.log1p(np.quantile(samples, (0.1, 0.3, 0.5, 0.7, 0.9), axis=1).T)
    short = np.where(np.isnan(samples[:, 0]), np.nan, (samples < SHORT_S).mean(axis=1))
    return np.concatenate([levels, np.log1p(np.stack([samples.mean(axis=1), plan], axis=1)), short[:, None]], axis=1)


def empty(log: WaitLog, users: Ints, order: str, curve: Floats, least: int = 1) -> tuple[Queue, Floats, Ints, Ints]:
    """Return an empty cluster for a log's jobs, with at least `least` nodes; and the log's events: time, kind, job."""
    jobs = log.ready_s.size
    when = np.concatenate([log.ready_s, log.leave_s, log.end_s])
    kind = np.repeat(np.array([ENTER, START, END]), jobs)
    turn = np.repeat(np.array([0, 2, 1]), jobs)
    of = np.tile(np.arange(jobs), 3)
    order_of = np.lexsort((of, turn, when))
    order_of = order_of[np.isfinite(when)[order_of]]
    when, kind, of = when[order_of], kind[order_of], of[order_of]
    per, nodes = shapes(features.sizes(log.rows), log.width)
    change = np.where(kind == START, 1, np.where(kind == END, -1, 0)) * np.where(log.started, per * nodes, 0)[of]
    change[(log.end_s <= log.leave_s)[of]] = 0
    most = max(int(np.cumsum(change).max(initial=0)), 1)
    count = max(-(-most // log.width), least)
    limit = features.limits(log.rows)
    clocks = np.zeros(CLOCKS)
    clocks[WIDTH] = log.width
    weights = np.zeros(WEIGHTS)
    for name, weight in ORDERS[order].items():
        weights[name] = weight
    height = int(users.max(initial=0)) + 2
    of_queue, of_pair = _limited(log, log.rows)
    pairs, queues = int(of_pair.max(initial=0)) + 2, int(of_queue.max(initial=0)) + 2
    pieces, line = count * log.width + 1, jobs + _MORE
    floats: dict[str, Any] = {name: pieces for name in ("piece_start", "piece_until", "piece_end")}
    floats |= {name: pieces for name in ("piece_job", "piece_node", "piece_gpus")}
    floats |= {name: line for name in ("line_job", "line_who", "line_ready", "line_key")}
    floats |= {"runs": pairs, "peak": pairs, "cap": queues, "reached": queues}
    floats |= {name: height for name in ("usage", "rate", "rank")}
    queue = Queue(
        per=np.append(per, 0), count=np.append(nodes, 0), limit=np.append(limit, 1.0),
        kind=np.append(limit_class(limit), 0), user=np.append(users, 0),
        queue=np.append(of_queue, 0), pair=np.append(of_pair, 0), curve=np.concatenate([curve, curve[:1]]),
        own=(height, OWN), own_count=height,
        pool=(CLASSES, POOL), pool_count=CLASSES, delays=DELAYS, delay_count=1, weights=weights,
        free=np.full(count, log.width), taken=count, gain=count, able=log.width + 1, unreserved=log.width + 1,
        later=line, turn=(SLOTS, count), turn_at=(SLOTS, count), turn_of=(SLOTS, 3), effort=2, c=COUNTERS, t=clocks,
        **floats,
    )  # fmt: skip
    return queue, when, kind, of


def twin(queue: Queue) -> Queue:
    """Return a queue for simulations: it shares the arrays of jobs and of the past, and has its own state."""
    state = {name: getattr(queue, name).copy() for name in queue.fields if name not in _SHARED}
    return queue.replace(**state)


_SHARED = frozenset(
    ("per", "count", "limit", "kind", "user", "own", "own_count", "pool", "pool_count", "delays", "delay_count",
     "curve", "weights", "queue", "pair", "peak", "cap", "reached")
)  # fmt: skip


def shapes(size: Floats, width: int) -> tuple[Ints, Ints]:
    """Return GPUs per node, and nodes, of jobs of some sizes: one node if it holds them, else equal parts."""
    whole = np.ceil(size).astype(np.int64)
    nodes = np.maximum(-(-whole // width), 1)
    return -(-whole // nodes), nodes


def limit_class(limit_s: Floats) -> Ints:
    """Return a class of a limit, by powers of four hours."""
    found: Ints = (2 + np.log(np.maximum(limit_s, 1) / 3600) / np.log(4)).astype(np.int64).clip(0, CLASSES - 1)
    return found


def _ran(log: WaitLog) -> Floats:
    """Return the run time of each job, s; infinite: it has not ended."""
    ended = np.isfinite(log.end_s)
    found = np.full(ended.size, np.inf)
    found[ended] = log.end_s[ended] - log.leave_s[ended]
    return found


def _limited(log: WaitLog, rows: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return numbers of queues, and of users in queues, of some jobs; one more for those that the log lacks."""
    queues = {name: k for k, name in enumerate(log.rows["queue"].unique(maintain_order=True).to_list())}
    pairs = {row: k for k, row in enumerate(log.rows.select("user", "queue").unique(maintain_order=True).rows())}
    queue = [queues.get(name, len(queues)) for name in rows["queue"].to_list()]
    pair = [pairs.get(row, len(pairs)) for row in rows.select("user", "queue").rows()]
    return np.array(queue, np.int64), np.array(pair, np.int64)


def _users(log: WaitLog, users: list[str]) -> tuple[Ints, Ints]:
    """Return numbers of users, by first submission, of the log's jobs and of the queries; new users follow."""
    names = {name: k for k, name in enumerate(log.rows["user"].unique(maintain_order=True).to_list())}
    numbers = np.array([names[name] for name in log.rows["user"].to_list()], np.int64)
    return numbers, np.array([names.get(name, len(names)) for name in users], np.int64)
