"""Blocks of whole lines in which a log is scanned, and positions to split a log into blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuctl.joblogs.classified_endings import ABOVE

_TRACEBACK_BYTES = 1 << 14
"""A traceback is kept in one block where it begins so near to the block's end."""


class Block(NamedTuple):
    """Some lines of a log, or a piece of a long one.

    Attributes:
        text: carriage returns count as line ends.
        starts: starts of its lines.
        plain: whether a line is ordinary output.
        ranks: of the process that printed it; -1 if the line's beginning names none.
        number_of: line numbers in the log.
        frames: rows of frames and heads of tracebacks, rising.
    """

    text: bytes
    starts: np.ndarray
    plain: np.ndarray
    ranks: np.ndarray
    number_of: np.ndarray
    frames: np.ndarray = np.zeros(0, np.int64)

    def bounds(self, row: int) -> tuple[int, int]:
        """Return the begin and end of a line."""
        begin = int(self.starts[row])
        if row + 1 < len(self.starts):
            return begin, int(self.starts[row + 1]) - 1
        return begin, len(self.text) - self.text.endswith(b"\n")


def before_traceback(text: bytes, cut: int) -> int:
    """Return where to cut so that a traceback shortly before the cut stays whole, with the lines above it."""
    begin = text.find(b"Traceback (most recent", max(cut - _TRACEBACK_BYTES, 0), cut)
    for _ in range(ABOVE):
        begin = text.rfind(b"\n", 0, begin) if begin > 0 else begin
    return begin + 1 if begin > 0 else cut


def spread(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` rows, evenly spaced, including the last one."""
    if len(rows) <= most:
        return rows
    return rows[np.unique(np.linspace(0, len(rows) - 1, most).astype(np.int64)[::-1])]
