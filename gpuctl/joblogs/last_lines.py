"""The end of a log: the lines that say most where no signature was found."""

from __future__ import annotations

from bisect import bisect_right

from gpuctl.joblogs.evidence import TEXT_LIMIT, Match
from gpuctl.joblogs.templates import is_informative

TELLING = 8
_TAIL = 1 << 16
_DETAIL = ("", " ", "\t", "^", "~", "|")
"""What a line begins with that goes on with the one above."""
_FOLLOWING = 20


class LastLines:
    """The last lines of a log, at least `_TAIL` bytes if it has as many."""

    def __init__(self) -> None:
        self._text = b""
        self._first = 1

    def add(self, raw: bytes, before: int, line_ends: int) -> None:
        """Append bytes of the log.

        Args:
            raw: the bytes.
            before: line ends of the log before them.
            line_ends: line ends in them.
        """
        if len(raw) >= _TAIL:
            cut = raw.find(b"\n", len(raw) - _TAIL) + 1
            self._first = before + 1 + (line_ends - raw.count(b"\n", cut) if cut else 0)
            self._text = raw[cut:] if cut else raw[-_TAIL:]
            return
        if not self._text:
            self._first = before + 1
        self._text += raw
        if len(self._text) > 2 * _TAIL:
            cut = self._text.find(b"\n", len(self._text) - _TAIL) + 1 or len(self._text) - _TAIL
            self._first += self._text.count(b"\n", 0, cut)
            self._text = self._text[cut:]

    @property
    def open(self) -> bool:
        """Return whether the log's last line has no end."""
        return bool(self._text) and not self._text.endswith(b"\n")

    def telling(self) -> list[Match]:
        """Return the last informative lines and the last lines of the log.

        Of the lines that follow one, `Match.ordinary_after` counts those that are not indented, up to `_FOLLOWING`.
        """
        lines = self._text.decode("utf-8", "replace").split("\n")
        words = [(number, line.rsplit("\r", 1)[-1].rstrip()) for number, line in enumerate(lines, self._first)]
        starts = [number for number, line in words if line[:1] not in _DETAIL]
        words = [(number, line.strip()) for number, line in words]
        words = [(number, line) for number, line in words if line]
        informative = [(number, line) for number, line in words if is_informative(line)]
        chosen = dict((informative[-(TELLING - 2) :] + words[-2:]) if informative else words[-3:])
        return [
            Match(
                None,
                number,
                chosen[number][:TEXT_LIMIT],
                ordinary_after=min(len(starts) - bisect_right(starts, number), _FOLLOWING),
            )
            for number in sorted(chosen)
        ]
