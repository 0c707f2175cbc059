"""Reads the objects of a REST answer one by one, whatever it wraps them in, and keeps keys that are repeated.

YARN writes ``{"apps": {"app": [{…}, …]}}``; a list of one may lose its brackets, an empty one is null, and a map comes
as ``{"entry": …, "entry": …}``. Several answers may follow one another. No more of the text is held than the object at
hand and one read ahead.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import NOT_UTF8, RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.ingest.core.format import Sink

OBJECT_LIMIT = 8 * 2**20
"""An object of more characters than this is not read."""
DUMP_LIMIT = 64 * 2**20
"""A dump that has to be read as a whole may have as many bytes."""
NOT_JSON = "not valid JSON"
CUT_OFF = "cut off: the file ends inside this object"
NOT_CLOSED = "list not closed: the file ends before its ]"
TOO_LONG = f"object longer than {OBJECT_LIMIT // 2**20} MiB"

_CHUNK = 2**20
_OVERLAP = 256
_BETWEEN = re.compile(r"[\s,]*")
_BARE = re.compile(r"\s*+(?:\[\s*+)?(?=\{)")
_FIRST_KEY = re.compile(r'\{\s*"([^"\\]{1,100})"\s*:')
_NEXT = re.compile(r"\}\s*,\s*(?=\{)")
_STRAY_BYTE = re.compile("[\udc80-\udcff]")


class Item(NamedTuple):
    """One object, or one stretch of text that cannot be read.

    Attributes:
        line_no: 1-based line on which it starts.
        value: what was decoded, None if there is a fault.
        fault: why it cannot be read, None if it can.
        raw: its beginning.
    """

    line_no: int
    value: dict[str, Any] | None
    fault: str | None
    raw: str


def _gather(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key == "entry" and key in found:
            entries = found[key]
            found[key] = [*entries, value] if isinstance(entries, list) else [entries, value]
        else:
            found[key] = value
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_gather)


def decode(text: str) -> Any:
    """Decode JSON text; values of a repeated key ``entry`` are gathered in a list, of other keys the last counts.

    Raises:
        ValueError: it is not valid JSON.
        RecursionError: it is nested too deep.
    """
    return _DECODER.decode(text)


def whole(stream: BinaryIO) -> Any:
    """Decode a dump that is one JSON document.

    Raises:
        InputError: it is not valid JSON, no UTF-8, or larger than `DUMP_LIMIT`.
    """
    data = stream.read(DUMP_LIMIT + 1)
    if len(data) > DUMP_LIMIT:
        raise InputError(f"more than {DUMP_LIMIT // 2**20} MiB in one JSON document")
    try:
        return decode(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"not valid UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error.msg}", path="line", line=error.lineno) from None
    except ValueError:
        raise InputError("not valid JSON: a number too long to be read") from None


def take_items(
    stream: BinaryIO, sink: Sink, keys: tuple[str, ...], marks: tuple[str, ...], take: Callable[[dict[str, Any]], None]
) -> None:
    """Count every object that `items` finds, and hand those that can be read to `take`, whose RowError rejects one."""
    for item in items(stream, keys, marks):
        sink.seen()
        try:
            if item.value is None:
                raise RowError(item.fault or "")
            take(item.value)
        except RowError as bad:
            sink.reject(item.line_no, str(bad), item.raw or repr(item.value))
            continue
        sink.loaded()


def items(stream: BinaryIO, keys: tuple[str, ...], marks: tuple[str, ...]) -> Iterator[Item]:
    """Yield the objects that stand under any of some keys, and objects that stand by themselves.

    After a stretch that cannot be read, reading goes on with the next object that has one of the marks.

    Args:
        stream: decompressed JSON, UTF-8.
        keys: of the lists, e.g. ``app``.
        marks: keys of which every whole object has one, e.g. ``id``.
    """
    window = _Window(stream)
    opening = re.compile(rf'"(?:{"|".join(keys)})"\s*:\s*(?=[\[{{])')
    if _begins_with_one(window, marks):
        window.advance(len(window.text) - len(window.text.lstrip()))
        in_list = window.text[window.pos] == "["
        if in_list:
            window.advance(window.pos + 1)
        yield from _run(window, marks, in_list=in_list, many=True)
    while True:
        found = opening.search(window.text, window.pos)
        if found is None:
            window.advance(max(window.pos, len(window.text) - _OVERLAP))
            if not window.grow():
                return
            continue
        window.advance(found.end())
        in_list = window.text[window.pos] == "["
        if in_list:
            window.advance(window.pos + 1)
        yield from _run(window, marks, in_list=in_list, many=in_list)


def _begins_with_one(window: _Window, marks: tuple[str, ...]) -> bool:
    """Whether the text begins with an object that has one of the marks itself, or with a list of such objects."""
    start = _BARE.match(window.text)
    if start is None:
        return False
    try:
        value, _ = _DECODER.raw_decode(window.text, start.end())
    except (ValueError, RecursionError):
        # an object that is cut off or damaged shows its first key
        first = _FIRST_KEY.match(window.text, start.end())
        return first is not None and first[1] in marks
    return isinstance(value, dict) and any(mark in value for mark in marks)


def _run(window: _Window, marks: tuple[str, ...], *, in_list: bool, many: bool) -> Iterator[Item]:
    """The objects of one list; those that follow one another; or a single one."""
    damaged = False
    while True:
        between = _BETWEEN.match(window.text, window.pos)
        window.advance(between.end() if between else window.pos)
        if window.pos == len(window.text):
            if window.grow():
                continue
            if in_list and not damaged:
                yield Item(window.line, None, NOT_CLOSED, "")
            return
        if window.text[window.pos] != "{" and not damaged and (not in_list or window.text[window.pos] == "]"):
            return
        item, end = _object(window)
        if item.fault is None or not damaged:
            usable = item.fault is not None or not damaged or any(mark in (item.value or {}) for mark in marks)
            if usable:
                yield item
        if item.fault is not None:
            damaged = True
            if not _skip(window):
                return
            continue
        window.advance(end)
        if not many:
            return


def _object(window: _Window) -> tuple[Item, int]:
    """The object at hand and where it ends."""
    while True:
        try:
            value, end = _DECODER.raw_decode(window.text, window.pos)
        except RecursionError:
            return window.item(None, "nested too deep"), 0
        except ValueError as error:
            fault = _fault(error, window)
            if fault is not None:
                return window.item(None, fault), 0
            window.grow()
            continue
        if not isinstance(value, dict):
            return window.item(None, "not an object"), 0
        if _STRAY_BYTE.search(window.text, window.pos, end):
            return window.item(None, NOT_UTF8), 0
        return window.item(value, None), end


def _fault(error: ValueError, window: _Window) -> str | None:
    """What is wrong with the text at hand; None if more of it may make it right."""
    if not isinstance(error, json.JSONDecodeError):
        return NOT_JSON
    if not error.msg.startswith("Unterminated string") and error.pos < len(window.text) - 12:
        return NOT_JSON
    if window.ended:
        return CUT_OFF
    return TOO_LONG if len(window.text) - window.pos > OBJECT_LIMIT else None


def _skip(window: _Window) -> bool:
    """Go to where the next object of the list may start; false if the text is over."""
    window.advance(min(window.pos + 1, len(window.text)))
    while (found := _NEXT.search(window.text, window.pos)) is None:
        window.advance(max(window.pos, len(window.text) - _OVERLAP))
        if not window.grow():
            return False
    window.advance(found.end())
    return True


class _Window:
    """The part of the text that is held, where reading stands in it, and on which line that is."""

    def __init__(self, stream: BinaryIO) -> None:
        self.text = ""
        self.pos = 0
        self.line = 1
        self.ended = False
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self.grow()
        if self.text.startswith("\ufeff"):
            self.text = self.text[1:]

    def advance(self, to: int) -> None:
        self.line += self.text.count("\n", self.pos, to)
        self.pos = to

    def item(self, value: dict[str, Any] | None, fault: str | None) -> Item:
        raw = self.text[self.pos : self.pos + 600].encode("utf-8", "replace").decode() if fault else ""
        return Item(self.line, value, fault, raw)

    def grow(self) -> bool:
        """Drop what has been read and hold more of the rest; false if nothing is left."""
        if self.ended:
            return False
        data = self._stream.read(max(_CHUNK, len(self.text) - self.pos))
        self.ended = not data
        self.text = self.text[self.pos :] + self._decode(data, self.ended)
        self.pos = 0
        return not self.ended or bool(self.text)
