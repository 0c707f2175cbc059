"""The results that ``gpuctl report`` works on: documents, what trace stores keep, their clusters, and logs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import read_head
from gpuctl.core.job_filter import EVERY_JOB, JobFilter
from gpuctl.services.inputs import is_store, opened
from gpuctl.services.options import LogReading
from gpuctl.store.inventory import clusters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpuctl.core.results import Analysis
    from gpuctl.services.frontend import Frontend


@dataclass(frozen=True)
class Selection:
    """What of the stores that are named is reported.

    Attributes:
        clusters: names; their analyses.
        only: names of kept results.
        command: the command line, for the record of analyses that are made now.
        filter: which jobs these analyses are of.
        tables: those that are made; none: all.
    """

    clusters: tuple[str, ...]
    only: tuple[str, ...]
    command: str
    filter: JobFilter = EVERY_JOB
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class NamedResult:
    """One result.

    Attributes:
        name: what it was kept as; None: it goes by its cluster's name.
        analysis: the result.
        read: it was read as it is, and not made now.
    """

    name: str | None
    analysis: Analysis
    read: bool = True


def gather(paths: Sequence[Path], wanted: Selection, frontend: Frontend) -> list[NamedResult]:
    """One result a document, those that stores have, and one of all logs together, in the order of the paths.

    Of a store all kept results and every cluster's analysis are taken, or those that are wanted by name.

    Raises:
        UsageError: a store has not what is wanted of it, or has nothing.
        InputError: a result or log cannot be read.
    """
    stores = [path for path in paths if is_store(path)]
    documents = [path for path in paths if path not in stores and _is_document(path)]
    logs = [path for path in paths if path not in stores and path not in documents]
    if (wanted.only or wanted.clusters) and not stores:
        option = "--only" if wanted.only else "--cluster"
        raise UsageError(f"{option} chooses from a trace store, and none is named", hint=f"leave {option} out")
    ready = "--only" if wanted.only else str(documents[0]) if documents else None
    if wanted.filter and ready is not None:
        raise UsageError(
            f"a filter chooses among jobs, and {ready} names a result that is ready",
            hint="give the filter to the command that makes the result",
        )
    found: list[NamedResult] = []
    for path in paths:
        if path in stores:
            found += _of_store(path, wanted, frontend)
        elif path in documents:
            found.append(NamedResult(None, read_result(path)))
    if logs:
        with opened(logs, None, LogReading(), frontend, doing="report") as store:
            names = (store.cluster,) if store.cluster else ()
            found += _of_store(store.path, replace(wanted, clusters=names, only=()), frontend)
    return found


def changes(paths: Sequence[Path], periods: tuple[str, str], wanted: Selection, frontend: Frontend) -> Analysis:
    """What changed between two periods of one cluster of a store, or of logs.

    Raises:
        UsageError: there is not one cluster, or a period makes no sense.
        InputError: a log cannot be read.
    """
    from gpuctl.analyze.options import Options
    from gpuctl.services.period_changes import compare_periods
    from gpuctl.store.database import Store

    if len(wanted.clusters) > 1:
        raise UsageError("--compare is about one cluster", hint="name one --cluster")
    logs = LogReading(cluster=wanted.clusters[0] if wanted.clusters else None)
    with opened(list(paths), None, logs, frontend, doing="compare") as found, Store(found.path) as store:
        options = Options(cluster=found.cluster, command=wanted.command)
        with frontend.progress() as bar:
            return compare_periods(store, periods, options, wanted.filter, lambda text: bar.at(text, 0, 0))


@contextmanager
def strangers(*, read: bool) -> Iterator[None]:
    """Say of results that were read, not made now, that it is they that cannot be shown.

    Args:
        read: whether there are any.

    Raises:
        InputError: what is in them is not what gpuctl writes.
    """
    import polars as pl

    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        if not read:
            raise
        raise InputError(
            f"a result that was read cannot be reported: {type(error).__name__}: {str(error)[:200]}",
            hint="expected results as gpuctl wrote them; gpuctl --debug report ... shows which table it is",
        ) from error


def read_result(path: Path) -> Analysis:
    """A result from a file.

    Raises:
        InputError: it is none.
        UsageError: it is a report, which is no result.
    """
    from gpuctl.reports.export.document import read_document
    from gpuctl.reports.report import is_summary

    found = read_document(path)
    if is_summary(found):
        raise UsageError(f"{path} is a report that gpuctl wrote, not a result", hint="name it with --baseline")
    return found


def _is_document(path: Path) -> bool:
    """Whether a file is to be read as a result: its name says JSON, and its first key is ours."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    try:
        return b'"schema"' in read_head(path, 200)
    except OSError:
        return False


def _of_store(path: Path, wanted: Selection, frontend: Frontend) -> list[NamedResult]:
    from gpuctl.analyze.options import Options
    from gpuctl.analyze.run import analyze
    from gpuctl.reports.export.document import parse_document
    from gpuctl.store import saved_results
    from gpuctl.store.database import Store

    chosen = bool(wanted.clusters or wanted.only)
    with Store(path) as store:
        there = clusters(store)
        strange = next((name for name in wanted.clusters if name not in there), None)
        if strange is not None:
            raise UsageError(f"{path} has no cluster {strange!r}", hint=f"it has: {', '.join(there) or 'none'}")
        every = () if chosen or wanted.filter else tuple(one.name for one in saved_results.listed(store))
        names = wanted.only or every
        documents = [(name, saved_results.read(store, name)) for name in dict.fromkeys(names)]
        found = []
        for name in dict.fromkeys(wanted.clusters if chosen else there):
            with frontend.progress() as bar:
                options = Options(cluster=name, command=wanted.command, filter=wanted.filter, tables=wanted.tables)
                made = analyze(store, options, bar.at)
            found.append(NamedResult(None, made, read=False))
    found += [NamedResult(name, parse_document(text, f"{path}: result {name!r}")) for name, text in documents]
    if not found:
        raise UsageError(
            f"{path} has no jobs to report and keeps no result",
            hint="gpuctl ingest loads logs into it; --keep NAME keeps the result of a command",
        )
    return found
