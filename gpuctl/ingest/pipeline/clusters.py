"""Checks that sources belong to one cluster: logs of one scheduler, whose times overlap or are close.

Figures over sources of different clusters describe none of them: a cluster of 2017 and one of 2026 are not one cluster
that was idle for nine years.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.relative_time import is_relative

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpuctl.ingest.core.format import Format
    from gpuctl.ingest.core.sink import StoreSink
    from gpuctl.store.database import Store

A_DAY_S = 86400.0
GAP_S = 30 * A_DAY_S
"""A longer time without anything, longer also than all that the sources cover, is no pause of one cluster's logs."""
SIZE_RATIO = 100
"""Fewer than one job in so many is a handful with odd times, and no other cluster."""
NAMES = {
    "philly": "Philly", "slurm": "Slurm", "yarn": "YARN", "lsf": "LSF", "sge": "Grid Engine", "htcondor": "HTCondor",
    "pbs": "PBS", "torque": "PBS",
}  # fmt: skip
_ANYBODYS = frozenset({"gpu_samples", "host_util", "machines", "job_outputs", "job_logs", "progress"})
"""Telemetry, lists of nodes and what jobs print may come with the logs of any scheduler."""
_SHOWN = 3
_TIMES = {
    "jobs": ("submit_ts", "start_ts", "end_ts"),
    "yarn_facts": tuple(f"timezone('UTC', {c}_ts)" for c in ("submit", "launch", "allocated", "running", "end")),
    **dict.fromkeys(("gpu_samples", "host_util", "queue_samples", "machine_samples", "job_events"), ("ts",)),
}


class ApartError(InputError):
    """A source's times are far from those of the others: it is not loaded."""


class Span(NamedTuple):
    """The time span of a source's rows: seconds since 1970, its number of jobs, and its name."""

    low: float
    high: float
    jobs: int
    name: str


def scheduler_of(fmt: Format) -> str | None:
    """Return the scheduler whose logs a format reads, a key of `NAMES`; None if any may write it."""
    family = fmt.name.partition("-")[0]
    return family if family in NAMES and not _ANYBODYS.issuperset(fmt.fills) else None


def check_schedulers(
    found: Iterable[tuple[Format, str]], known: Sequence[tuple[str, str]], formats: Sequence[Format], cluster: str
) -> None:
    """Reject logs of several schedulers.

    Args:
        found: (format, path) of the files to load.
        known: (format's name, path) of the cluster's sources in the store.
        formats: all formats.
        cluster: its name.

    Raises:
        InputError: there are several; nothing may be loaded.
    """
    by_name = {fmt.name: fmt for fmt in formats}
    groups: dict[str, list[str]] = {}
    here = [(fmt, path) for fmt, path in found]
    stored = [(by_name[name], f"{path} (in the store)") for name, path in known if name in by_name]
    for fmt, path in (*stored, *here):
        scheduler = scheduler_of(fmt)
        if scheduler is not None:
            groups.setdefault(NAMES[scheduler], []).append(path)
    if len(groups) < 2:
        return
    lines = [f"  {name}: {_some(paths)}" for name, paths in sorted(groups.items())]
    raise InputError(
        "\n".join([f"logs of {len(groups)} schedulers are not one cluster, {cluster}:", *lines]),
        hint="load each by itself into one store, with a name of its own: gpuctl ingest PATH --db FILE --cluster NAME; "
        "then gpuctl analyze --db FILE --cluster NAME",
    )


@dataclass(frozen=True)
class Times:
    """The times of a cluster's sources, with which a new source's times are compared.

    Attributes:
        spans: by source.
        remarks: notes for the user.
    """

    spans: dict[int, Span]
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, store: Store, cluster: str, but: Sequence[int]) -> Times:
        """Return the times of the sources in the store, except for some."""
        found = _spans(store, cluster, None)
        return cls({source: span for source, span in found.items() if source not in but})

    def meet(self, store: Store, sink: StoreSink, replaced: Sequence[int]) -> Times:
        """Return these times and those of a source whose rows were just inserted.

        Args:
            store: within the transaction that inserted them.
            sink: the sink of that source.
            replaced: sources that it replaces, which no longer count.

        Raises:
            ApartError: they do not meet.
        """
        others = {number: span for number, span in self.spans.items() if number not in replaced}
        found = _spans(store, sink.cluster, sink.source)
        remarks = [remark for new in found.values() if (remark := _distances(new, list(others.values())))]
        return Times(others | found, (*self.remarks, *remarks))


