"""ClassAds as HTCondor's commands and history files write them: old ClassAds, JSON and XML, read one by one.

Old ClassAds are lines ``Attribute = value``, with a blank line between two ads, or in a history file a line that begins
with ``***`` behind each. Names count in any case. Values that are expressions are not evaluated.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.core.line_reader import CUT_OFF, RowError, numbered_lines
from gpuctl.ingest.core.format import RAW_LIMIT
from gpuctl.ingest.read.json_stream import elements
from gpuctl.ingest.read.streams import HeadAgain

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = 64 << 10
_START = re.compile(r'\{\s{0,8}"[A-Za-z_]\w{0,60}"\s{0,2}:')
_ATTRIBUTE = re.compile(r"([A-Za-z_][\w.]{0,99})\s?=\s?(.*)", re.ASCII | re.DOTALL)
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_REAL = re.compile(r"-?\d{1,18}(?:\.\d{0,18})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_ESCAPE = re.compile(r'\\(["\\])')
_XML = re.compile(r'<a n="(\w{1,99})">\s*(?:<([isre])>(.*?)</\2>|<b v="([tf])"\s*/>|<un\s*/>|<er\s*/>)?', re.DOTALL)
_XML_ENDS = re.compile(r"</c>\s*$")
_LONGEST = 20_000
"""Lines of one ad at most."""
TOO_LONG = f"more than {_LONGEST} lines without an end"


class Ad(NamedTuple):
    """One ClassAd, or a stretch that is none.

    Attributes:
        line_no: 1-based line on which it starts.
        values: by name in lower case: numbers, texts, truths; None for an expression.
        fault: why it cannot be read; None if it can.
        raw: its beginning.
    """

    line_no: int
    values: dict[str, Any]
    fault: str | None
    raw: str


def ads(stream: BinaryIO, wanted: frozenset[str]) -> Iterator[Ad]:
    """Yield the ClassAds of a file.

    Args:
        stream: decompressed bytes.
        wanted: names of attributes, in lower case; others are not kept.

    Raises:
        InputError: there is nothing in the file.
    """
    head = stream.read(_HEAD)
    rest: Any = HeadAgain(head, stream)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in {b"[", b"{"}:
        for element in elements(rest, _START):
            found = element.value if isinstance(element.value, dict) else {}
            values = {name.lower(): _plain(value) for name, value in found.items() if name.lower() in wanted}
            fault = element.fault or (None if isinstance(element.value, dict) else "not an object")
            yield Ad(element.line_no, values, fault, element.raw.decode("utf-8", "replace"))
    elif text[:1] == b"<":
        yield from _xml(rest, wanted)
    else:
        yield from _long(rest, wanted)


def _plain(value: object) -> Any:
    """A value of JSON; an expression is a text ``/Expr(...)/`` there, and undefined is null."""
    if isinstance(value, str):
        return None if value.startswith("/Expr(") or value == "undefined" else value
    return value if isinstance(value, int | float) else None


def value_of(text: str) -> Any:
    """Return the value of an old ClassAd's attribute; None for an expression or an undefined one."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _ESCAPE.sub(r"\1", text[1:-1])
    if _WHOLE.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text.lower())


def _long(stream: BinaryIO, wanted: frozenset[str]) -> Iterator[Ad]:
    start, size, raw = 0, 0, ""
    values: dict[str, Any] = {}
    fault: str | None = None
    for line in numbered_lines(stream):
        ends = not line.data.strip() or line.data.startswith(b"***")
        if ends or size >= _LONGEST:
            if size:
                yield Ad(start, values, fault if ends else TOO_LONG, raw)
            start, size, raw, values, fault = 0, 0, "", {}, None
            if ends:
                continue
        start, size = start or line.line_no, size + 1
        try:
            text = line.text()
            found = _ATTRIBUTE.fullmatch(text)
            if found is None:
                raise RowError("not ATTRIBUTE = VALUE")
        except RowError as bad:
            fault = fault or f"its line {size}: {bad}"
            raw = raw or line.data[:RAW_LIMIT].decode("utf-8", "replace")
            continue
        if len(raw) < RAW_LIMIT:
            raw += text[:RAW_LIMIT] + "\n"
        name = found[1].lower()
        if name in wanted:
            values[name] = value_of(found[2])
    if size:
        yield Ad(start, values, CUT_OFF if getattr(stream, "truncated", False) else fault, raw)


def _xml(stream: BinaryIO, wanted: frozenset[str]) -> Iterator[Ad]:
    """Ads of ``<classads>``: each ``<c>`` and ``</c>`` on a line of its own, as the commands write them."""
    start, size, raw = 0, 0, ""
    values: dict[str, Any] = {}
    fault: str | None = None
    for line in numbered_lines(stream):
        stripped = line.data.strip()
        if not start:
            if stripped == b"<c>":
                start, size, raw, values, fault = line.line_no, 0, "", {}, None
            elif stripped and not stripped.startswith((b"<?xml", b"<!DOCTYPE", b"<classads>", b"</classads>")):
                yield Ad(line.line_no, {}, "outside <c> ... </c>", line.data[:RAW_LIMIT].decode("utf-8", "replace"))
            continue
        if stripped == b"</c>" or size >= _LONGEST:
            yield Ad(start, values, fault if size < _LONGEST else TOO_LONG, raw)
            start = 0
            continue
        size += 1
        try:
            text = line.text().strip()
        except RowError as bad:
            fault = fault or f"its line {size}: {bad}"
            continue
        if len(raw) < RAW_LIMIT:
            raw += text[:RAW_LIMIT] + "\n"
        found = _XML.match(text)
        if found is not None and found[1].lower() in wanted:
            values[found[1].lower()] = _of_xml(found)
    if start:
        yield Ad(start, values, CUT_OFF, raw)


def _of_xml(found: re.Match[str]) -> Any:
    if found[4] is not None:
        return found[4] == "t"
    if found[2] == "s":
        return html.unescape(found[3])
    return value_of(found[3]) if found[2] in {"i", "r"} else None
