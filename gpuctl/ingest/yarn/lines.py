"""Reads the records of a log4j log: a line that begins with a date, and the lines without one that follow it."""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.core.line_reader import GLUED, LINE_TOO_LONG, NOT_UTF8, RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import polars as pl

    from gpuctl.ingest.core.format import Sink

NO_DATE = "no date: lines before the first dated one (the record they belong to is in another file)"
NO_END = "no line end: the file stops inside this line, or right after it"
_CHUNK = 16 << 20
_LONGEST = 32 << 20
_MOST_OF_MORE = 4096
_DATED = re.compile(rb"\n(?:\d{4}-\d\d-\d\d[ T]|\d\d/\d\d/\d\d )")
_BOM = b"\xef\xbb\xbf"


class Hit(NamedTuple):
    """A record worth reading.

    Attributes:
        kind: the number of the mark that its message begins with.
        millis: its date, milliseconds since 1970 on the host's own clock, or in UTC if the record states its zone.
        text: its message, of the dated line alone.
        more: the beginning of the lines without a date that follow it, for the kinds that are read with them.
    """

    kind: int
    millis: int
    text: str
    more: str = ""


def read_records(
    stream: BinaryIO,
    sink: Sink,
    marks: tuple[bytes, ...],
    take: Callable[[Hit], None],
    *,
    take_many: Callable[[int, pl.DataFrame], pl.Series] | None = None,
    many: int = 0,
    with_more: frozenset[int] = frozenset(),
) -> int:
    """Count every record of a log, and hand on those whose message begins with one of the marks.

    A record is rejected where `take` raises `RowError`, if it is to be read and is no UTF-8, and where it is to be
    read and has no line end, at the end of the file or before the record that follows. Lines before the first date are
    one record, rejected. All other records are loaded.

    Args:
        stream: the decompressed log.
        sink: counts the records.
        marks: beginnings of messages; one that begins with a blank stands after an id (``container_… Container``).
        take: reads one record.
        take_many: reads records of one kind at once (``millis``, ``text``) and shows which of them it understood; the
            others go to `take`.
        many: how many of the marks, from the first on, are for `take_many`.
        with_more: marks of records whose further lines are wanted too; they lack if a chunk of the log ends there.

    Returns:
        how many records state the zone of their date; the dates of those are in UTC.
    """
    from gpuctl.compiled.jit import is_compiled
    from gpuctl.ingest.yarn import scan_kernel as kernel

    if not is_compiled(kernel.scan):
        logging.getLogger(__name__).warning("compiling the log reader; only the first run on a node does")
    table = _marks(marks)
    line, begun, zoned = 1, False, 0
    for data, whole, (found, hits, dated, lines, before_text, stated) in _ahead(stream, table):
        if not begun and before_text:
            sink.seen()
            sink.reject(line, NO_DATE, data[:4096].lstrip())
            begun = True
        begun = begun or dated > 0
        sink.seen(dated)
        if whole:
            left = hits[:, :found]
            if take_many is not None:
                left = _hand_on_many(data, left, take_many, many)
            rejected = _hand_on(data, left.tolist(), line, sink, take, with_more)
        else:
            rejected = dated
            if dated:
                sink.reject(line, LINE_TOO_LONG, data[:4096])
        sink.loaded(dated - rejected)
        line += lines
        zoned += stated
    return zoned


def _ahead(stream: BinaryIO, table: tuple[np.ndarray, np.ndarray]) -> Iterator[tuple[bytes, bool, Any]]:
    """Runs of lines with what the scanner found in them; the next one is read and scanned meanwhile."""
    from gpuctl.ingest.yarn import scan_kernel as kernel

    chunks = _chunks(stream)

    def one() -> tuple[bytes, bool, Any] | None:
        data, whole = next(chunks, (b"", True))
        return (data, whole, kernel.scan(_bytes(data), *table)) if data else None

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(one)
        while (chunk := coming.result()) is not None:
            coming = pool.submit(one)
            yield chunk


