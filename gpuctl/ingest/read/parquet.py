"""Parquet as a container: its rows as the text of a CSV, a few row groups' worth at a time.

Columns of lists, maps, structures and raw bytes are left out. A footer at the end locates everything, so that a
truncated file cannot be read at all.
"""

from __future__ import annotations

import io
import re
import tempfile
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from gpuctl.core.errors import is_bug

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"PAR1"
ROWS = 65_536
"""Rows made into text at a time, at most."""
HELD = 32 << 20
"""Bytes of values that are held at a time, about."""
MOST_OF_A_CHUNK = 1 << 30
"""A column of one row group that decompresses to more bytes than this is refused …"""
MOST_TIMES = 1000
"""… and one that decompresses to this many times its size, if that is more than `HELD`."""
_COPY = 1 << 20
_IN_MEMORY = 64 << 20
_YEARS = (-62_135_596_800, 253_402_300_799)
"""The first and the last second of the years 1 to 9999, which have four digits."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_OFFSET = re.compile(r"[+-]\d{2}:?\d{2}")


class UnreadableError(Exception):
    """The bytes are not sound Parquet, or hold values that text cannot."""


class Raw(Protocol):
    """Bytes from their start."""

    def read(self, size: int, /) -> bytes:
        """Read."""


def text(raw: Raw, size: int) -> Iterator[bytes]:
    """Yield the rows as CSV: a header, then a line each; times as ``YYYY-MM-DDTHH:MM:SS``, with their offset if any.

    Args:
        raw: the file, from its start.
        size: bytes of a piece, at most.

    Raises:
        UnreadableError: it is damaged, has no column that text can hold, or holds values that are none: two columns of
            one name, an unknown time zone, times outside the years 1 to 9999, far more bytes than it takes up.
    """
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as copy:
        while data := raw.read(_COPY):
            copy.write(data)
        copy.seek(0)
        try:
            yield from _pieces(cast("BinaryIO", copy), size)
        except UnreadableError:
            raise
        except BaseException as error:
            # the libraries raise errors of many classes for a damaged file, and Polars' panics are no Exception
            if not isinstance(error, Exception) and not is_bug(error):
                raise
            raise UnreadableError(str(error).splitlines()[0][:200] if str(error) else type(error).__name__) from error


def _pieces(copy: BinaryIO, size: int) -> Iterator[bytes]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(copy, memory_map=False, pre_buffer=False) as plain:
        schema = plain.schema_arrow
        columns = [field.name for field in schema if _is_plain(field.type)]
        if not columns:
            raise UnreadableError("no column of plain values")
        twice = next((name for name in columns if schema.names.count(name) > 1), None)
        if twice is not None:
            raise UnreadableError(f"two columns are called {twice!r}")
        for name in columns:
            _check_zone(name, schema.field(name).type)
        _check_sizes(plain.metadata)
        texts = [name for name in columns if _is_text(schema.field(name).type)]
        coded = [name for name in texts if _is_coded(plain.metadata, name)]
    yield ",".join(_quoted(name) for name in columns).encode() + b"\n"
    copy.seek(0)
    # a value that is written once and named by each row stays one value
    with pq.ParquetFile(copy, memory_map=False, pre_buffer=False, read_dictionary=coded) as file:
        for group in range(file.num_row_groups):
            rows = _rows_at_a_time(file.metadata.row_group(group))
            for batch in file.iter_batches(rows, row_groups=[group], columns=columns):
                for part in _parts(batch.select(columns)):
                    out = _lines(part)
                    for start in range(0, len(out), size):
                        yield out[start : start + size]


def _check_sizes(metadata: Any) -> None:
    """Reject files that declare to decompress to far more than their size.

    Raises:
        UnreadableError: a column does.
    """
    for group in range(metadata.num_row_groups):
        for number in range(metadata.row_group(group).num_columns):
            chunk = metadata.row_group(group).column(number)
            out, taken = chunk.total_uncompressed_size, max(chunk.total_compressed_size, 1)
            if out > MOST_OF_A_CHUNK or (out > HELD and out > MOST_TIMES * taken):
                raise UnreadableError(
                    f"column {chunk.path_in_schema} decompresses from {taken:,} to {out:,} bytes in one row group; "
                    f"refused past {MOST_OF_A_CHUNK:,} bytes, and past {MOST_TIMES:,} times its size"
                )


def _rows_at_a_time(group: Any) -> int:
    rows = max(group.num_rows, 1)
    fit = HELD * rows // max(group.total_byte_size, 1)
    chunks = [group.column(number) for number in range(group.num_columns)]
    if any("DELTA_BYTE_ARRAY" in chunk.encodings for chunk in chunks):
        # each value may repeat the one before it, so that any may be as long as all of the chunk
        fit = min(fit, HELD // max(1, *(chunk.total_uncompressed_size for chunk in chunks)))
    return int(min(ROWS, max(fit, 64)))


def _is_coded(metadata: Any, name: str) -> bool:
    groups = (metadata.row_group(group) for group in range(metadata.num_row_groups))
    chunks = (group.column(number) for group in groups for number in range(group.num_columns))
    return any(chunk.path_in_schema == name and chunk.has_dictionary_page for chunk in chunks)


def _parts(batch: Any) -> Iterator[Any]:
    """Cut rows into parts whose values take `HELD` bytes at most, written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    widest = 0
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and _is_text(column.type) and len(column.dictionary):
            widest += pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    rows = min(batch.num_rows, max(1, HELD // max(widest, 1))) or 1
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _value_type(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    value = _value_type(kind)
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    tests = (
        *(types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_string),
        *(types.is_large_string, types.is_timestamp, types.is_date),
    )
    return any(test(_value_type(kind)) for test in tests)


def _check_zone(name: str, kind: Any) -> None:
    import zoneinfo

    zone = getattr(_value_type(kind), "tz", None)
    if zone is None or _OFFSET.fullmatch(zone):
        return
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnreadableError(f"column {name} has times of an unknown zone, {zone[:60]!r}") from error


def _readable(name: str, column: Any) -> Any:
    """A column as Polars takes it.

    Raises:
        UnreadableError: it has times that are none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_decimal(kind):
        return column.cast(pa.string())
    if pa.types.is_date(kind):
        width, per_second = (pa.int32(), 1 / 86_400) if pa.types.is_date32(kind) else (pa.int64(), 1000)
        _check_years(name, column.cast(width).cast(pa.int64()), per_second)
    elif pa.types.is_timestamp(kind):
        _check_years(name, column.cast(pa.int64()), _PER_SECOND[kind.unit])
        # below a microsecond nothing is stated
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
        if kind.tz is not None and _OFFSET.fullmatch(kind.tz):
            column = pc.cast(column, pa.timestamp("us", "UTC"))
    return column


def _check_years(name: str, counts: Any, per_second: float) -> None:
    import pyarrow.compute as pc

    ends = pc.min_max(counts)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and not (_YEARS[0] * per_second <= low and high < (_YEARS[1] + 1) * per_second):
        raise UnreadableError(f"column {name} has a time outside the years 1 to 9999")


def _quoted(name: str) -> str:
    plain = name.replace("\r", " ").replace("\n", " ")
    return '"' + plain.replace('"', '""') + '"' if any(c in plain for c in ',"') else plain


def _lines(batch: Any) -> bytes:
    import polars as pl
    import pyarrow as pa

    frame = pl.DataFrame(pa.table({name: _readable(name, batch.column(name)) for name in batch.schema.names}))
    texts = []
    for name, kind in frame.schema.items():
        if kind == pl.String:
            # a line is a row
            texts.append(pl.col(name).str.replace_all(r"[\r\n]+", " "))
        elif isinstance(kind, pl.Datetime):
            form = "%Y-%m-%dT%H:%M:%S%.6f" + ("%z" if kind.time_zone else "")
            texts.append(pl.col(name).dt.to_string(form).str.replace(".000000", "", literal=True))
    out = io.BytesIO()
    frame.with_columns(texts).write_csv(out, include_header=False)
    return out.getvalue()
