"""Reads tables of GPU samples, one row a GPU and time: `Layout` has what their columns mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import CUT_OFF
from gpuctl.ingest.read.pieces import LARGE_PIECE, torn_off, whole_lines
from gpuctl.ingest.telemetry.local_stamps import LocalStamps
from gpuctl.ingest.telemetry.node_names import whose
from gpuctl.ingest.telemetry.recorder import Device, Identity, Recorder, cleaned, fault, pci_of, uuid_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from gpuctl.ingest.core.format import Sink

NO_VALUE = (
    "N/A", "[N/A]", "[Not Supported]", "Not Supported", "[Unknown Error]", "Unknown Error", "[GPU is lost]",
    "GPU is lost", "[Insufficient Permissions]", "ERR!", "-", "nan", "",
)  # fmt: skip
"""What stands where there is no value; never 0."""
_UNIT = re.compile(rb" (?:%|MiB|MB|W|GB)(?=[,\n])")
NO_CLOCK = "no column with the time: nothing shows when a row was recorded"


@dataclass(frozen=True)
class Layout:
    """What the columns of a kind of table mean.

    Attributes:
        reader: the tool.
        values: name of the column -> (column of ``gpu_readings``, factor to its unit).
        time: the column, or columns, with the time; several are joined by a blank.
        form: of the stamps, as Polars has it; empty: seconds since 1970.
        gpu: the column with the NVML index.
        uuid: the column with the UUID.
        pci: the column with the PCI address.
        machine: the column with the node; empty: the file's name shows it.
        job: the column with the batch job's id, ``0`` for none.
        separator: between cells; a blank stands for any number of them.
    """

    reader: str
    values: dict[str, tuple[str, float]]
    time: tuple[str, ...]
    form: str
    gpu: str
    uuid: str = ""
    pci: str = ""
    machine: str = ""
    job: str = ""
    separator: str = ","
    hint: str = field(default="", compare=False)


def columns_of(line: bytes, separator: str) -> list[str]:
    """Names in a header line, without ``#`` and units."""
    text = line.decode("utf-8", "replace").strip().lstrip("#")
    parts = text.split() if separator == " " else text.split(separator)
    return [re.sub(r"\s*\[[^\]]*\]$", "", part.strip()) for part in parts]


def load(stream: BinaryIO, sink: Sink, layout: Layout) -> None:
    """Read a table into ``gpu_readings``; a row of the ledger is a line, headers and blank lines excepted.

    Raises:
        InputError: it has no time, no node or no number of the GPU.
    """
    lines = whole_lines(stream, b"", LARGE_PIECE)
    data, more = next(lines)
    first, _, data = data.partition(b"\n")
    columns = columns_of(first, layout.separator)
    table = _Table(sink, layout, columns, stream)
    at = 2
    while True:
        whole, torn = (data, b"") if more else torn_off(data, stream)
        table.take(whole, at)
        at += whole.count(b"\n")
        if torn:
            sink.seen()
            sink.reject(at, CUT_OFF, torn)
        if not more:
            break
        data, more = next(lines)
    table.finish()


