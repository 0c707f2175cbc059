"""Shared GPUs: the part of each charged to each job.

A guest is on the first GPUs of its host's pieces, so that of two jobs on a node's shared GPUs the one with fewer has
all of its own in common with the other. A GPU counts once: in equal parts for the jobs on it (GPU-seconds of jobs), and
fully for its owner (`busy` levels, queues).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.replay.results.time_slicing import of_pieces, spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Outcome

    Floats = NDArray[np.float64]


def portions(outcome: Outcome) -> Floats:
    """Return the GPU-seconds of each piece: on a GPU with k jobs, one k-th of the time.

    Args:
        outcome: of the replay; attempts without an end are counted to the end of the replay.

    Returns:
        One number per row of ``outcome.pieces``; the sum over the pieces on a GPU is the time for which it was busy.
    """
    owner = outcome.pieces["row"].to_numpy()
    if outcome.turns is not None:
        found = spans(outcome)
        span, piece, gpus = of_pieces(outcome, found)
        seconds = (found.end - found.start)[span]
        return np.bincount(piece, weights=gpus * seconds, minlength=owner.size).astype(np.float64)
    start = outcome.attempts["start_s"].to_numpy()[owner]
    end = outcome.attempts["end_s"].fill_null(outcome.end_s).to_numpy()[owner]
    gpus = outcome.pieces["gpus"].to_numpy()
    counted = gpus * (end - start)
    group = outcome.attempts["group"].to_numpy()[owner]
    together = np.isin(group, group[outcome.attempts["shared"].to_numpy()[owner]])
    at = np.flatnonzero(together)
    if not at.size:
        return np.asarray(counted)
    keys = pl.DataFrame({"at": at, "group": group[at], "node": outcome.pieces["node"].to_numpy()[at]})
    for rows in keys.group_by("group", "node").agg("at")["at"].to_list():
        piece = np.array(rows)
        counted[piece] = _in_parts(start[piece], end[piece], gpus[piece])
    return np.asarray(counted)


def shared_gpus(outcome: Outcome) -> tuple[Floats, Floats]:
    """Return the GPUs of each attempt and of each piece, as means over its time: fractions if GPUs were shared."""
    owner = outcome.pieces["row"].to_numpy()
    length = (outcome.attempts["end_s"].fill_null(outcome.end_s) - outcome.attempts["start_s"]).to_numpy()
    gpus = outcome.attempts["gpus"].to_numpy().astype(np.float64)
    pieces = outcome.pieces["gpus"].to_numpy().astype(np.float64)
    group = outcome.attempts["group"].to_numpy()
    shared = np.isin(group, group[outcome.attempts["shared"].to_numpy()])
    if outcome.turns is not None:
        shared = np.isin(np.arange(gpus.size), outcome.turns["row"].to_numpy())
    shared &= length > 0
    if shared.any():
        mine = shared[owner]
        pieces[mine] = portions(outcome)[mine] / length[owner][mine]
        gpus[shared] = np.bincount(owner, weights=pieces, minlength=gpus.size)[shared]
    return gpus, pieces


def _in_parts(start: Floats, end: Floats, gpus: Floats) -> Floats:
    """GPU-seconds of each of some jobs on the first `gpus` GPUs of one place."""
    counted = np.zeros(start.size)
    times = np.unique(np.concatenate([start, end]))
    by_size = np.argsort(gpus, kind="stable")
    for begin, until in pairwise(times.tolist()):
        there = by_size[(start[by_size] <= begin) & (end[by_size] >= until)]
        more = np.diff(gpus[there], prepend=0)
        counted[there] += np.cumsum(more / np.arange(there.size, 0, -1)) * (until - begin)
    return counted