def _distances(new: Span, others: list[Span]) -> str:
    gap = distance(new, others)
    if gap is None:
        return ""
    jobs = sum(span.jobs for span in others)
    if 0 < new.jobs * SIZE_RATIO <= jobs or 0 < jobs * SIZE_RATIO <= new.jobs:
        return (
            f"the {new.jobs} jobs of {new.name} are {gap / A_DAY_S:,.0f} days from those of the other files "
            f"({_days(*_whole(others))}); if they are of another cluster, load them with a --cluster of their own"
        )
    raise ApartError(
        f"its times, {_days(new.low, new.high)}, are {gap / A_DAY_S:,.0f} days from those of the rest of this "
        f"cluster, {_days(*_whole(others))} ({_some([span.name for span in others])}), so it was not loaded. "
        "If it is of another cluster, load it by itself with a --cluster of its own; if it is the same one, "
        "name that with --cluster"
    )


def distance(new: Span, others: Sequence[Span]) -> float | None:
    """Return the seconds between a source's times and those of others, if they are apart; None if they are close."""
    if not others:
        return None
    gap = min(max(other.low - new.high, new.low - other.high) for other in others)
    return gap if gap > GAP_S and gap > _covered([new, *others]) else None


def _covered(spans: Sequence[Span]) -> float:
    total, end = 0.0, -math.inf
    for span in sorted(spans):
        total += max(0.0, span.high - max(span.low, end))
        end = max(end, span.high)
    return total


def _whole(spans: Sequence[Span]) -> tuple[float, float]:
    return min(span.low for span in spans), max(span.high for span in spans)


def _days(low: float, high: float) -> str:
    if is_relative(low):
        return f"day {low / A_DAY_S:,.0f} to day {high / A_DAY_S:,.0f}"
    first, last = (datetime.fromtimestamp(second, UTC).date().isoformat() for second in (low, high))
    return f"{first} to {last}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _spans(store: Store, cluster: str, source: int | None) -> dict[int, Span]:
    """Return the time spans of sources that have times, ignoring outliers of one job in a hundred."""
    parts = [_part(table, columns, one=source is not None) for table, columns in _TIMES.items()]
    # every part of this text is a constant of gpuctl; the values are bound
    sql = (
        f"SELECT s.source, min(epoch(low)), max(epoch(high)), sum(jobs)::BIGINT, any_value(path) "  # noqa: S608
        f"FROM ({' UNION ALL '.join(parts)}) AS t JOIN sources AS s USING (source) "
        "WHERE isfinite(low) AND isfinite(high) GROUP BY s.source ORDER BY s.source"
    )
    values: Mapping[str, object] = {"cluster": cluster} | ({} if source is None else {"source": source})
    rows = store.execute(sql, dict(values)).fetchall()
    return {number: Span(low, high, jobs, _short(path)) for number, low, high, jobs, path in rows}


def _part(table: str, columns: tuple[str, ...], *, one: bool) -> str:
    low, high = f"least({', '.join(columns)})", f"greatest({', '.join(columns)})"
    ends = (
        f"quantile_disc({low}, 0.01) AS low, quantile_disc({high}, 0.99) AS high, count(*) AS jobs"
        if table == "jobs"
        else f"min({low}) AS low, max({high}) AS high, 0 AS jobs"
    )
    which = "cluster = $cluster AND source = $source" if one else "cluster = $cluster"
    return f"(SELECT source, {ends} FROM {table} WHERE {which} GROUP BY source)"  # noqa: S608


def _short(path: str) -> str:
    return path.rpartition("/")[2]
