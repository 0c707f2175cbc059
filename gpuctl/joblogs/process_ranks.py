"""The rank of the process that printed a line, if the line begins with it."""

from __future__ import annotations

import re

import numpy as np

_BRACKET, _COLON, _BLANK = b"[: "
_DIGITS, _RANK_STARTS = np.zeros(256, dtype=bool), np.zeros(256, dtype=bool)
_DIGITS[[*b"0123456789"]] = _RANK_STARTS[[*b"0123456789rdR"]] = True
_RANK = re.compile(rb"\[(?:rank|default|RANK )?(\d{1,6})\](?:: | )|(\d{1,6}): |\[\d{1,5},(\d{1,6})\]<std")
"""The processes' prefixes of `gpuctl.joblogs.prefix`, at the beginning of a line."""


def ranks_of(text: bytes, codes: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Find the rank of each line's process.

    Args:
        text: whole lines.
        codes: its bytes, as an array.
        starts: where each line begins.

    Returns:
        One rank per line; -1 if its beginning names none.
    """
    ranks = np.full(len(starts), -1, np.int32)
    if not len(codes):
        return ranks
    last = len(codes) - 1
    first, second = codes[starts.clip(max=last)], codes[(starts + 1).clip(max=last)]
    maybe = (first == _BRACKET) & _RANK_STARTS[second]
    digit = np.flatnonzero(_DIGITS[first])
    for width in range(1, 7):
        at = starts[digit] + width
        maybe[digit] |= (codes[at.clip(max=last)] == _COLON) & (codes[(at + 1).clip(max=last)] == _BLANK)
    for row in np.flatnonzero(maybe).tolist():
        match = _RANK.match(text, int(starts[row]))
        if match:
            ranks[row] = int(match[match.lastindex or 0])
    return ranks
