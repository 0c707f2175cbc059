"""Fetches samples of GPUs from a live Prometheus day by day, and stores its answers as files for the ordinary ingest.

A file holds one metric of one day (UTC), an answer a line; that of a fault begins with the last sample before the day,
so that a change at midnight is seen. Samples are requested as they were scraped, by a range
selector (``DCGM_FI_DEV_GPU_UTIL[21599999ms]``): ``query_range`` would repeat a sample for up to five minutes after it,
so that a dead exporter seems to be alive. https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.error import HTTPError
from urllib.parse import quote

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import read_whole
from gpuctl.ingest.read.fetched_days import FetchedDays, end_of
from gpuctl.ingest.read.http import LateAnswerError, Site, has_user
from gpuctl.ingest.read.http import address as http_address
from gpuctl.ingest.telemetry.exporters import METRICS, metric_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from typing import BinaryIO

WINDOW_S = 21_600
"""Samples of so many seconds are requested at a time; half as many where the server gives up on them …"""
LEAST_WINDOW_S = 300
"""… and never fewer."""
TOKEN, USER, PASSWORD = "GPUCTL_PROMETHEUS_TOKEN", "GPUCTL_PROMETHEUS_USER", "GPUCTL_PROMETHEUS_PASSWORD"
"""Variables with credentials; each with ``_FILE`` at its end names a file that has it."""
_TOO_MUCH = frozenset({413, 422, 500, 502, 503, 504})
_MATCH = re.compile(r'\s*[A-Za-z_]\w*\s*(?:=|!=|=~|!~)\s*"(?:[^"\\\n]|\\.)*"\s*(?:,|$)', re.ASCII)


class Progress(Protocol):
    """Receives how far a fetch has come."""

    def start(self, what: str, total: int) -> None:
        """Begin with something of `total` bytes (0 if that is not known)."""

    def advance(self, size: int) -> None:
        """Note that `size` more bytes of it were read."""


@dataclass(frozen=True)
class Prometheus:
    """How to reach a server of Prometheus's query API.

    Attributes:
        url: its address, from `address`.
        match: matchers of labels that all series must have, e.g. ``cluster="atlas"``; empty: all series.
        timeout_s: seconds that each answer may take; None: as `Site` has it.
    """

    url: str
    match: str = ""
    timeout_s: float | None = None


class Fetched(NamedTuple):
    """What a fetch brought: the files of all days requested, and what the user should know."""

    files: list[Path]
    notes: list[str]


def fetch(
    folder: Path, server: Prometheus, since: date | None, until: date | None = None, *, progress: Progress | None = None
) -> Fetched:
    """Bring the samples of some days into a folder; days that are complete there are not fetched again.

    Args:
        folder: made if absent; belongs to one server and one `Prometheus.match`.
        server: whom to ask.
        since: first day (UTC); None goes on where the folder ends.
        until: last day (UTC); today if None or later.
        progress: receives what is being fetched.

    Raises:
        InputError: the server cannot be reached, or answers with an error; the days before are kept.
        UsageError: credentials that cannot be used; `since` is after `until`, or is None and the folder has nothing
            yet; the folder belongs to other matchers.
    """
    days = _days(folder)
    wanted = days.wanted(since, until, time.time())
    run = _Fetch(folder, server, progress)
    folder.mkdir(parents=True, exist_ok=True)
    _same_match(folder, server.match)
    for day in days.due(wanted):
        at = time.time()
        run.day(day, at)
        days.note(day, at)
    files = [file for day in wanted for file in sorted(folder.glob(f"*-{day.isoformat()}.json.zst"))]
    notes = (
        [] if files else [f"no metric of GPUs that gpuctl reads is in {server.url} from {wanted[0]} to {wanted[-1]}"]
    )
    return Fetched(files, notes)


def plan(folder: Path, server: Prometheus, since: date | None, until: date | None = None) -> list[str]:
    """Return the addresses that `fetch` would request first of each day; raises as `fetch` does."""
    days, now = _days(folder), time.time()
    due = days.due(days.wanted(since, until, now))
    return [f"{server.url}{_names_path(server, end_of(day) - 86400, min(end_of(day), now))}" for day in due]


def address(url: str) -> str:
    """The address of a Prometheus, without a slash at its end.

    Raises:
        UsageError: it is none of http or https, or has a user in it.
    """
    usable = http_address(url, "Prometheus server", "http://prometheus:9090")
    if has_user(usable):
        raise UsageError("--url with a user name or password in it", hint=f"set {USER} and {PASSWORD}_FILE instead")
    return usable


def matchers(text: str) -> str:
    """Check matchers of labels.

    Raises:
        UsageError: the text is none.
    """
    at = 0
    while at < len(text):
        found = _MATCH.match(text, at)
        if found is None:
            raise UsageError(f"--match {text!r}: not matchers of labels", hint="--match 'cluster=\"atlas\"'")
        at = found.end()
    return text.strip().rstrip(",")


def credentials(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The header that logs in, by the variables `TOKEN`, or `USER` and `PASSWORD`; none where they are not set.

    Raises:
        UsageError: both kinds are set, a password lacks its user, or a value cannot be in a header.
        InputError: a file with one cannot be read.
    """
    token, user, password = (_secret(name, environ) for name in (TOKEN, USER, PASSWORD))
    if token is not None and (user is not None or password is not None):
        raise UsageError(f"{TOKEN} and {USER} are both set", hint="unset one of them")
    if token is not None:
        return {"Authorization": f"Bearer {token}"}
    if (user is None) != (password is None):
        raise UsageError(f"{USER} and {PASSWORD} go together", hint=f"set {PASSWORD} or {PASSWORD}_FILE, too")
    if user is None:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")}


