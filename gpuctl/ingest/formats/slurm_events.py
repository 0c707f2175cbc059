"""``sacctmgr -P show event``: when nodes were down or drained, and why.

A row of the ledger is one line after the header; blank lines do not count. Times are local to where sacctmgr ran.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import Rows
from gpuctl.slurm.conf import hosts
from gpuctl.slurm.delimited import cells_of, header_line, sacctmgr_header
from gpuctl.slurm.timestamps import LocalClock

_NEEDED = ("nodename", "timestart", "timeend", "state")
_KINDS = {"machine": "text", "from_ts": "s", "to_ts": "s", "state": "text", "reason": "text"}

_Event = tuple[str, int, int | None, str, str | None]


def read_event(cells: dict[str, str], clock: LocalClock) -> list[_Event]:
    """Read one row: node, from, to (None: not over yet), state, reason; several if it names several nodes.

    A row without a node is about the cluster as a whole, its registration: it names none.

    Raises:
        RowError: a cell is not what it should be.
    """
    try:
        start, end = clock.read_or_none(cells["timestart"]), clock.read_or_none(cells["timeend"])
    except ValueError as bad:
        raise RowError(str(bad)) from None
    if not cells["nodename"]:
        return [] if start is None else [("", start, end, cells["state"], None)]
    if start is None:
        raise RowError("an event without a start")
    if end is not None and end < start:
        raise RowError("an event that ends before it starts")
    if not cells["state"] or not cells["state"].isprintable():
        raise RowError("no printable state")
    return [(name, start, end, cells["state"], cells.get("reason") or None) for name in hosts(cells["nodename"])]


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``machine_events``, ``state`` and ``reason`` in Slurm's own words, and when the cluster registered.

    Raises:
        InputError: the first line is not the header.
    """
    lines = numbered_lines(stream)
    hint = "write it with: sacctmgr -P show event start=2020-01-01 > events.txt"
    layout = header_line(lines, _fits, "`sacctmgr -P show event`", hint)
    clock, rows = LocalClock(sink.timezone), Rows(sink, "machine_events", _KINDS)
    settings = Rows(sink, "settings", {"name": "text", "value": "text"})
    for line in lines:
        if not line.data.strip():
            continue
        sink.seen()
        try:
            events = read_event(cells_of(line.text(), layout, "reason"), clock)
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        for event in events:
            if event[0]:
                rows.add(*event)
            else:
                settings.add("slurm.registered", str(event[1]))
        sink.loaded()
    rows.flush()
    settings.flush()


def _fits(columns: tuple[str, ...]) -> bool:
    return set(_NEEDED) <= set(columns)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header with NodeName, TimeStart, TimeEnd and State."""
    del name
    return "header of sacctmgr show event" if _fits(sacctmgr_header(head)) else None


FORMAT = Format(
    name="slurm-events",
    title="Slurm: when nodes were down or drained (sacctmgr -P show event)",
    fills=("machine_events", "settings"),
    file_names=("sacctmgr_event.txt", "events.txt"),
    order=40,
    parser_version=3,
    sniff=sniff,
    load=load,
)
