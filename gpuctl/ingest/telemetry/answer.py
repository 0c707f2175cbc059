"""Reads answers of Prometheus's query API in bounded memory: labels, then samples by the ten thousand."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

_CHUNK = 4 << 20
_MOST_LABELS = 1 << 20
_KEY = re.compile(rb'"(metric|values|value|errorType)"\s*:\s*')
_END = re.compile(rb"\]\s*\]|\[\s*\]")
_PAIR_END = re.compile(rb"\]\s*,\s*\[")
_ERROR = re.compile(rb'"error"\s*:\s*("(?:[^"\\]|\\.){0,2000}")')


class Block(NamedTuple):
    """Some samples of a series, or a fault in place of them.

    Attributes:
        labels: of the series; the same object for all of its blocks.
        rows: ``ts`` (microseconds since 1970), ``value``.
        line_no: 1-based line on which the block starts.
        fault: why the samples cannot be read; empty if they can.
        error: what the server answered in place of data.
    """

    labels: Mapping[str, str]
    rows: pl.DataFrame
    line_no: int
    fault: str = ""
    error: str = ""


class _Text:
    """The part of a stream that is being read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.data = b""
        self.line = 1

    def more(self) -> bool:
        """Read on; false at the end."""
        new = self._stream.read(_CHUNK)
        self.data += new
        return bool(new)

    def drop(self, size: int) -> None:
        """Forget what was read."""
        self.line += self.data.count(b"\n", 0, size)
        self.data = self.data[size:]


def blocks(stream: BinaryIO) -> Iterator[Block]:
    """Yield the samples of an answer; what stands before ``metric`` waits for it.

    Raises:
        InputError: it has no series at all and is no answer.
    """
    text, labels = _Text(stream), None
    early: list[tuple[pl.DataFrame, int, str]] = []
    found_any = False
    while True:
        key = _KEY.search(text.data)
        if key is None:
            text.drop(max(0, len(text.data) - 64))
            if text.more():
                continue
            break
        found_any = True
        text.drop(key.end())
        if key[1] == b"errorType":
            text.more()
            shown = _ERROR.search(text.data)
            yield Block({}, _none(), text.line, error=json.loads(shown[1]) if shown else "an error")
        elif key[1] == b"metric":
            labels = _labels(text)
            for rows, line, fault in early:
                yield Block(labels, rows, line, fault)
            if early:
                early, labels = [], None
        elif key[1] in {b"values", b"value"}:
            for rows, line, fault in _values(text, one=key[1] == b"value"):
                if labels is None:
                    early.append((rows, line, fault))
                else:
                    yield Block(labels, rows, line, fault)
            labels = None
    if not found_any:
        raise InputError("is no answer of Prometheus's query API", hint='expected {"status":"success","data":…')


def _labels(text: _Text) -> Mapping[str, str]:
    decoder = json.JSONDecoder()
    while True:
        try:
            found, end = decoder.raw_decode(text.data[:_MOST_LABELS].decode("utf-8", "surrogateescape"))
        except ValueError:
            if len(text.data) >= _MOST_LABELS or not text.more():
                return {}
            continue
        text.drop(
            len(text.data[:_MOST_LABELS].decode("utf-8", "surrogateescape")[:end].encode("utf-8", "surrogateescape"))
        )
        return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


def _values(text: _Text, *, one: bool) -> Iterator[tuple[pl.DataFrame, int, str]]:
    """The samples of one series, in blocks that end between two of them."""
    closing = re.compile(rb"\]") if one else _END
    while True:
        end = closing.search(text.data)
        if end is not None:
            line = text.line
            body = text.data[: end.start() + 1]
            text.drop(end.end())
            yield _pairs(body, line)
            return
        # as far as the last sample that is whole
        cut = text.data.rfind(b"]")
        cut = text.data.rfind(b"]", 0, cut) if cut > 0 else -1
        if cut > 0:
            line, body = text.line, text.data[: cut + 1]
            text.drop(cut + 1)
            yield _pairs(body, line)
        if not text.more():
            if text.data.strip():
                yield _none(), text.line, "cut off: the file ends inside this series"
            return


def _pairs(body: bytes, line: int) -> tuple[pl.DataFrame, int, str]:
    import polars as pl

    plain = body.translate(None, b' "\n\r\t').strip(b"[],")
    if not plain:
        return _none(), line, ""
    table = plain.replace(b"],[", b"\n")
    for kind in (pl.Float64, pl.String):
        try:
            rows = pl.read_csv(table, has_header=False, schema={"ts": pl.Float64, "value": kind}, quote_char=None)
        except pl.exceptions.PolarsError:
            continue
        value = (
            pl.col("value")
            if kind == pl.Float64
            else pl.col("value").str.strip_chars("+").cast(pl.Float64, strict=False)
        )
        return rows.select((pl.col("ts") * 1e6).round().cast(pl.Int64), value), line, ""
    return _none(), line, "samples that are no pairs of time and value"


def _none() -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(schema={"ts": pl.Int64, "value": pl.Float64})