def _secret(name: str, environ: Mapping[str, str]) -> str | None:
    file = environ.get(f"{name}_FILE")
    text = environ.get(name)
    if file and text:
        raise UsageError(f"{name} and {name}_FILE are both set", hint="unset one of them")
    found = read_whole(Path(file)).decode("utf-8", "replace").strip() if file else text
    if not found:
        return None
    if not found.isprintable() or (name == TOKEN and not found.isascii()):
        raise UsageError(f"{name}: has characters that no {name.rpartition('_')[2].lower()} has")
    return found


def _days(folder: Path) -> FetchedDays:
    # a day without samples has no files
    return FetchedDays(folder, "prometheus", lambda _: True)


def _same_match(folder: Path, match: str) -> None:
    """Refuse to mix series of one choice with those of another."""
    record = folder / ".match"
    if not record.exists():
        record.write_text(match, "utf-8")
    elif (before := read_whole(record).decode("utf-8", "replace")) != match:
        raise UsageError(
            f"{folder} was fetched with --match {before!r}", hint="use the same again, or another --db or --cluster"
        )


def _names_path(server: Prometheus, start: float, end: float) -> str:
    among = f'{{__name__=~"(amd_)?({"|".join(METRICS)})"{"," if server.match else ""}{server.match}}}'
    return f"/api/v1/label/__name__/values?match[]={quote(among)}&start={start:.0f}&end={end:.0f}"


