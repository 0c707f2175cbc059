"""What the tests of job output share: one compiled scanner, formats with patterns, and the rows of a store."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gpuctl.ingest.formats import job_output, yarn_aggregated_logs, yarn_container_logs
from gpuctl.ingest.joboutput.patterns import Pattern
from gpuctl.ingest.joboutput.reader import Reader
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.ingest.core.format import Format
    from gpuctl.ingest.pipeline.report import IngestReport

OOM = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB"
FAILED = f'Traceback (most recent call last):\n  File "train.py", line 3, in step\n{OOM}\n'.encode()


@cache
def whole() -> Reader:
    """A reader whose signatures are compiled once for all tests."""
    reader = Reader()
    _ = reader.scanner
    return reader


def formats(*patterns: str) -> tuple[Format, ...]:
    """Every format, that of job output with these patterns."""
    reader = Reader(tuple(Pattern(text) for text in patterns))
    reader.__dict__.update(table=whole().table, scanner=whole().scanner)
    modules = (job_output, yarn_container_logs, yarn_aggregated_logs)
    own = {module.FORMAT.name: module.with_reader(reader) for module in modules}
    return tuple(own.get(fmt.name, fmt) for fmt in all_formats())


def load(logs: Path, db: Path, *patterns: str, cluster: str = "c") -> IngestReport:
    """Ingest a directory."""
    return ingest([logs], db, cluster=cluster, formats=formats(*patterns))


def rows(db: Path, sql: str) -> list[tuple[object, ...]]:
    """What a query gives."""
    with Store(db) as store:
        return store.execute(sql).fetchall()


def outputs(db: Path) -> list[tuple[object, ...]]:
    """(job, attempt, stream, path, lines) of every log."""
    return rows(db, "SELECT job, attempt, stream, path, lines FROM job_outputs ORDER BY ALL")


def stored_lines(db: Path) -> list[tuple[object, ...]]:
    """(job, line, text) of the lines in which something was found."""
    return rows(db, "SELECT DISTINCT job, line_no, text FROM job_logs WHERE signature IS NOT NULL ORDER BY ALL")


def statuses(report: IngestReport) -> dict[str, str]:
    """What was done with each file, by its name."""
    return {source.path.rsplit("/", 1)[-1]: source.status for source in report.sources}