class _Table:
    """A table that is being read."""

    def __init__(self, sink: Sink, layout: Layout, columns: Sequence[str], stream: BinaryIO) -> None:
        self._sink, self._layout, self._columns = sink, layout, list(columns)
        if any(name not in columns for name in layout.time):
            raise InputError(f"has {NO_CLOCK}", hint=layout.hint or f"record it with {' '.join(layout.time)}")
        if not {layout.gpu, layout.uuid, layout.pci} & set(columns):
            raise InputError(f"has no column {layout.gpu}, by which the GPUs of a node differ")
        self._whose = whose(stream, sink)
        if layout.machine not in columns and self._whose == (None, None) and layout.uuid not in columns:
            raise InputError(
                "nothing shows which node this is of", hint="name the file or its folder after the node, e.g. gpu01.csv"
            )
        self._stamps = LocalStamps(sink.timezone)
        self._recorder = Recorder(sink, node_clock=True)

    def take(self, data: bytes, first: int) -> None:
        """Read some whole lines."""
        import polars as pl

        if b"\r" in data:
            data = data.replace(b"\r", b"")
        if not data.strip():
            return
        layout = self._layout
        if layout.separator == " ":
            data = re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", data)
            data = re.sub(rb"[ \t]+", b",", data)
        rows = self._typed(data) if b"#" not in data else None
        bare = False
        if rows is None:
            rows, bare = self._text(data), True
        rows = rows.with_row_index("line", first)
        if bare:
            heads = pl.col(self._columns[0]).str.starts_with("#") | (pl.col(self._columns[0]) == self._columns[0])
            rows = rows.filter(pl.col(self._columns[0]).is_not_null() & ~heads)
        self._write(self._meaning(rows), data, first)

    def finish(self) -> None:
        """Write what has not been written yet."""
        self._recorder.finish()

    def _schema(self, *, numbers: bool) -> dict[str, pl.DataType | type[pl.DataType]]:
        import polars as pl

        return {name: pl.Float64 if numbers and name in self._layout.values else pl.String for name in self._columns}

    def _typed(self, data: bytes) -> pl.DataFrame | None:
        """All lines at once; None where one of them is no plain row."""
        import polars as pl

        if b'"' in data:
            return None
        plain = _UNIT.sub(b"", data).replace(b", ", b",")
        try:
            rows = pl.read_csv(
                plain, has_header=False, schema=self._schema(numbers=True), quote_char=None, null_values=list(NO_VALUE)
            )
        except pl.exceptions.PolarsError:
            return None
        return rows if rows.height == data.count(b"\n") + (not data.endswith(b"\n")) else None

    def _text(self, data: bytes) -> pl.DataFrame:
        """All lines as text, whatever they are; cells that a line lacks are null."""
        import polars as pl

        cells = pl.read_csv(
            data, has_header=False, schema=self._schema(numbers=False), truncate_ragged_lines=True,
            missing_columns="insert", encoding="utf8-lossy", quote_char='"' if b'"' in data else None,
        )  # fmt: skip
        return cells.with_columns(pl.all().str.strip_chars())

    def _meaning(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows as ``line``, ``ts``, machine, gpu, uuid, pci, job, the values, and ``fault`` (null: none)."""
        import polars as pl

        layout = self._layout
        here = set(self._columns)

        def text(name: str) -> pl.Expr:
            return pl.col(name) if name in here else pl.lit(None, pl.String)

        made = [text(layout.machine).alias("machine"), text(layout.uuid).alias("uuid"), text(layout.pci).alias("pci"),
                text(layout.job).alias("job"), text(layout.gpu).cast(pl.Int32, strict=False).alias("gpu")]  # fmt: skip
        last = self._columns[-1]
        torn = pl.col(last).is_null() & pl.lit(rows.schema[last] == pl.String)
        faults = [(torn, "cut off: cells are missing")]
        values = []
        for name, (column, factor) in layout.values.items():
            if name not in here:
                continue
            value = pl.col(name)
            if rows.schema[name] == pl.String:
                bare = value.str.replace(r"\s*(%|MiB|MB|GB|W|J|mJ)$", "")
                none = bare.is_in(NO_VALUE) | value.is_in(NO_VALUE)
                value = bare.cast(pl.Float64, strict=False)
                faults.append((pl.col(name).is_not_null() & ~none & value.is_null(), f"{name}: expected a number"))
            value = cleaned(column, value * factor)
            values.append(value.alias(column))
            faults.append((fault(column, value), f"{name} cannot be right: is it in another unit?"))
        rows = rows.with_columns(self._times(rows).alias("ts"))
        faults.append((pl.col("ts").is_null(), "no time that can be read"))
        if layout.uuid not in here:
            number = text(layout.gpu).cast(pl.Int32, strict=False)
            faults.append((number.is_null(), f"{layout.gpu}: expected the number of a GPU"))
        why = pl.coalesce([pl.when(wrong).then(pl.lit(text)) for wrong, text in faults])
        return rows.select("line", "ts", *made, *values, fault=why)

    def _times(self, rows: pl.DataFrame) -> pl.Series:
        import polars as pl

        layout = self._layout
        if not layout.form:
            stamps = rows[layout.time[0]].cast(pl.Float64, strict=False)
            return (stamps * 1e6).round().cast(pl.Int64)
        cells = rows.select(pl.concat_str([pl.col(name) for name in layout.time], separator=" ")).to_series()
        return self._stamps.utc(cells, layout.form)

    def _write(self, rows: pl.DataFrame, data: bytes, first: int) -> None:
        import polars as pl

        self._sink.seen(rows.height)
        bad = rows.filter(pl.col("fault").is_not_null())
        if bad.height:
            raw = data.split(b"\n")
            for line, why in bad.select("line", "fault").iter_rows():
                self._sink.reject(line, why, raw[line - first])
            rows = rows.filter(pl.col("fault").is_null())
        keys = ["machine", "gpu", "uuid", "pci", "job"]
        known = rows.select(keys).unique(maintain_order=True)
        numbers = [self._number(*row) for row in known.iter_rows()]
        numbered = known.with_columns(series=pl.Series(numbers, dtype=pl.Int64))
        rows = rows.join(numbered, on=keys, nulls_equal=True, how="left")
        self._recorder.add(rows.drop("line", "fault", *keys))
        self._sink.loaded(rows.height)

    def _number(self, machine: str | None, gpu: int | None, uuid: str | None, pci: str | None, job: str | None) -> int:
        machine = machine or self._whose.machine
        uuid = uuid_of(uuid)
        if gpu is not None and (uuid or pci):
            self._recorder.device(Device(machine, gpu, uuid, pci_of(pci)))
        inside, slot = self._whose.job, None
        if inside is not None and uuid is None:
            # recorded within a job: its GPUs are numbered from 0
            slot, gpu = None if gpu is None else str(gpu), None
        job = inside or (None if job in {None, "", "0"} else job)
        return self._recorder.number(Identity(self._layout.reader, machine, gpu, uuid, None, job, slot))
