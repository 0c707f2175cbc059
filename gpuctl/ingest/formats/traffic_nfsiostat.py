"""What ``nfsiostat INTERVAL`` prints: rates of each NFS mount, report after report.

The bytes of a report are its kB/s (1024 bytes, what READ sent included) times the interval. The output shows neither
the interval nor any time. The program counted whole operations in whole seconds, so every rate of operations times the
interval is a whole number, except for the three decimals that are printed: so the interval is found. Times are counted
from 1970, unless lines with the time were put between the reports. The first report is about the time since each mount
was made and is left out. A row of the ledger is the part ``read:`` of a report of one mount, or a line that is no part
of the output.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.traffic.samples import Feed, job_name, name_of, number
from gpuctl.ingest.traffic.series_names import settle_names
from gpuctl.ingest.traffic.timestamps import reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuctl.core.line_reader import Line


KILO = 1024.0
_MOUNT = re.compile(r"\S{1,4096} mounted on (\S{1,4096}):")
_HEADING = re.compile(r"\s*ops?/s\s+rpc bklog\s*|([a-z_]{1,32}):\s+ops/s\s+kB/s\s.*")
_NUMBERS = re.compile(r"\s*\d{1,15}(?:\.\d{1,6})?(?:\s.*)?", re.ASCII)
_RATE = re.compile(r"\d{1,15}\.\d{3}", re.ASCII)
_OTHERS = re.compile(r"\(.*|resulted in .*|(?:app bytes|Data cache hit).*|Caught \^C.*|No NFS mount points were found")
_SNIFF = re.compile(rb"^\S+ mounted on \S+:\r?$.{0,400}?^read:\s+ops/s\s+kB/s", re.MULTILINE | re.DOTALL)
_WANTED = 2
_log = logging.getLogger(__name__)


class _Report(NamedTuple):
    """The part ``read:`` of a report of one mount; its time if a line with one stood before it."""

    line: Line
    job: str
    number: int
    us: int | None
    kilobytes: float


class _Reports:
    """Gathers the reports of a file: the interval is known at its end only."""

    def __init__(self, sink: Sink, stem: str) -> None:
        self.found: list[_Report] = []
        self.rates: set[float] = set()
        self._sink = sink
        self._stem = stem
        self._mount: str | None = None
        self._us: int | None = None
        self._part: tuple[Line, str | None] | None = None
        self._values: list[str] = []
        self._reports: Counter[str] = Counter()

    def take(self, line: Line, text: str, us: int | None) -> None:
        """Take a line; `us` if it is a time.

        Raises:
            RowError: it is no part of the output.
        """
        mount, heading = _MOUNT.fullmatch(text.rstrip()), _HEADING.fullmatch(text)
        if us is not None and self._part is None:
            self._us = us
        elif mount is not None:
            self.end()
            self._mount = mount[1]
            self._reports[self._mount] += 1
        elif heading is not None:
            self.end()
            self._part = line, heading[1]
        elif _NUMBERS.fullmatch(text):
            self._take_numbers(text)
        elif not _OTHERS.fullmatch(text):
            raise RowError("neither a time nor a line of nfsiostat")

    def end(self) -> None:
        """End the part at hand; a part ``read:`` that is not whole is rejected."""
        if self._part is not None and self._part[1] == "read":
            line = self._part[0]
            self._sink.seen()
            self._sink.reject(line.line_no, "the numbers of this part are missing", line.data)
        self._part, self._values = None, []

    def _take_numbers(self, text: str) -> None:
        """Take numbers of the part at hand, which older releases print one a line."""
        if self._part is None:
            return
        self._values += text.split()
        if len(self._values) < _WANTED:
            return
        (line, name), (ops, kilobytes) = self._part, self._values[:_WANTED]
        self._part, self._values = None, []
        if self._mount is None:
            raise RowError("no line '... mounted on ...:' before these numbers")
        report = self._reports[self._mount] - 1
        if report and _RATE.fullmatch(ops):
            self.rates.add(float(ops))
        if name == "read":
            job = job_name(f"{self._stem}/{self._mount.lstrip('/')}")
            self.found.append(_Report(line, job, report, self._us, number(kilobytes, "kB/s")))


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read reports into ``traffic``, one series per mount.

    Raises:
        InputError: the interval cannot be determined.
    """
    stem = name_of(stream)
    reports, stamp = _Reports(sink, stem), reader(sink.timezone)
    for line in numbered_lines(stream):
        if not line.data.strip():
            continue
        try:
            text = line.text()
            reports.take(line, text, stamp(text))
        except RowError as bad:
            sink.seen()
            sink.reject(line.line_no, str(bad), line.data)
    reports.end()
    if reports.found:
        _write(reports, sink, stem, getattr(stream, "name", None))


def _write(reports: _Reports, sink: Sink, stem: str, path: str | None) -> None:
    seconds = _seconds(reports, path)
    feed = Feed(sink, cumulative=False)
    for found in reports.found:
        us = found.number * seconds * 1_000_000 if found.us is None else found.us
        size = found.kilobytes * KILO * seconds if found.number else 0.0
        feed.add(found.line.line_no, found.line.data, found.job, us, size)
    _log.warning(
        "%s: reports every %d s, as %s; the first, about the time since the mounts were made, is left out",
        stem,
        seconds,
        "their rates have it (their times are counted from 1970)" if reports.found[0].us is None else "their times are",
    )
    feed.finish(stem)
    settle_names(sink, stem, "mounts")


def _seconds(reports: _Reports, path: str | None) -> int:
    """The interval: from lines with times if there are any, else from the rates."""
    job = reports.found[0].job
    times = [found.us for found in reports.found if found.job == job and found.us is not None]
    steps = sorted(after - before for before, after in pairwise(times) if after > before)
    seconds = max(1, round(steps[len(steps) // 2] / 1e6)) if steps else interval_of(reports.rates)
    if seconds is None:
        raise InputError(
            f"the interval of nfsiostat is unclear: {len(reports.rates)} different rates of operations are too few",
            path=path,
            hint="record longer, put lines with the time between the reports, or sample /proc/self/mountstats instead",
        )
    return seconds


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the report of a mount."""
    del name
    return "report of nfsiostat" if _SNIFF.search(head) else None


FORMAT = Format(
    name="traffic-nfsiostat",
    title="Traffic of NFS mounts: what nfsiostat INTERVAL prints",
    fills=("traffic",),
    file_names=("nfsiostat.txt",),
    order=40,
    sniff=sniff,
    load=load,
)


LONGEST_S = 600
LEAST_RATES = 20
"""Different rates that are needed: a half of the true interval fits one in two of them by chance."""
_ROUNDING = 0.000501
"""Half of the last decimal printed, and what binary fractions add."""
_CHANCE = 1e-6


def interval_of(rates: Iterable[float]) -> int | None:
    """Return the interval in whole seconds; None if the rates do not show it.

    The shortest interval that fits all rates is taken, unless rates of any other interval would fit it as well, which
    long ones do: then the chance of it must be below one in a million.

    Args:
        rates: operations per second, with three decimals.
    """
    import numpy as np

    distinct = np.unique(np.asarray([rate for rate in rates if rate > 0], dtype=np.float64))
    if distinct.size < LEAST_RATES:
        return None
    for seconds in range(1, LONGEST_S + 1):
        counts = distinct * seconds
        off = np.abs(counts - np.round(counts))
        if bool((off <= _ROUNDING * seconds).all()):
            chance = (2 * _ROUNDING * seconds) ** float(distinct.size)
            return seconds if chance < _CHANCE else None
    return None