def _hand_on_many(
    data: bytes, hits: np.ndarray, take_many: Callable[[int, pl.DataFrame], pl.Series], many: int
) -> np.ndarray:
    """Hand on records by kind; returns those that are still to be read, in their order."""
    import numpy as np
    import polars as pl

    schema = {"millis": pl.Int64, "text": pl.String}
    left = np.ones(hits.shape[1], bool)
    for kind in range(many):
        # a line without its end may be half a line
        chosen = np.flatnonzero((hits[4] == kind) & (hits[3] < len(data)))
        if chosen.size:
            texts = _texts(data, hits[2, chosen], hits[3, chosen])
            records = pl.DataFrame({"millis": hits[5, chosen], "text": texts}, schema)
            understood = take_many(kind, records)
            left[chosen[understood.to_numpy()]] = False
    return hits[:, left]


def _texts(data: bytes, starts: np.ndarray, ends: np.ndarray) -> pl.Series:
    """Stretches of a log as texts, NULL for what is not UTF-8."""
    import numpy as np
    import polars as pl
    import pyarrow as pa

    from gpuctl.ingest.yarn import scan_kernel as kernel

    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(ends - starts)))
    joined = np.empty(int(offsets[-1]), np.uint8)
    kernel.gather(_bytes(data), starts, ends, joined)
    # if all of it is UTF-8 and no text begins within a character, each of them is
    if _is_utf8(joined) and not (joined[offsets[:-1]] & 0xC0 == 0x80).any():
        buffers = (pa.py_buffer(offsets), pa.py_buffer(joined))
        return pl.Series(pa.LargeStringArray.from_buffers(len(starts), *buffers))
    cut = zip(starts.tolist(), ends.tolist(), strict=True)
    return pl.Series([_one_decoded(data[a:b]) for a, b in cut], dtype=pl.String)


def _is_utf8(joined: np.ndarray) -> bool:
    try:
        str(joined.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _one_decoded(text: bytes) -> str | None:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _hand_on(  # noqa: PLR0917
    data: bytes,
    hits: list[list[int]],
    line: int,
    sink: Sink,
    take: Callable[[Hit], None],
    with_more: frozenset[int],
) -> int:
    from gpuctl.ingest.yarn.scan_kernel import TORN

    rejected = 0
    for at, start, message, end, kind, millis in zip(*hits, strict=True):
        try:
            if kind >= TORN:
                raise RowError(GLUED)
            if end >= len(data):
                raise RowError(NO_END)
            more = _more(data, end) if kind in with_more else ""
            take(Hit(kind, millis, data[message:end].decode("utf-8"), more))
        except UnicodeDecodeError:
            sink.reject(line + at, NOT_UTF8, data[start : min(end, start + 4096)])
        except RowError as bad:
            sink.reject(line + at, str(bad), data[start : min(end, start + 4096)])
        else:
            continue
        rejected += 1
    return rejected


def _more(data: bytes, end: int) -> str:
    """The lines after a dated one, up to the next one."""
    text = data[end : end + _MOST_OF_MORE]
    following = _DATED.search(text)
    return text[: following.start() if following else None].decode("utf-8", "replace")


def _chunks(stream: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """(bytes, whether they are whole lines): runs of whole lines, or the beginning of one that is too long."""
    rest, first = b"", True
    while data := stream.read(_CHUNK):
        if first:
            data, first = data.removeprefix(_BOM), False
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut], True
            rest = data[cut:]
            continue
        rest += data
        if len(rest) > _LONGEST:
            yield rest, False
            rest = _after_line_end(stream)
    if rest:
        yield rest, True


def _after_line_end(stream: BinaryIO) -> bytes:
    while data := stream.read(_CHUNK):
        cut = data.find(b"\n")
        if cut >= 0:
            return data[cut + 1 :]
    return b""


def _bytes(data: bytes) -> np.ndarray:
    import numpy as np

    return np.frombuffer(data, np.uint8)


@cache
def _marks(marks: tuple[bytes, ...]) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    return _bytes(b"".join(marks)), np.cumsum([len(mark) for mark in marks]).astype(np.int64)
