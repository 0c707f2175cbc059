"""``cluster_machine_list`` of the Philly trace: nodes with the GPUs they are labelled with.

The labels are known to be wrong for many nodes of the public trace; what jobs really used is
``machines.gpus_observed``, which the job log fills. A row of the ledger is one line after the header; blank lines
are no rows.
"""

from __future__ import annotations

import re
from typing import BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink

HEADER = ("machineId", "number of GPUs", "single GPU mem")
_MEGABYTES = {"MB": 1, "GB": 1024, "TB": 1024**2}
_MEMORY = re.compile(r"(\d{1,7})\s*([MGT]B)", re.ASCII)
_COUNT = re.compile(r"\d{1,4}", re.ASCII)
_MOST_GPUS = 1024


class Machine(NamedTuple):
    """One line of the list: name, GPUs as labelled, memory of one GPU in MiB."""

    machine: str
    gpus: int
    gpu_mem_mb: int


def read_machine(text: str) -> Machine:
    """Read one data line, e.g. ``m51,2, 12GB`` (1 GB is taken as 1 024 MiB).

    Raises:
        RowError: it is not node, count, memory.
    """
    cells = [cell.strip() for cell in text.split(",")]
    if len(cells) != len(HEADER):
        raise RowError("not 3 columns: node, number of GPUs, memory of one GPU")
    name, gpus, memory = cells
    if not name or not name.isprintable():
        raise RowError("no printable node name")
    if not _COUNT.fullmatch(gpus) or int(gpus) > _MOST_GPUS:
        raise RowError(f"number of GPUs is not a whole number up to {_MOST_GPUS}")
    size = _MEMORY.fullmatch(memory)
    if size is None:
        raise RowError("memory of one GPU is not a number with MB, GB or TB")
    return Machine(name, int(gpus), int(size[1]) * _MEGABYTES[size[2]])


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read a node list into ``machines``: ``gpus_labelled`` and ``gpu_mem_mb``.

    A node that jobs have made known is given its label; one that has a label already is a duplicate, and rejected
    if it states something else.

    Raises:
        InputError: the first line is not the header of a node list.
    """
    lines = numbered_lines(stream)
    first = next(lines, None)
    if first is None or _columns(first.data[:1000]) != _columns(",".join(HEADER).encode()):
        raise InputError(
            f"line 1 is not the header of a node list; expected {', '.join(HEADER)}",
            hint="add that line, or name the right format",
        )
    sql = "SELECT machine, gpus_labelled, gpu_mem_mb FROM machines WHERE cluster = $cluster"
    known: dict[str, tuple[int | None, int | None]] = {
        name: (gpus, memory) for name, gpus, memory in sink.query(sql, {"cluster": sink.cluster}).iter_rows()
    }
    fresh: list[Machine] = []
    label: list[Machine] = []
    for line in lines:
        if not line.data.strip():
            continue
        sink.seen()
        try:
            machine = read_machine(line.text())
            if known.get(machine.machine, (None, None)) == (machine.gpus, machine.gpu_mem_mb):
                sink.already_stored()
                continue
            if known.get(machine.machine, (None, None))[0] is not None:
                raise RowError("duplicate node: it is in the list already, with other values")
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        (label if machine.machine in known else fresh).append(machine)
        known[machine.machine] = machine.gpus, machine.gpu_mem_mb
    _write(sink, fresh, label)
    sink.loaded(len(fresh) + len(label))


def _write(sink: Sink, fresh: list[Machine], label: list[Machine]) -> None:
    import polars as pl

    if label:
        sink.execute(
            """
            UPDATE machines SET gpus_labelled = listed.gpus, gpu_mem_mb = listed.memory
            FROM (SELECT unnest($machines::VARCHAR[]) AS machine, unnest($gpus::INTEGER[]) AS gpus,
                         unnest($memory::BIGINT[]) AS memory) AS listed
            WHERE machines.cluster = $cluster AND machines.machine = listed.machine
            """,
            {
                "cluster": sink.cluster,
                "machines": [m.machine for m in label],
                "gpus": [m.gpus for m in label],
                "memory": [m.gpu_mem_mb for m in label],
            },
        )
    if fresh:
        columns = {
            "machine": [m.machine for m in fresh],
            "gpus_labelled": pl.Series([m.gpus for m in fresh], dtype=pl.Int32),
            "gpu_mem_mb": pl.Series([m.gpu_mem_mb for m in fresh], dtype=pl.Int64),
        }
        sink.insert("machines", pl.DataFrame(columns).with_columns(cluster=pl.lit(sink.cluster)))


def _columns(line: bytes) -> list[bytes]:
    return [cell.strip().lower() for cell in line.split(b",")]


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header, with or without blanks after its commas."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    if _columns(first[:1000]) == _columns(",".join(HEADER).encode()):
        return f"header {', '.join(HEADER)}"
    return None


FORMAT = Format(
    name="philly-machines",
    title="Philly trace: nodes and their GPUs (cluster_machine_list)",
    fills=("machines",),
    file_names=("cluster_machine_list",),
    order=10,
    timezone="America/Los_Angeles",
    clock="wall",
    sniff=sniff,
    load=load,
)
