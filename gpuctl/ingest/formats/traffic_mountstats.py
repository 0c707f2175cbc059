"""Samples of ``/proc/PID/mountstats``: a line with the time, then the statistics of the mounts, again and again.

``while sleep 1; do date +%s.%N; cat /proc/self/mountstats; done > JOB.txt`` writes such a file. The bytes that each NFS
mount read from its server are a series, named after the file and the mount; after the file alone if only one mount
read anything. What the page cache answered is not in them. A mount without the line ``bytes:`` is read from its line
``READ:``, headers of replies included. A row of the ledger is a sample of an NFS mount, or a line that is no part of
one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.traffic.procfs import mount_of, read_replies_of, server_read_of
from gpuctl.ingest.traffic.samples import Feed, job_name, name_of
from gpuctl.ingest.traffic.series_names import settle_names
from gpuctl.ingest.traffic.timestamps import reader

if TYPE_CHECKING:
    from gpuctl.core.line_reader import Line

NO_TIME = "no time before this sample; expected a line with one, as date +%s.%N prints it"
_DEVICE = re.compile(rb"^device \S+ mounted on \S+ with fstype nfs4? statvers=", re.MULTILINE)
_PART = re.compile(r"\s*[A-Za-z_0-9]{1,64}:.*|\s+per-op statistics.*|\s.*")
"""Lines within the statistics of a mount: a name and a colon, or set in."""


class _Mounts:
    """Gathers the lines of the sample at hand into one value per mount."""

    def __init__(self, sink: Sink, stem: str) -> None:
        self.feed = Feed(sink, cumulative=True)
        self._sink = sink
        self._stem = stem
        self._at: int | None = None
        self._mount: str | None = None
        self._line: Line | None = None
        self._value: int | None = None
        self._replies: int | None = None
        self._from_replies: dict[str, bool] = {}

    def time(self, at: int) -> None:
        """Begin a sample."""
        self.end()
        self._at = at

    def begin(self, mount: str, line: Line, *, nfs: bool) -> None:
        """Begin a mount."""
        self.end()
        if nfs:
            self._mount, self._line = mount, line

    def part(self, text: str) -> None:
        """Take a line of the mount at hand."""
        value, replies = server_read_of(text), read_replies_of(text)
        self._value = value if value is not None else self._value
        self._replies = replies if replies is not None else self._replies

    def end(self) -> None:
        """Put the mount at hand into the feed, or reject it."""
        line = self._line
        if line is not None:
            try:
                if self._at is None:
                    raise RowError(NO_TIME)
                job = job_name(f"{self._stem}/{(self._mount or '').lstrip('/')}")
                self.feed.add(line.line_no, line.data, job, self._at, float(self._counter(job)))
            except RowError as bad:
                self._sink.seen()
                self._sink.reject(line.line_no, str(bad), line.data)
        self._mount = self._line = self._value = self._replies = None

    def _counter(self, job: str) -> int:
        """The value of the mount at hand: of the same line in all of its samples, for they count differently."""
        if self._value is None and self._replies is None:
            raise RowError("neither a line bytes: nor a line READ: that can be read in this mount's statistics")
        from_replies = self._from_replies.setdefault(job, self._value is None)
        value = self._replies if from_replies else self._value
        if value is None:
            wanted = "READ" if from_replies else "bytes"
            raise RowError(f"no line {wanted}: that can be read, which this mount's first sample had")
        return value


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read samples into ``traffic``, one series an NFS mount."""
    stem = name_of(stream)
    mounts, stamp = _Mounts(sink, stem), reader(sink.timezone)
    within = False
    for line in numbered_lines(stream):
        if not line.data.strip():
            continue
        try:
            text = line.text()
            time, mount = stamp(text), mount_of(text)
            if time is not None:
                mounts.time(time)
            elif mount is not None:
                mounts.begin(mount[0], line, nfs=mount[1])
                within = True
            elif within and _PART.fullmatch(text):
                mounts.part(text)
            else:
                raise RowError("neither a time nor a line of mountstats")
        except RowError as bad:
            sink.seen()
            sink.reject(line.line_no, str(bad), line.data)
    mounts.end()
    mounts.feed.finish(stem)
    settle_names(sink, stem, "mounts")


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the line that begins the statistics of an NFS mount."""
    del name
    return "statistics of an NFS mount" if _DEVICE.search(head) else None


FORMAT = Format(
    name="traffic-mountstats",
    title="Traffic of NFS mounts: /proc/PID/mountstats sampled over time",
    fills=("traffic",),
    file_names=("mountstats.txt",),
    order=40,
    sniff=sniff,
    load=load,
)
