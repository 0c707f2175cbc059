"""``gpuctl report``: results of any kind as one page, with checks that a CI goes by."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message, settings
from gpuctl.cli.reading import is_store, opened
from gpuctl.cli.writing import (
    FormatOption,
    JsonOption,
    OutputOption,
    TableOption,
    chosen_format,
    print_result,
    tell_written,
)
from gpuctl.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from gpuctl.cli.common import Settings
    from gpuctl.core.results import Analysis


def report(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RESULT...",
            help="Results that gpuctl wrote with --json, trace stores (each cluster is a result), or logs.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one self-contained HTML page of all results.")
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this cluster of a store; may be given several times. Else all."),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with 1 where it holds, as in 'queueing.p95_wait_h > 2' or "
            "'queueing.p95_wait_h{queue=a} > baseline * 1.1'; may be given several times.",
        ),
    ] = None,
    baseline: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Earlier results, written with --json, to compare with; may be given several times."
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a short summary for a pull request.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the checks as JUnit XML, one test case each.")
    ] = None,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="List the metrics that --fail-if knows, with their definitions.")
    ] = False,
    table: TableOption = None,
    output_format: FormatOption = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Put results on one page, say what stands out, and check what was measured."""
    given = settings(context)
    shape = chosen_format(output_format, as_json=as_json or given.json, output=output, tables=table)
    from gpuctl.reports.conditions import parse
    from gpuctl.reports.export import check_places
    from gpuctl.reports.report import failed, known_metrics, labelled, summarize

    command = "gpuctl " + shlex.join(sys.argv[1:])
    if metrics:
        print_result(known_metrics(command), shape, output, table, given)
        return
    if not paths:
        raise UsageError("nothing to report", hint="name results written with --json, a trace store, or logs")
    check_places({"--html": html, "--output": output, "--markdown": markdown, "--junit": junit}, {})
    conditions = [parse(text) for text in fail_if or ()]
    parts = labelled(_results(paths, cluster or [], command, given))
    before = labelled([_document(path) for path in baseline]) if baseline else None
    summary = summarize(parts, conditions, before, command)
    for warning in summary.warnings:
        message(f"Warning: {warning}", quiet=given.quiet)
    if html is not None:
        from gpuctl.reports.html import render_report, write_page

        write_page(render_report(parts, summary), html)
    if markdown is not None:
        from gpuctl.reports.ci import write_markdown

        write_markdown(summary, markdown)
    if junit is not None:
        from gpuctl.reports.ci import write_junit

        write_junit(summary, junit)
    from gpuctl.reports.pictures import of_results

    print_result(summary, shape, output, table, given, painter=partial(of_results, parts))
    tell_written((html, markdown, junit, output), given)
    for sentence in failed(summary):
        message(f"gpuctl: {sentence}")
    if failed(summary):
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _results(paths: list[Path], clusters: list[str], command: str, given: Settings) -> list[Analysis]:
    """One result a document, those of a store's clusters, and one of all logs together."""
    found: list[Analysis] = []
    logs = [path for path in paths if not is_store(path) and not _is_document(path)]
    for path in paths:
        if path in logs:
            continue
        found += _of_store(path, clusters, command, given) if is_store(path) else [_document(path)]
    if logs:
        with opened(logs, None, None, given, timezone=None, columns=None, doing="report") as (store, name, _):
            found += _of_store(store, [name] if name else [], command, given)
    return found


def _is_document(path: Path) -> bool:
    """Whether a file is to be read as a result: its name says JSON, and its first key is ours."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return b'"schema"' in file.read(200)
    except OSError:
        return False


def _document(path: Path) -> Analysis:
    from gpuctl.reports.document import read_document

    return read_document(path)


def _of_store(path: Path, clusters: list[str], command: str, given: Settings) -> list[Analysis]:
    from gpuctl.analyze.run import Options, analyze
    from gpuctl.cli.progress import Bar
    from gpuctl.trace.store import Store

    with Store(path) as store:
        there = [name for (name,) in store.execute("SELECT DISTINCT cluster FROM jobs ORDER BY cluster").fetchall()]
        strange = next((name for name in clusters if name not in there), None)
        if strange is not None:
            raise UsageError(f"{path} has no cluster {strange!r}", hint=f"it has: {', '.join(there) or 'none'}")
        found = []
        for name in clusters or there:
            with Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:
                found.append(analyze(store, Options(cluster=name, command=command), bar.at))
    if not found:
        raise UsageError(f"{path} has no jobs to report", hint="gpuctl ingest loads logs into it")
    return found
