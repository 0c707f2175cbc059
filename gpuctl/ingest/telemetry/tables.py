"""Reads tables of GPU samples, one row a GPU and time: `Layout` has what their columns mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import CUT_OFF
from gpuctl.ingest.read.pieces import LARGE_PIECE, torn_off, whole_lines
from gpuctl.ingest.telemetry.exporters import whole
from gpuctl.ingest.telemetry.node_names import origin_of
from gpuctl.ingest.telemetry.recorder import Device, Identity, Recorder, cleaned, fault, pci_of, uuid_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from gpuctl.ingest.core.format import Sink


_BACK_S = 1800


class LocalStamps:
    """Local times of one file as UTC, in the order of its rows.

    An hour that occurs twice is told apart by the file's order: once the clock went back, times are of the second hour.

    Args:
        zone: IANA name.
    """

    def __init__(self, zone: str) -> None:
        self._zone = zone
        self._latest: int | None = None
        self._went_back = False

    def utc(self, cells: pl.Series, form: str) -> pl.Series:
        """Microseconds since 1970 of stamps; null where one is none.

        Args:
            cells: text.
            form: of the stamps, as strptime of Polars has it.
        """
        import polars as pl

        some = cells.unique(maintain_order=True).drop_nulls()
        # most rows share their time with those of other GPUs
        naive = some.str.strip_chars().str.to_datetime(form, time_unit="us", strict=False)
        steps = naive.to_physical().to_list()
        order: list[str] = []
        for at in steps:
            if at is not None:
                if self._latest is not None and at < self._latest - _BACK_S * 1_000_000:
                    self._went_back = True
                self._latest = at
            order.append("latest" if self._went_back else "earliest")
        rows = pl.DataFrame({"cell": some, "naive": naive, "which": order})
        made = rows.select(
            "cell",
            utc=pl.col("naive")
            .dt.replace_time_zone(self._zone, ambiguous=pl.col("which"), non_existent="null")
            .dt.convert_time_zone("UTC").dt.epoch("us"),
        )  # fmt: skip
        return pl.DataFrame({"cell": cells}).join(made, on="cell", how="left", maintain_order="left")["utc"]


NO_VALUE = (
    "N/A", "[N/A]", "[Not Supported]", "Not Supported", "[Unknown Error]", "Unknown Error", "[GPU is lost]",
    "GPU is lost", "[Insufficient Permissions]", "ERR!", "-", "nan", "",
)  # fmt: skip
"""What stands where there is no value; never 0."""
_UNITS: dict[str, dict[str, float]] = {
    "util": {"": 1.0, "%": 1.0},
    "sm_pct": {"": 1.0, "%": 1.0},
    "tensor_pct": {"": 1.0, "%": 1.0},
    # nvidia-smi dmon and amd-smi write MB and GB for 2^20 and 2^30 bytes
    "mem_mb": {"": 1.0, "MiB": 1.0, "MB": 1.0, "GiB": 1024.0, "GB": 1024.0},
    "power_w": {"": 1.0, "W": 1.0, "mW": 1e-3, "kW": 1e3},
    "energy_j": {"": 1.0, "J": 1.0, "mJ": 1e-3},
}
"""Of each column of ``gpu_readings``, the units that a cell or a header may have, as factors."""
_USUAL = " %MiBW"
"""Characters of the units of nvidia-smi: cells without them are numbers, unless the unit is another one."""
_CELL = r"^([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*([A-Za-z%]*)$"
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
    return [name for name, _ in _header(line, separator)]


def _header(line: bytes, separator: str) -> list[tuple[str, str]]:
    """Names and units in a header line."""
    text = line.decode("utf-8", "replace").strip().lstrip("#")
    parts = text.split() if separator == " " else text.split(separator)
    found = (re.fullmatch(r"(.*?)(?:\s*\[([^\]]*)\])?", part.strip(), re.DOTALL) for part in parts)
    return [(cell[1], cell[2] or "") for cell in found if cell]


def load(stream: BinaryIO, sink: Sink, layout: Layout) -> None:
    """Read a table into ``gpu_readings``; a row of the ledger is a line, headers and blank lines excepted.

    Raises:
        InputError: it has no time, no node or no number of the GPU, or a column in an unknown unit.
    """
    lines = whole_lines(stream, b"", LARGE_PIECE)
    data, more = next(lines)
    first, _, data = data.partition(b"\n")
    table = _Table(sink, layout, _header(first, layout.separator), stream)
    at = 2
    while True:
        whole, torn = (data, b"") if more else torn_off(data, stream)
        at += table.take(whole, at)
        if torn:
            sink.seen()
            sink.reject(at, CUT_OFF, torn)
        if not more:
            break
        data, more = next(lines)
    table.finish()


class _Table:
    """A table that is being read."""

    def __init__(self, sink: Sink, layout: Layout, header: Sequence[tuple[str, str]], stream: BinaryIO) -> None:
        self._sink, self._layout, self._columns = sink, layout, [name for name, _ in header]
        here = set(self._columns)
        if any(name not in here for name in layout.time):
            raise InputError(f"has {NO_CLOCK}", hint=layout.hint or f"record it with {' '.join(layout.time)}")
        if not {layout.gpu, layout.uuid, layout.pci} & here:
            raise InputError(f"has no column {layout.gpu}, by which the GPUs of a node differ")
        self._whose = origin_of(stream, sink)
        if layout.machine not in here and self._whose == (None, None) and layout.uuid not in here:
            raise InputError(
                "nothing shows which node this is of", hint="name the file or its folder after the node, e.g. gpu01.csv"
            )
        self._factors: dict[str, float] = {}
        for name, unit in header:
            if name in layout.values:
                column, factor = layout.values[name]
                if unit not in _UNITS[column]:
                    known = ", ".join(text for text in _UNITS[column] if text)
                    raise InputError(f"column {name} is in [{unit}]: expected {known}")
                self._factors[name] = factor * _UNITS[column][unit]
        self._keys = [
            name for name in (layout.machine, layout.gpu, layout.uuid, layout.pci, layout.job) if name in here
        ]
        self._numbers: dict[tuple[str | None, ...], int | None] = {}
        self._stamps = LocalStamps(sink.timezone)
        self._recorder = Recorder(sink, node_clock=True)

    def take(self, data: bytes, first: int) -> int:
        """Read some whole lines; return how many."""
        import polars as pl

        if not data or data.isspace():
            return data.count(b"\n")
        table = data
        if b"\r" in table:
            table = table.replace(b"\r", b"")
        if self._layout.separator == " ":
            table = re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", table)
            table = re.sub(rb"[ \t]+", b",", table)
        rows = self._cells(table).with_row_index("line", first)
        lines = data.count(b"\n") if b'"' in data else rows.height - (not data.endswith(b"\n"))
        ts = self._times(rows)
        if ts.null_count():
            # blank lines, and headers of a run that was started again
            name = pl.col(self._columns[0]).cast(pl.String).str.strip_chars()
            rows = rows.with_columns(ts.alias("ts")).filter(
                name.is_not_null() & ~name.str.starts_with("#") & (name != self._columns[0])
            )
            ts = rows["ts"]
        self._write(rows, ts, data, first)
        return lines

    def finish(self) -> None:
        """Write what has not been written yet."""
        self._recorder.finish()

    def _cells(self, data: bytes) -> pl.DataFrame:
        """All lines as text, whatever they are; cells that a line lacks are null."""
        import polars as pl

        schema = {name: pl.Categorical if name in self._keys else pl.String for name in self._columns}
        quote = '"' if b'"' in data else None
        try:
            return pl.read_csv(data, has_header=False, schema=schema, quote_char=quote)
        except pl.exceptions.PolarsError:
            return pl.read_csv(
                data, has_header=False, schema=schema, truncate_ragged_lines=True, missing_columns="insert",
                encoding="utf8-lossy", quote_char=quote,
            )  # fmt: skip

    def _write(self, rows: pl.DataFrame, ts: pl.Series, data: bytes, first: int) -> None:
        import polars as pl

        self._sink.seen(rows.height)
        columns: list[pl.Series] = []
        faults = [(self._torn(rows, data, first), "cut off: cells are missing")]
        for name, factor in self._factors.items():
            column = self._layout.values[name][0]
            value, no_number = _numbers(rows[name], column)
            made = pl.select(cleaned(column, pl.lit(value) * factor).alias(column)).to_series()
            columns.append(made)
            faults.append((no_number, f"{name}: expected a number"))
            wrong = pl.select(fault(column, pl.lit(made))).to_series()
            faults.append((wrong, f"{name} cannot be right: is it in another unit?"))
        series = self._series(rows)
        faults += [
            (ts.is_null(), "no time that can be read"),
            (series.is_null(), f"{self._layout.gpu}: expected the number of a GPU"),
        ]
        made_rows = pl.DataFrame([ts.alias("ts"), series.alias("series"), *columns])
        faults = [(wrong, why) for wrong, why in faults if wrong.any()]
        if faults:
            whys = pl.select(pl.coalesce([pl.when(pl.lit(wrong)).then(pl.lit(why)) for wrong, why in faults]))
            bad = rows.select("line").with_columns(whys.to_series().alias("why")).filter(pl.col("why").is_not_null())
            raw = data.split(b"\n")
            for line, why in bad.iter_rows():
                self._sink.reject(line, why, raw[line - first])
            made_rows = made_rows.filter(whys.to_series().is_null())
        self._recorder.add(made_rows)
        self._sink.loaded(made_rows.height)

    def _torn(self, rows: pl.DataFrame, data: bytes, first: int) -> pl.Series:
        """Which rows lack cells; an empty last cell is none that is missing."""
        none = rows[self._columns[-1]].is_null()
        if none.any():
            lines, most = data.split(b"\n"), len(self._columns)
            blank = self._layout.separator == " "
            cells = (lines[line - first] for line in rows.filter(none)["line"])
            few = [(len(cell.split()) if blank else cell.count(b",") + 1) < most for cell in cells]
            none = none.scatter(none.arg_true(), few)
        return none

    def _times(self, rows: pl.DataFrame) -> pl.Series:
        import polars as pl

        layout = self._layout
        if not layout.form:
            stamps = rows[layout.time[0]].str.strip_chars().cast(pl.Float64, strict=False)
            return (stamps * 1e6).round().cast(pl.Int64)
        cells = rows.select(pl.concat_str([pl.col(name) for name in layout.time], separator=" ")).to_series()
        return self._stamps.utc(cells, layout.form)

    def _series(self, rows: pl.DataFrame) -> pl.Series:
        """The series of each row; null where nothing shows its GPU."""
        import polars as pl

        known = rows.select(self._keys).unique(maintain_order=True)
        numbers = [self._number(cells) for cells in known.iter_rows()]
        numbered = known.with_columns(series=pl.Series(numbers, dtype=pl.Int64))
        if known.height == 1:
            return pl.select(pl.repeat(numbers[0], rows.height, dtype=pl.Int64)).to_series()
        joined = rows.select(self._keys).join(
            numbered, on=self._keys, nulls_equal=True, how="left", maintain_order="left"
        )
        return joined["series"]

    def _number(self, cells: tuple[str | None, ...]) -> int | None:
        if cells not in self._numbers:
            self._numbers[cells] = self._new_number(
                {name: (cell or "").strip() for name, cell in zip(self._keys, cells, strict=True)}
            )
        return self._numbers[cells]

    def _new_number(self, found: dict[str, str]) -> int | None:
        layout = self._layout
        gpu = whole(found.get(layout.gpu))
        uuid = uuid_of(found.get(layout.uuid)) if found.get(layout.uuid) not in NO_VALUE else None
        pci = pci_of(found.get(layout.pci))
        if gpu is None and uuid is None:
            return None
        machine = found.get(layout.machine) or self._whose.machine
        if gpu is not None and (uuid or pci):
            self._recorder.device(Device(machine, gpu, uuid, pci))
        inside, slot = self._whose.job, None
        if inside is not None and uuid is None:
            # recorded within a job: its GPUs are numbered from 0
            slot, gpu = None if gpu is None else str(gpu), None
        job = found.get(layout.job)
        job = inside or (None if job in {None, "", "0"} else job)
        return self._recorder.number(Identity(layout.reader, machine, gpu, uuid, None, job, slot))


def _numbers(cells: pl.Series, column: str) -> tuple[pl.Series, pl.Series]:
    """The numbers of some cells, in the column's unit, and which of the cells are none although they are no blank."""
    import polars as pl

    value = cells.str.strip_chars(_USUAL).cast(pl.Float64, strict=False)
    if value.null_count() == cells.null_count():
        return value, pl.repeat(value=False, n=len(cells), eager=True)
    parts = cells.str.strip_chars().str.extract_groups(_CELL).struct.rename_fields(["number", "unit"]).struct.unnest()
    factors = parts["unit"].replace_strict(_UNITS[column], default=None, return_dtype=pl.Float64)
    value = parts["number"].cast(pl.Float64, strict=False) * factors
    return value, cells.is_not_null() & value.is_null() & ~cells.str.strip_chars().is_in(NO_VALUE)