class _Fetch:
    """One fetch under way."""

    def __init__(self, folder: Path, server: Prometheus, progress: Progress | None) -> None:
        self._folder, self._server, self._progress = folder, server, progress
        self._site = Site(server.url, "Prometheus server", credentials(), server.timeout_s)
        self._window = float(WINDOW_S)

    def day(self, day: date, now: float) -> None:
        """Bring one day into the folder, a file a metric; each is there whole or as it was before."""
        end = min(end_of(day), now)
        for metric in self._metrics(end_of(day) - 86400, end):
            self._metric(metric, day, end)

    def _metrics(self, start: float, end: float) -> list[str]:
        """Those of the metrics that gpuctl reads of which the server has samples."""
        path = _names_path(self._server, start, end)
        try:
            data = b"".join(self._site.get(path))
        except HTTPError as error:
            raise _refused(error, self._server.url + path) from None
        try:
            names = json.loads(data)["data"]
            # servers before 2.24 ignore match[] here and name all that they have
            return sorted(name for name in names if isinstance(name, str) and metric_of(name))
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(
                "the answer is not a list of names", path=self._server.url + path, hint="is it a Prometheus server?"
            ) from None

    def _metric(self, metric: str, day: date, end: float) -> None:
        if self._progress:
            self._progress.start(f"{metric} {day}", 0)
        path = self._folder / f"{metric}-{day.isoformat()}.json.zst"
        part = path.with_name(path.name + ".part")
        at = end_of(day) - 86400
        try:
            with part.open("wb") as file:
                if _is_fault(metric):
                    self._append(self._query(metric, at, ""), file)
                while at < end:
                    until = min(at + self._window, end)
                    if self._window_of(metric, at, until, file):
                        at = until
                    else:
                        self._window /= 2
                size = file.tell()
            if size:
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def _query(self, metric: str, end: float, selected: str) -> str:
        """The address of a query of a metric as of the last millisecond before an instant."""
        at = round(end * 1000) - 1
        query = f"{metric}{{{self._server.match}}}{selected}"
        return f"/api/v1/query?query={quote(query)}&time={at // 1000}.{at % 1000:03d}"

    def _window_of(self, metric: str, start: float, end: float, file: BinaryIO) -> bool:
        """Append the samples of start <= t < end, if there are any; false where they are to be requested in halves."""
        # without the last millisecond: where both ends belong to a range, its first sample is not of the range before
        return self._append(self._query(metric, end, f"[{round((end - start) * 1000) - 1}ms]"), file)

    def _append(self, path: str, file: BinaryIO) -> bool:
        """Append an answer, if it has samples; false where they are to be requested in halves."""
        import zstandard

        before = file.tell()
        head = tail = b""
        some = False
        try:
            with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as packed:
                for piece in self._site.get(path):
                    head = (head + piece)[:200]
                    some = some or b'"metric"' in tail + piece
                    tail = (tail + piece)[-20:]
                    packed.write(piece)
                    if self._progress:
                        self._progress.advance(len(piece))
                packed.write(b"\n")
            _check(head, tail, self._server.url + path)
        except HTTPError as error:
            file.seek(before)
            file.truncate()
            return self._halve(error, path)
        except LateAnswerError:
            if self._window <= LEAST_WINDOW_S:
                raise
            file.seek(before)
            file.truncate()
            return False
        if not some:
            file.seek(before)
            file.truncate()
        return True

    def _halve(self, error: HTTPError, path: str) -> bool:
        """False where a smaller request may succeed.

        Raises:
            InputError: none would.
        """
        if error.code in _TOO_MUCH and self._window > LEAST_WINDOW_S:
            error.close()
            return False
        raise _refused(error, self._server.url + path)


def _is_fault(metric: str) -> bool:
    """Whether faults show as changes between samples: a day's first sample needs the last one of the day before."""
    found = metric_of(metric)
    return found is not None and found.column in {"xid", "fault"}


def _check(head: bytes, tail: bytes, url: str) -> None:
    if not re.match(rb'\s*\{\s*"status"\s*:\s*"success"', head) or not tail.rstrip().endswith(b"}"):
        raise InputError("not an answer of Prometheus's query API", path=url, hint="is it a Prometheus server?")


def _refused(error: HTTPError, url: str) -> InputError:
    """What the server states is wrong: ``{"status":"error","errorType":…,"error":…}``."""
    try:
        stated = json.loads(error.read(65_536))["error"]
    except (ValueError, KeyError, TypeError, OSError, RecursionError):
        stated = None
    finally:
        error.close()
    text = f": {stated[:300]}" if isinstance(stated, str) and stated.isprintable() else ""
    hints = {
        401: f"set {TOKEN}_FILE, or {USER} and {PASSWORD}_FILE, to what the server expects",
        403: f"the credentials in {TOKEN} or {USER} may not query: ask the administrator of the server",
        404: "is there a path before /api/v1, e.g. --url https://thanos.example.org/prometheus?",
    }
    moved = "it points elsewhere: give that address" if 300 <= error.code < 400 else "see the server's log"
    return InputError(f"HTTP status {error.code}{text}", path=url, hint=hints.get(error.code, moved))
