"""Parquet as a container: its rows as the text of a CSV, a few row groups' worth at a time.

Columns of lists, maps, structures and raw bytes are left out. A footer at the end says where all is, so that a file
that is cut off cannot be read at all.
"""

from __future__ import annotations

import io
import tempfile
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"PAR1"
ROWS = 65_536
"""Rows made into text at a time."""
_COPY = 1 << 20
_IN_MEMORY = 64 << 20


class UnreadableError(Exception):
    """The bytes are no sound Parquet."""


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
        UnreadableError: it is damaged, or has no column that text can hold.
    """
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as copy:
        while data := raw.read(_COPY):
            copy.write(data)
        copy.seek(0)
        try:
            file = pq.ParquetFile(cast("BinaryIO", copy), memory_map=False, pre_buffer=False)
            columns = [field.name for field in file.schema_arrow if _is_plain(field.type)]
            if not columns:
                raise UnreadableError("no column of plain values")
            yield ",".join(_quoted(name) for name in columns).encode() + b"\n"
            for batch in file.iter_batches(ROWS, columns=columns):
                frame = pl.DataFrame(pa.Table.from_batches([batch]).select(columns))
                out = _lines(frame)
                for start in range(0, len(out), size):
                    yield out[start : start + size]
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise UnreadableError(str(error).splitlines()[0][:200] if str(error) else type(error).__name__) from error


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    value = kind.value_type if types.is_dictionary(kind) else kind
    tests = (
        *(types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_string),
        *(types.is_large_string, types.is_timestamp, types.is_date),
    )
    return any(test(value) for test in tests)


def _quoted(name: str) -> str:
    plain = name.replace("\r", " ").replace("\n", " ")
    return '"' + plain.replace('"', '""') + '"' if any(c in plain for c in ',"') else plain


def _lines(frame: Any) -> bytes:
    import polars as pl

    texts = []
    for name, kind in frame.schema.items():
        if kind in {pl.Categorical, pl.String}:
            # a line is a row
            texts.append(pl.col(name).cast(pl.String).str.replace_all(r"[\r\n]+", " "))
        elif isinstance(kind, pl.Datetime):
            form = "%Y-%m-%dT%H:%M:%S%.6f" + ("%z" if kind.time_zone else "")
            texts.append(
                pl.col(name).dt.cast_time_unit("us").dt.to_string(form).str.replace(".000000", "", literal=True)
            )
    out = io.BytesIO()
    frame.with_columns(texts).write_csv(out, include_header=False)
    return out.getvalue()
