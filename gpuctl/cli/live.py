"""What ``gpuctl ingest --from`` asks a live scheduler or Prometheus for, before files that come of it are loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gpuctl.cli.common import message
from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from datetime import date, datetime
    from pathlib import Path

    from gpuctl.cli.progress import Bar
    from gpuctl.ingest.slurm.live import Slurm
    from gpuctl.ingest.telemetry.live import Prometheus

MOST_TIMEOUT_S = 86_400


class Scheduler(StrEnum):
    """What can be asked."""

    SACCT = "sacct"
    YARN = "yarn"
    PROMETHEUS = "prometheus"


_TAKEN = {
    Scheduler.SACCT: {"--since", "--until", "--clusters", "--sacct"},
    Scheduler.YARN: {"--url"},
    Scheduler.PROMETHEUS: {"--since", "--until", "--url", "--match"},
}


@dataclass(frozen=True)
class LiveOptions:
    """The options that say what to ask for.

    Attributes:
        source: whom.
        since: first day.
        until: last day.
        clusters: names of Slurm clusters, with commas between them; None is this machine's own.
        sacct: the program; None is the one on PATH.
        url: of YARN's ResourceManager, or of Prometheus.
        match: matchers of the labels of Prometheus's series.
        timeout_s: seconds that each answer may take; None: as `gpuctl.ingest` has it.
    """

    source: Scheduler
    since: datetime | None
    until: datetime | None
    clusters: str | None
    sacct: str | None
    url: str | None
    match: str | None = None
    timeout_s: float | None = None

    @property
    def days(self) -> tuple[date | None, date | None]:
        """First and last day."""
        return self.since and self.since.date(), self.until and self.until.date()


@dataclass(frozen=True)
class FetchedFiles:
    """Files that are to be loaded as one cluster."""

    files: list[Path]
    cluster: str | None


def fetch(query: LiveOptions, store: Path, cluster: str | None, bar: Bar, *, quiet: bool) -> list[FetchedFiles]:
    """Ask, and keep what was said beside the store, in ``STORE.SOURCE/CLUSTER``.

    Args:
        query: whom and what for.
        store: the trace store.
        cluster: what to call the cluster in the store, in place of its own name.
        bar: shows how far it has come.
        quiet: do not tell what could not be had.
    """
    _check(query)
    if query.source is Scheduler.YARN:
        return [_from_yarn(query, store, cluster, bar)]
    if query.source is Scheduler.PROMETHEUS:
        return [_from_prometheus(query, store, cluster, bar, quiet=quiet)]
    return [_from_sacct(slurm, query, store, cluster, bar, quiet=quiet) for slurm in _clusters(query, cluster)]


def plan(query: LiveOptions, store: Path, cluster: str | None = None) -> list[str]:
    """Return what `fetch` would do: the command lines for the job records, or the addresses."""
    _check(query)
    if query.source is Scheduler.YARN:
        from gpuctl.ingest.yarn.live import WHAT, address

        return [f"{address(str(query.url))}/ws/v1/cluster/{what}" for what in WHAT]
    if query.source is Scheduler.PROMETHEUS:
        from gpuctl.ingest.telemetry.live import plan as plan_samples

        server, folder, _ = _prometheus(query, store, cluster)
        return plan_samples(folder, server, *query.days)
    from gpuctl.ingest.slurm.live import cluster_name
    from gpuctl.ingest.slurm.live import plan as plan_days

    commands: list[str] = []
    for slurm in _clusters(query, None):
        commands += plan_days(_folder(store, Scheduler.SACCT, cluster_name(slurm)), slurm, *query.days)
    return commands


def _check(query: LiveOptions) -> None:
    check_timeout(query.timeout_s)
    options = {
        "--since": query.since, "--until": query.until, "--clusters": query.clusters, "--sacct": query.sacct,
        "--url": query.url, "--match": query.match,
    }  # fmt: skip
    given = [name for name, value in options.items() if value is not None and name not in _TAKEN[query.source]]
    if given:
        raise UsageError(f"{given[0]} does not go with --from {query.source}")
    if query.source is Scheduler.YARN and query.url is None:
        raise UsageError("--from yarn needs the ResourceManager's address", hint="--url http://rm:8088")
    if query.source is Scheduler.PROMETHEUS and query.url is None:
        raise UsageError("--from prometheus needs the server's address", hint="--url http://prometheus:9090")


def check_timeout(timeout_s: float | None) -> None:
    """Refuse a time in which nothing can be answered, or that never ends.

    Raises:
        UsageError: it is not above 0 seconds and at most `MOST_TIMEOUT_S`.
    """
    if timeout_s is not None and not 0 < timeout_s <= MOST_TIMEOUT_S:
        raise UsageError(
            f"--timeout {timeout_s:g}: expected seconds, above 0 and at most {MOST_TIMEOUT_S} (a day)",
            hint="--timeout 1800",
        )


def _from_sacct(
    slurm: Slurm, query: LiveOptions, store: Path, cluster: str | None, bar: Bar, *, quiet: bool
) -> FetchedFiles:
    from gpuctl.ingest.slurm.live import cluster_name
    from gpuctl.ingest.slurm.live import fetch as fetch_days

    name = cluster_name(slurm)
    folder = _folder(store, Scheduler.SACCT, name)
    try:
        found = fetch_days(folder, slurm, *query.days, progress=bar)
    except KeyboardInterrupt:
        message(f"answers so far are saved in {folder}: run this again to continue")
        raise
    for note in found.notes:
        message(f"{name}: {note}", quiet=quiet)
    return FetchedFiles(found.files, cluster or name)


def _from_yarn(query: LiveOptions, store: Path, cluster: str | None, bar: Bar) -> FetchedFiles:
    from urllib.parse import urlsplit

    from gpuctl.ingest.yarn.live import address
    from gpuctl.ingest.yarn.live import fetch as fetch_answers

    url = address(str(query.url))
    bar.start(url, 0)
    name = cluster or urlsplit(url).hostname or "yarn"
    folder = _folder(store, Scheduler.YARN, name)
    return FetchedFiles(fetch_answers(url, folder, timeout_s=query.timeout_s), name)


def _from_prometheus(query: LiveOptions, store: Path, cluster: str | None, bar: Bar, *, quiet: bool) -> FetchedFiles:
    from gpuctl.ingest.telemetry.live import fetch as fetch_samples

    server, folder, name = _prometheus(query, store, cluster)
    try:
        found = fetch_samples(folder, server, *query.days, progress=bar)
    except KeyboardInterrupt:
        message(f"answers so far are saved in {folder}: run this again to continue")
        raise
    for note in found.notes:
        message(note, quiet=quiet)
    return FetchedFiles(found.files, name)


def _prometheus(query: LiveOptions, store: Path, cluster: str | None) -> tuple[Prometheus, Path, str | None]:
    """The server, where its answers go, and the cluster that they are of: that of the store, if it has one alone."""
    from urllib.parse import urlsplit

    from gpuctl.ingest.telemetry.live import Prometheus, address, matchers

    server = Prometheus(address(str(query.url)), matchers(query.match or ""), query.timeout_s)
    name = cluster or _only_cluster(store)
    folder = _folder(store, Scheduler.PROMETHEUS, name or urlsplit(server.url).hostname or "prometheus")
    return server, folder, name or urlsplit(server.url).hostname


def _only_cluster(store: Path) -> str | None:
    """The cluster that samples of GPUs belong to; None where the store has none yet."""
    from gpuctl.store.database import Store

    if not store.exists():
        return None
    with Store(store) as opened:
        return opened.cluster(None) if opened.value("SELECT count(*) FROM clusters") else None


def _clusters(query: LiveOptions, cluster: str | None) -> list[Slurm]:
    from gpuctl.ingest.slurm.live import Slurm

    program = query.sacct or "sacct"
    if query.clusters is None:
        return [Slurm(program, timeout_s=query.timeout_s)]
    names = [name.strip() for name in query.clusters.split(",")]
    if not all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name) for name in names):
        raise UsageError(f"--clusters {query.clusters!r}: not a comma-separated list of cluster names")
    if cluster is not None and len(names) > 1:
        raise UsageError("--cluster names one cluster, --clusters asks for several", hint="omit --cluster")
    return [Slurm(program, name, query.timeout_s) for name in names]


def _folder(store: Path, source: Scheduler, cluster: str) -> Path:
    return store.with_suffix(f".{source}") / (re.sub(r"[^A-Za-z0-9._-]+", "-", cluster).strip("-.") or "cluster")
