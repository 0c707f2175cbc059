"""``dcgmi dmon -e 203,252,155,1001,1002,1004 -d MS``: a row a GPU and round, without times.

The start and the interval are in the file's name: ``dcgmi-dmon.gpu01.20261031T020700Z.1s.txt``. A round ends where a
GPU occurs again; the times are reckoned, and as precise as the interval. Short names of fields: DCGM dcgm_fields.cpp.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import CUT_OFF
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.pieces import PIECE, torn_off, whole_lines
from gpuctl.ingest.telemetry.node_names import origin_of
from gpuctl.ingest.telemetry.recorder import BLANK, BLANK_ENERGY, MOST, Identity, Recorder

_STAMP = re.compile(r"(\d{8})T?(\d{6})Z\.(\d{1,5}(?:\.\d{1,3})?)s(?![0-9A-Za-z])", re.ASCII)
_FIELDS = {
    "GPUTL": ("util", 1.0), "FBUSD": ("mem_mb", 1.0), "POWER": ("power_w", 1.0), "TOTEC": ("energy_j", 1e-3),
    "SMACT": ("sm_pct", 100.0), "TENSO": ("tensor_pct", 100.0), "GRACT": ("engine", 100.0),
}  # fmt: skip
_ROW = re.compile(r"(GPU|GPU-I|GPU-CI) +(\d{1,4}) +(.*)", re.ASCII)
_NUMBER = re.compile(r"[-+]?\d{1,20}(?:\.\d{1,9})?", re.ASCII)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples of the GPUs of a node; a row of the ledger is a line, headers excepted.

    Raises:
        InputError: the name has no start and interval, or no node.
    """
    place = getattr(stream, "place", None)
    name = (place.path if place is not None else str(getattr(stream, "name", "") or "")).rpartition("/")[2]
    stamp = _STAMP.search(name)
    machine = origin_of(stream, sink).machine
    if stamp is None or machine is None:
        raise InputError(
            "rows have no time, and the file's name has no start, interval and node",
            hint="name it dcgmi-dmon.NODE.20261031T020700Z.1s.txt: when it was started, and -d in seconds",
        )
    start = datetime.strptime(stamp[1] + stamp[2], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    table = _Table(sink, machine, start, float(stamp[3]))
    at = 1
    for data, more in whole_lines(stream, b"", PIECE):
        lines, torn = (data, b"") if more else torn_off(data, stream)
        for number, line in enumerate(lines.splitlines(), at):
            table.take(number, line)
        table.flush()
        at += lines.count(b"\n")
        if torn:
            sink.seen()
            sink.reject(at, CUT_OFF, torn)
    table.finish()


class _Table:
    """A file that is being read."""

    def __init__(self, sink: Sink, machine: str, start: float, interval: float) -> None:
        self._sink, self._machine, self._start, self._interval = sink, machine, start, interval
        self._recorder = Recorder(sink, node_clock=False)
        self._columns: list[str] = []
        self._round = 0
        self._seen: set[int] = set()
        self._rows: list[dict[str, float | int | None]] = []

    def take(self, number: int, line: bytes) -> None:
        """Read one line."""
        text = line.decode("utf-8", "replace").strip()
        if text.startswith("#"):
            self._columns = text.lstrip("#").split()[1:]
            return
        if not text or text.split()[0] == "ID":
            return
        self._sink.seen()
        row = _ROW.match(text)
        cells = row[3].split() if row else []
        if row is None or len(cells) != len(self._columns):
            self._sink.reject(number, "not a row of dcgmi dmon: expected an entity and a cell for each column", line)
            return
        gpu = int(row[2])
        if row[1] == "GPU":
            if gpu in self._seen:
                self._round += 1
                self._seen.clear()
            self._seen.add(gpu)
        values, why = _values(dict(zip(self._columns, cells, strict=True)))
        if row[1] != "GPU":
            # DCGM numbers instances in its own way: nothing here maps them to those of NVML
            why = "a MIG instance, by a number of DCGM's own: query dcgm-exporter, whose GPU_I_ID is NVML's"
        if why:
            self._sink.reject(number, why, line)
            return
        kind = "kernel" if "GPUTL" in self._columns or "GRACT" not in self._columns else "engine"
        engine = values.pop("engine", None)
        if kind == "engine":
            values["util"] = engine
        series = self._recorder.number(Identity("dcgmi-dmon", self._machine, gpu, util_kind=kind))
        ts = round((self._start + self._round * self._interval) * 1e6)
        self._rows.append({"ts": ts, "series": series, **values})
        self._sink.loaded()

    def flush(self) -> None:
        """Hand rows on."""
        import polars as pl

        if self._rows:
            kinds = {"ts": pl.Int64, "series": pl.Int64} | dict.fromkeys(
                (name for row in self._rows for name in row if name not in {"ts", "series"}), pl.Float64
            )
            self._recorder.add(pl.DataFrame(self._rows, schema=kinds))
            self._rows = []

    def finish(self) -> None:
        """Write what has not been written yet."""
        self.flush()
        self._recorder.finish()


def _values(cells: dict[str, str]) -> tuple[dict[str, float | None], str | None]:
    """The values of a row by column, and why it is none; N/A and DCGM's blanks are None."""
    values: dict[str, float | None] = {}
    for name, (column, factor) in _FIELDS.items():
        text = cells.get(name)
        if text is None:
            continue
        if text == "N/A":
            values[column] = None
            continue
        if not _NUMBER.fullmatch(text):
            return {}, f"{name}: expected a number"
        number = float(text) * factor
        if number >= (BLANK_ENERGY if column == "energy_j" else BLANK):
            values[column] = None
        elif not 0 <= number <= MOST.get("util" if column == "engine" else column, float("inf")):
            return {}, f"{name} cannot be right: is it in another unit?"
        else:
            values[column] = number
    return values, None


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header of columns."""
    del name
    found = re.match(rb"\s*#\s?Entity\s+([A-Z0-9 ]+)", head)
    return "header #Entity of dcgmi dmon" if found and set(found[1].decode().split()) & set(_FIELDS) else None


FORMAT = Format(
    name="gpu-dcgmi-dmon",
    title="dcgmi dmon, with its start and interval in the file's name",
    fills=("gpu_series", "gpu_readings", "gpu_util"),
    file_names=("dcgmi-dmon.NODE.20261031T020700Z.1s.txt",),
    order=45,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
