"""Samples of ``/proc/net/dev``: a line with the time, then the table, again and again.

``while sleep 1; do date +%s.%N; cat /proc/net/dev; done > JOB.txt`` writes such a file. The bytes that each interface
received are a series, named after the file and the interface; after the file alone if only one interface received
anything. The loopback is not read. A row of the ledger is the line of an interface, or a line that is no part of a
sample.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.traffic.procfs import LOOPBACK, interface_of, is_heading
from gpuctl.ingest.traffic.samples import Feed, job_name, name_of
from gpuctl.ingest.traffic.series_names import settle_names
from gpuctl.ingest.traffic.timestamps import reader

NO_TIME = "no time before this sample; expected a line with one, as date +%s.%N prints it"
_HEAD = re.compile(rb"^Inter-\|\s+Receive\s+\|\s+Transmit\s*\r?$", re.MULTILINE)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples into ``traffic``, one series per interface."""
    stem = name_of(stream)
    feed, stamp = Feed(sink, cumulative=True), reader(sink.timezone)
    at: int | None = None
    for line in numbered_lines(stream):
        if not line.data.strip():
            continue
        try:
            text = line.text()
            if is_heading(text):
                continue
            time = stamp(text)
            if time is not None:
                at = time
                continue
            found = interface_of(text)
            if found is None:
                raise RowError("neither a time nor a line of /proc/net/dev")
            if found[0] == LOOPBACK:
                continue
            if at is None:
                raise RowError(NO_TIME)
            feed.add(line.line_no, line.data, job_name(f"{stem}/{found[0]}"), at, float(found[1]))
        except RowError as bad:
            sink.seen()
            sink.reject(line.line_no, str(bad), line.data)
    feed.finish(stem)
    settle_names(sink, stem, "interfaces")


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the heading of the table."""
    del name
    return "heading of /proc/net/dev" if _HEAD.search(head) else None


FORMAT = Format(
    name="traffic-netdev",
    title="Traffic of a machine: /proc/net/dev sampled over time",
    fills=("traffic",),
    file_names=("netdev.txt",),
    order=40,
    sniff=sniff,
    load=load,
)
