"""Reads a long run of JSON objects piece by piece, and carries on after damage.

The objects may be the elements of one array or follow one another (newline-delimited). No more of the text is
held than the object at hand and one read ahead.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import RAW_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

OBJECT_LIMIT = 16 * 2**20
"""An object of more characters than this is rejected unread."""

NOT_JSON = "not valid JSON"
CUT_OFF = "cut off: the file ends inside this object"
NOT_CLOSED = "array not closed: the file ends before its ]"
TOO_LONG = f"object longer than {OBJECT_LIMIT // 2**20} MiB"
TOO_DEEP = "nested too deep"
NOT_UTF8 = "not valid UTF-8"

_CHUNK = 2**20
_OVERLAP = 128  # a record's start that straddles two reads is at most this long
_BETWEEN = re.compile(r"[\s,]*")
_STRAY_BYTE = re.compile("[\udc80-\udcff]")
_BRACKETS = {
    "{": re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}]', re.DOTALL),
    "[": re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]]', re.DOTALL),
}
_DECODER = json.JSONDecoder()


class Element(NamedTuple):
    """One element of the stream, or one stretch of it that cannot be read.

    Attributes:
        line_no: 1-based line on which it starts.
        value: what was decoded; None if there is a fault.
        fault: why it cannot be read; None if it can.
        raw: its first `RAW_LIMIT` characters as they stand in the file.
    """

    line_no: int
    value: object
    fault: str | None
    raw: bytes


def elements(stream: BinaryIO, record_start: re.Pattern[str], limit: int = OBJECT_LIMIT) -> Iterator[Element]:
    """Yield every element of a JSON array, or of a run of JSON values, from front to back.

    A stretch that is not valid JSON is one faulty element: it goes on to the next place where a record seems to
    start. An array that ends without its bracket is one more faulty element, unless the end is inside a
    stretch that is faulty already. A byte-order mark at the front is skipped, and so are commas too many.

    Args:
        stream: decompressed bytes, UTF-8.
        record_start: matches where a whole record may start (``{`` and what must follow it); it decides where
            reading goes on after damage. A match must not be longer than 100 characters.
        limit: most characters of one element.

    Raises:
        InputError: there is nothing but blanks.
    """
    window = Window(stream)
    in_array, blank = False, True
    while window.more(limit):
        blank = False
        char = window.text[window.pos]
        if char == "]" or (char == "[" and not in_array):
            in_array = char == "["
            window.advance(window.pos + 1)
            continue
        element, whole = next_element(window, record_start, limit)
        yield element
        if not whole:
            return
    if blank:
        raise InputError("nothing in this file; expected a JSON array of objects", hint="is the copy complete?")
    if in_array:
        yield Element(window.line, None, NOT_CLOSED, b"")


class Window:
    """The part of the text in memory, with the position of the reader and its line number."""

    def __init__(self, stream: BinaryIO) -> None:
        self.text = ""
        self.pos = 0
        self.line = 1
        self.ended = False
        self.dirty = False
        self._stream = stream
        self._first = True
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode

    def at_end(self) -> bool:
        """Whether all that is held has been read."""
        return self.pos == len(self.text)

    def held(self) -> int:
        """Characters that are held and not read yet."""
        return len(self.text) - self.pos

    def advance(self, to: int) -> None:
        """Go on to a position, and count the lines on the way."""
        self.line += self.text.count("\n", self.pos, to)
        self.pos = to

    def more(self, limit: int) -> bool:
        """Go past blanks and commas; false if nothing is left."""
        while True:
            if between := _BETWEEN.match(self.text, self.pos):
                self.advance(between.end())
            if not self.at_end():
                return True
            if not self.grow(limit):
                return False

    def raw(self, end: int) -> bytes:
        """The text from here to a position, but no more than `RAW_LIMIT` characters."""
        return self.text[self.pos : min(end, self.pos + RAW_LIMIT)].encode("utf-8", "surrogateescape")

    def grow(self, limit: int) -> bool:
        """Drop what has been read and hold about twice as much of the rest; false if nothing is left."""
        data = b"" if self.ended else self._stream.read(max(_CHUNK, min(self.held(), limit - self.held() + _CHUNK)))
        self.ended = not data
        more = self._decode(data, self.ended)
        if self._first and more:
            self._first = False
            more = more.removeprefix("\ufeff")
        unread = self.text[self.pos :]
        self.dirty = bool((unread and self.dirty) or (not more.isascii() and _STRAY_BYTE.search(more)))
        self.text = unread + more
        self.pos = 0
        return not self.ended or bool(more)


def decoded(window: Window) -> tuple[object, ValueError | RecursionError | None]:
    """Decode the value that starts here: the value, or why it cannot be decoded from what is held."""
    try:
        return _DECODER.raw_decode(window.text, window.pos)[0], None
    except (ValueError, RecursionError) as error:
        return None, error


def next_element(window: Window, record_start: re.Pattern[str], limit: int) -> tuple[Element, bool]:
    """The element that starts here, and whether anything is left to be read after it."""
    while True:
        fault = None
        try:
            value, end = _DECODER.raw_decode(window.text, window.pos)
        except RecursionError:
            fault = TOO_DEEP
        except ValueError as error:
            if not may_go_on(error, window):
                fault = NOT_JSON
            elif window.ended:
                fault = CUT_OFF
        else:
            # a bare number may go on in the next read: after 1 there may come .5 or e+5
            if end + 2 < len(window.text) or window.ended:
                return _complete(window, value, end, limit), True
        if fault is None and window.held() > limit:
            fault = TOO_LONG
        if fault is not None:
            return faulty(window, fault, record_start, limit)
        window.grow(limit)


def _complete(window: Window, value: object, end: int, limit: int) -> Element:
    fault = None
    if end - window.pos > limit:
        fault = TOO_LONG
    elif window.dirty and _STRAY_BYTE.search(window.text, window.pos, end):
        fault = NOT_UTF8
    element = Element(window.line, None if fault else value, fault, window.raw(end))
    window.advance(end)
    return element


def may_go_on(error: Exception, window: Window) -> bool:
    """Whether more text could make sense of what the decoder stopped at."""
    if not isinstance(error, json.JSONDecodeError):
        return False  # a number of more digits than Python converts
    return error.msg.startswith("Unterminated string") or error.pos >= len(window.text) - 12


def faulty(window: Window, fault: str, record_start: re.Pattern[str], limit: int) -> tuple[Element, bool]:
    """The stretch up to the next record as an element with a fault, and whether there is such a record."""
    line_no, raw = window.line, window.raw(len(window.text))
    if fault == TOO_DEEP:
        _pass_brackets(window, limit)
        return Element(line_no, None, fault, raw), True
    window.advance(window.pos + 1)
    found = record_start.search(window.text, window.pos)
    while found is None:
        window.advance(max(window.pos, len(window.text) - _OVERLAP))
        if not window.grow(limit):
            window.advance(len(window.text))
            return Element(line_no, None, fault, raw), False
        found = record_start.search(window.text, window.pos)
    window.advance(found.start())
    return Element(line_no, None, fault, raw), True


def _pass_brackets(window: Window, limit: int) -> None:
    """Go past the bracketed value that starts here, or past all that may be held if it does not close."""
    # The decoder gave up on the depth alone, so the text may well be sound and its brackets can be counted;
    # looking for the next record instead would find one at every level.
    opening = window.text[window.pos]
    while True:
        depth = 0
        for token in _BRACKETS[opening].finditer(window.text, window.pos):
            if token[0][0] != '"':
                depth += 1 if token[0] == opening else -1
                if depth == 0:
                    window.advance(token.end())
                    return
        if window.held() > limit or not window.grow(limit):
            window.advance(len(window.text))
            return
