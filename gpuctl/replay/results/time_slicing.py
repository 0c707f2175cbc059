"""Counted GPUs and speed over time of attempts whose jobs took turns on crowded nodes.

If no jobs took turns, an attempt counts with all GPUs from when it owns them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Outcome

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Spans:
    """Spans without a change, several per attempt.

    Attributes:
        row: of the attempts.
        start: seconds.
        end: seconds.
        gpus: counted ones.
        pace: share of its job's speed.
    """

    row: Ints
    start: Floats
    end: Floats
    gpus: Floats | Ints
    pace: Floats

    @property
    def gpu_seconds(self) -> Floats:
        """GPU-seconds of each span."""
        return self.gpus * (self.end - self.start)


def spans(outcome: Outcome) -> Spans:
    """Return the spans of all attempts; attempts without an end are counted to the end of the replay."""
    frame = outcome.attempts
    end = frame["end_s"].fill_null(outcome.end_s).to_numpy()
    own, gpus = frame["own_s"].fill_null(frame["end_s"]).fill_null(outcome.end_s).to_numpy(), frame["gpus"].to_numpy()
    if outcome.turns is None:
        return Spans(np.arange(frame.height), own, end, gpus, np.broadcast_to(1.0, frame.height))
    turns = outcome.turns
    row = np.concatenate([np.arange(frame.height), turns["row"].to_numpy()])
    order = np.argsort(row, kind="stable")
    row = row[order]
    start = np.concatenate([own, turns["t_s"].to_numpy()])[order]
    counted = np.concatenate([gpus, turns["counted"].to_numpy()])[order]
    pace = np.concatenate([np.ones(frame.height), turns["pace"].to_numpy()])[order]
    last = np.append(row[1:] != row[:-1], True)[: row.size]
    until = np.where(last, end[row], np.append(start[1:], 0.0)[: row.size])
    there = until > start
    return Spans(row[there], start[there], until[there], counted[there], pace[there])


def paced_seconds(outcome: Outcome) -> Floats:
    """Return the seconds of each attempt, weighted by its share of speed."""
    found = spans(outcome)
    own = outcome.attempts["own_s"].is_null().to_numpy()
    start, end = outcome.attempts["start_s"].to_numpy(), outcome.attempts["end_s"].fill_null(outcome.end_s).to_numpy()
    if outcome.turns is None:
        return np.asarray(end - start)
    seconds = np.bincount(found.row, weights=found.pace * (found.end - found.start), minlength=own.size)
    return np.where(own, end - start, seconds)


def of_pieces(outcome: Outcome, found: Spans) -> tuple[Ints, Ints, Floats]:
    """Return the span, the piece and the counted GPUs for each span and each place of its attempt."""
    owner = outcome.pieces["row"].to_numpy()
    first = np.searchsorted(owner, found.row, side="left")
    count = np.searchsorted(owner, found.row, side="right") - first
    span = np.repeat(np.arange(found.row.size), count)
    piece = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
    gpus = outcome.attempts["gpus"].to_numpy()[found.row[span]]
    part = np.asarray(found.gpus)[span] / np.maximum(gpus, 1)
    return span, piece, part * outcome.pieces["gpus"].to_numpy()[piece]
