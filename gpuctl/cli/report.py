"""``gpuctl report``: results of any kind as one page, with checks that a CI goes by."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message
from gpuctl.cli.options import FiguresOption, TableOptions, grouped
from gpuctl.cli.output import announce_written, command_line, for_people, print_result, write_files
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.services.options import Filters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.cli.options import OutputFormat
    from gpuctl.cli.settings import Settings
    from gpuctl.core.notes import Note
    from gpuctl.core.results import Analysis
    from gpuctl.reports.conditions import Condition
    from gpuctl.reports.privacy.anonymise import Pseudonyms
    from gpuctl.reports.report import Part
    from gpuctl.services.report_inputs import NamedResult, Selection


@grouped
def report(
    context: typer.Context,
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RESULT...",
            help="Results written with --json; trace stores (each cluster and each saved result counts); or logs.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one self-contained HTML page of all results.")
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this cluster of a store; repeatable. Default: all."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only the result saved in a store under this name (--keep), and the clusters of --cluster; "
            "repeatable. Default: all.",
        ),
    ] = None,
    filters: Filters,
    list_kept: Annotated[
        bool, typer.Option("--list", help="Only list the clusters and saved results of the stores.")
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with code 1 if the condition is true, e.g. 'queueing.p95_wait_h > 2' or "
            "'queueing.p95_wait_h{queue=a} > baseline * 1.1'; repeatable.",
        ),
    ] = None,
    baseline: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Earlier results (--json) to compare with; repeatable."),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="PERIOD PERIOD",
            help="Compare two periods of one cluster: 2026-10, 2026Q3, 2026-W40, 2026 or FROM..TO (days, the last one "
            "included), in the zone of the log.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a short summary for a pull request.")
    ] = None,
    figures: FiguresOption = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the checks as JUnit XML, one test case each.")
    ] = None,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="List the metrics for --fail-if, with their definitions.")
    ] = False,
    anonymise: Annotated[
        bool,
        typer.Option(
            "--anonymise",
            help="Replace names of users, accounts, jobs, nodes, clusters and paths with pseudonyms, new in every "
            "report.",
        ),
    ] = False,
    anonymise_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Like --anonymise, with the secret in this file, so that pseudonyms stay the same."
        ),
    ] = None,
    anonymise_queues: Annotated[
        bool,
        typer.Option("--anonymise-queues", help="Also replace names of queues; needs --anonymise or --anonymise-key."),
    ] = False,
    shown: TableOptions,
) -> None:
    """Put results on one page, list what stands out, and check metrics against thresholds.

    With one --user, report on that user: usage, efficiency and advice on requests, as text even without a terminal
    (mail it by cron); --json and --html contain its tables.
    """
    given = settings(context)
    shape, output, table = shown.shape(given), shown.output, shown.table
    from gpuctl.reports.conditions import parse
    from gpuctl.reports.export.document import read_document
    from gpuctl.reports.report import all_metrics, failed
    from gpuctl.reports.screens.report import screen as screen_of

    command = command_line()
    written = {"--html": html, "--output": output, "--markdown": markdown, "--junit": junit}
    _check_listing(
        {"--metrics": metrics, "--list": list_kept},
        {**written, "--figures": figures, "--fail-if": fail_if, "--baseline": baseline},
    )
    if metrics:
        print_result(all_metrics(command), shape, output, table, given)
        return
    if not paths:
        raise UsageError("nothing to report", hint="name results written with --json, a trace store, or logs")
    from gpuctl.services.report_inputs import Selection, gather, strangers

    pseudonyms = _pseudonyms(anonymise_key, anonymise=anonymise, queues=anonymise_queues)
    if list_kept:
        print_result(_listed(paths, command, hidden=pseudonyms is not None), shape, output, table, given)
        return
    check_outputs(context, written, {"--figures": figures})
    if pseudonyms is not None:
        given = replace(given, hide=partial(_pseudonymous, pseudonyms))
    conditions = [parse(text) for text in fail_if or ()]
    chosen = Selection(tuple(cluster or ()), tuple(only or ()), command, filters.parsed())
    others = (conditions, baseline, markdown, junit, table, shown.every, pseudonyms)
    if compare is not None:
        if conditions or baseline or junit or figures or only:
            raise UsageError("--compare makes a report of its own", hint="leave out options of other reports")
        _write_changes(paths, compare, chosen, (html, markdown), (shape, output, table), given, pseudonyms)
        return
    if len(chosen.filter.user) == 1 and not any(others):
        _write_user(paths, chosen, shape, output, (html, figures), given, notes=shown.notes)
        return
    found = gather(paths, chosen, given)
    old = [read_document(path) for path in baseline] if baseline else None
    with strangers(read=old is not None or any(one.read for one in found)):
        parts, summary = _summary(found, conditions, old, pseudonyms, command)
        screen = screen_of(parts, summary) if for_people(shape, output) and not (table or shown.every) else None
        for warning in () if screen else summary.warnings:
            given.tell(f"Warning: {warning}")
        _write(parts, summary, html, figures, markdown, junit)
        from gpuctl.reports.terminal.pictures import of_results

        with suppress(BrokenPipeError):  # whoever reads less has the verdict all the same
            print_result(
                summary, shape, output, table, given,
                painter=partial(of_results, parts), screen=screen, notes=shown.notes, paged=shown.every,
            )  # fmt: skip
            sys.stdout.flush()
    # where they lie may name a user or a project
    announce_written(
        [place and (Path(place.name) if pseudonyms else place) for place in (html, figures, markdown, junit, output)],
        given,
    )
    for sentence in failed(summary):
        message(f"gpuctl: {sentence}")
    if failed(summary):
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _summary(
    found: Sequence[NamedResult], conditions: list[Condition], old: list[Analysis] | None,
    pseudonyms: Pseudonyms | None, command: str,
) -> tuple[tuple[Part, ...], Analysis]:  # fmt: skip
    """The parts of a report, and what it says of them, without names if these are to be hidden."""
    from gpuctl.reports.report import earlier, labelled, summarize

    if pseudonyms is None:
        parts = labelled([one.analysis for one in found], [one.name for one in found])
        return parts, summarize(parts, conditions, None if old is None else earlier(old), command)
    from gpuctl.reports.privacy.anonymise import command as short
    from gpuctl.reports.privacy.anonymise import hide

    hidden = hide([(one.name, one.analysis) for one in found], conditions, old, pseudonyms)
    return hidden.parts, summarize(hidden.parts, list(hidden.conditions), hidden.baseline, short(command))


def _write_user(  # noqa: PLR0917 - what the command was given
    paths: Sequence[Path], chosen: Selection, shape: OutputFormat | None, output: Path | None,
    places: tuple[Path | None, Path | None], given: Settings, *, notes: bool,
) -> None:  # fmt: skip
    """Write the page of one user, for each cluster with jobs of that user; `places` are of page and figures."""
    from gpuctl.cli.options import OutputFormat
    from gpuctl.cli.output import print_screen
    from gpuctl.reports.screens.user import TABLES, screen
    from gpuctl.services.report_inputs import gather

    found = [one.analysis for one in gather(paths, replace(chosen, tables=TABLES), given)]
    if any(places) or shape not in {None, OutputFormat.TABLE}:
        if len(found) > 1:
            raise UsageError("the tables of a user are of one cluster", hint="choose it with --cluster")
        write_files(found[0], given, html=places[0], figures=places[1])
    if shape not in {None, OutputFormat.TABLE}:
        print_result(found[0], shape, output, None, given)
    elif not any(places) or output is not None:
        for one in found:
            print_screen(screen(one, chosen.filter.user[0]), output, given, notes=notes)
    announce_written((*places, output), given)


def _write_changes(  # noqa: PLR0917 - what the command was given
    paths: Sequence[Path], periods: tuple[str, str], chosen: Selection, places: tuple[Path | None, Path | None],
    shown: tuple[OutputFormat | None, Path | None, list[str] | None], given: Settings, pseudonyms: Pseudonyms | None,
) -> None:  # fmt: skip
    """Write what changed between two periods; `places` are of page and Markdown."""
    from gpuctl.reports.export.markdown import write
    from gpuctl.reports.screens.changes import screen
    from gpuctl.services.report_inputs import changes

    found = changes(paths, periods, chosen, given)
    if pseudonyms is not None:
        from gpuctl.reports.privacy.anonymise import anonymised

        found = anonymised(found, pseudonyms)
    shape, output, table = shown
    write_files(found, given, html=places[0])
    if places[1] is not None:
        write(found, places[1])
    print_result(found, shape, output, table, given, screen=None if table else screen(found), notes=bool(table))
    announce_written((*places, output), given)


def _listed(paths: Sequence[Path], command: str, *, hidden: bool) -> Analysis:
    """What stores have; nothing of it may be hidden.

    Raises:
        UsageError: names are to be hidden, or something is no store.
    """
    from gpuctl.services.inputs import is_store
    from gpuctl.store.inventory import listing

    if hidden:
        raise UsageError("--list shows names: it cannot be anonymised", hint="leave one of them out")
    other = next((path for path in paths if not is_store(path)), None)
    if other is not None:
        raise UsageError(f"--list: {other} is not a trace store", hint="name stores that gpuctl ingest made")
    return listing(paths, command)


def _check_listing(listings: Mapping[str, bool], others: Mapping[str, object]) -> None:
    """Refuse options that a mere list would leave without effect: a check that checks nothing would pass."""
    listing = next((option for option, wanted in listings.items() if wanted), None)
    extra = next((option for option, value in others.items() if value and option != "--output"), None)
    if listing is not None and extra is not None:
        raise UsageError(f"{listing} makes no report", hint=f"leave {extra} out")


def _write(  # noqa: PLR0917 - one place each
    parts: tuple[Part, ...], summary: Analysis, html: Path | None, figures: Path | None, markdown: Path | None,
    junit: Path | None,
) -> None:  # fmt: skip
    if html is not None:
        from gpuctl.reports.html import render_report, write_page

        write_page(render_report(parts, summary), html)
    if figures is not None:
        from gpuctl.reports.charts.paper import write_all
        from gpuctl.reports.drawables import of_report

        write_all(of_report(parts), figures)
    if markdown is not None:
        from gpuctl.reports.ci import write_markdown

        write_markdown(summary, markdown)
    if junit is not None:
        from gpuctl.reports.ci import write_junit

        write_junit(summary, junit)


def _pseudonyms(key: Path | None, *, anonymise: bool, queues: bool) -> Pseudonyms | None:
    if queues and not anonymise and key is None:
        raise UsageError("--anonymise-queues goes with --anonymise or --anonymise-key", hint="add one of them")
    if not anonymise and key is None:
        return None
    from gpuctl.reports.privacy.anonymise import Pseudonyms, random_key, read_key

    return Pseudonyms(random_key() if key is None else read_key(key), queues=queues)


def _pseudonymous(pseudonyms: Pseudonyms, text: Note) -> Note:
    """What is said on stderr of logs that were read, without names."""
    from gpuctl.reports.privacy.anonymise import pseudonymous

    return pseudonymous(text, pseudonyms)
