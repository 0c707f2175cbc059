"""``gpuctl replay``: the same jobs under other policies, loads or nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message
from gpuctl.cli.options import TableOptions, grouped
from gpuctl.cli.output import announce_written, command_line, for_people, keep, keeping_place, print_result, traces_db
from gpuctl.cli.replay_options import Places
from gpuctl.cli.replay_tables import SECTIONS, SWEEP_TABLES, TABLES
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.services.options import Comparison, Failing, Filters, Inputs, Policies, Rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.cli.settings import Settings
    from gpuctl.core.notes import Note
    from gpuctl.core.results import Analysis
    from gpuctl.replay.models.records import Outcome
    from gpuctl.reports.screens.model import Screen
    from gpuctl.services.replays import Prepared

_CELLS = "cells"
"""Where below --parquet a sweep keeps what is done."""
_SLURM = "slurm"
"""Where below --parquet jobs of Slurm leave what they print."""


@grouped
def replay(
    context: typer.Context,
    *,
    chosen: Policies,
    inputs: Inputs,
    filters: Filters,
    rules: Rules,
    failing: Failing,
    compared: Comparison,
    shown: TableOptions,
    places: Places,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="INPUT...",
            help="A CSV with the columns job_id,submit_time,duration,num_gpus; or log files, directories or archives; "
            "or one trace store (.duckdb).",
        ),
    ] = None,
) -> None:
    """Replay jobs under other policies, with more load or on other nodes, and compare waits and completion times."""
    from gpuctl.services.replay_plan import plan

    given = settings(context)
    shape = shown.shape(given)
    planned = plan(paths or [], chosen, inputs, rules, compared, failing=failing)
    compared, several = planned.compared, planned.varied.several
    places.check(context, shown)
    shown = _with_gantt(shown, compared, drawing=for_people(shape, shown.output))
    if several:
        _refuse(places, compared)
    else:
        _check_options(
            compared, shown.table or (), several=len(planned.names) > 1, failing=failing.failures is not None
        )
    db = planned.inputs.db
    place = keeping_place(places.keep_as, planned.paths, db)
    from gpuctl.replay.results.settings import policy_notes
    from gpuctl.replay.run import ReplayInterrupted
    from gpuctl.services import replays
    from gpuctl.services.replay_inputs import gantt_window

    db = traces_db(planned.paths, db, places.keep_as)
    ready = replays.prepare(replace(planned, inputs=replace(planned.inputs, db=db)), filters.parsed(), given)
    source = ready.source
    window = gantt_window(compared.gantt, source.workload)
    first = for_people(shape, shown.output) and not (compared.section or shown.table or shown.every)
    notes = _print_notes([*source.workload.notes, *source.cluster.notes], quiet=given.quiet or first)
    if several:
        _print_sweep(ready, places, shown, given)
        return
    missing: list[str] = []
    try:
        outcomes = replays.run(ready, given)
    except ReplayInterrupted as stop:
        outcomes, missing = stop.outcomes, stop.missing
        message(f"gpuctl: interrupted; not done: {', '.join(missing)}" + ("" if outcomes else "; nothing was done"))
        if not outcomes:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    notes += _print_notes(policy_notes(outcomes), quiet=given.quiet or first)
    before = replays.compare(ready, outcomes, given, wanted=not missing)
    result = replays.result(
        ready, outcomes, before, command=command_line(), window=window,
        tables=None if places.whole else _wanted(compared, shown, first=first, drawing=for_people(shape, shown.output)),
    )  # fmt: skip
    _tell_unfinished(outcomes, given)
    places.write(result, outcomes, (source.workload, source.cluster), given)
    screen = _screen(result, notes) if first else None
    tables = _there(shown, result) if missing else shown.table
    print_result(result, shape, shown.output, tables, given, screen=screen, notes=shown.notes, paged=shown.every)
    announce_written((*places.all, shown.output), given)
    if missing:
        if places.keep_as is not None:
            message(f"not saved as {places.keep_as!r}: some policies are not done")
        raise typer.Exit(ExitCode.INTERRUPTED)
    keep(result, places.keep_as, place, context, given)
    if source.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _print_sweep(ready: Prepared, places: Places, shown: TableOptions, given: Settings) -> None:
    """Replay every combination, print the result and write the files that are asked for.

    Raises:
        UsageError: no such table.
        Exit: Ctrl-C; a message says what was kept.
    """
    from gpuctl.core.suggestions import meant
    from gpuctl.replay.experiments.run import CellFolder
    from gpuctl.services.sweeps import SweepInterrupted, sweep
    from gpuctl.spread.engine import parse

    compared, folder = ready.plan.compared, places.parquet
    engine = parse(compared.engine, compared.jobs, None if folder is None else folder / _SLURM)
    bad = next((name for name in shown.table or () if name not in SWEEP_TABLES), None)
    if bad is not None:
        raise UsageError(f"an experiment has no table {bad!r}", hint=meant(bad, SWEEP_TABLES))
    cells = None if folder is None else CellFolder(folder / _CELLS)
    try:
        found = sweep(ready, given, engine=engine, command=command_line(), cells=cells)
    except SweepInterrupted as stop:
        lost = "and lost; with --parquet DIR they are saved"
        where = "and saved: run the same command again for the rest" if cells else lost
        message(f"gpuctl: interrupted; {stop.done:,} of {stop.total:,} replays are done {where}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    places.write_tables(found, given)
    shape = shown.shape(given)
    screen = None
    if for_people(shape, shown.output) and not (shown.table or shown.every):
        from gpuctl.reports.screens.experiments import screen as screen_of

        screen = screen_of(found)
    print_result(found, shape, shown.output, shown.table, given, screen=screen, notes=shown.notes, paged=shown.every)
    announce_written((*places.all, shown.output), given)
    if ready.source.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _refuse(places: Places, compared: Comparison) -> None:
    """Refuse what one replay can have and many cannot."""
    for option, value in (
        ("--store", places.store), ("--decisions", places.decisions), ("--keep", places.keep_as),
        ("--against", compared.against), ("--section", compared.section), ("--gantt", compared.gantt),
    ):  # fmt: skip
        if value is not None:
            raise UsageError(
                f"{option} requires one replay per policy; several values of an option make an experiment",
                hint="omit it, or give one value per option",
            )


def _there(shown: TableOptions, result: Analysis) -> list[str] | None:
    """The tables asked for that a replay which was interrupted has."""
    known = {each.name for each in result.tables}
    return shown.table and [name for name in shown.table if name in known]


def _print_notes(notes: list[Note], *, quiet: bool) -> list[Note]:
    for note in notes:
        message(f"note: {note}", quiet=quiet)
    return notes


def _with_gantt(shown: TableOptions, compared: Comparison, *, drawing: bool) -> TableOptions:
    """What is shown: on a terminal with the Gantt chart, where its window is given."""
    if compared.gantt is None or not drawing or compared.section or shown.every:
        return shown
    return replace(shown, table=list(dict.fromkeys([*(shown.table or ()), "replay_gantt"])))


def _screen(result: Analysis, warnings: Sequence[str]) -> Screen:
    from gpuctl.reports.screens.replay import screen

    return screen(result, warnings)


def _check_options(compared: Comparison, tables: Sequence[str], *, several: bool, failing: bool) -> None:
    """See that the result will have the tables asked for."""
    from gpuctl.core.suggestions import meant

    if compared.engine != "local":
        raise UsageError(
            f"--engine {compared.engine} is for experiments: several values of an option",
            hint="omit it; --jobs sets how many policies run in parallel",
        )
    for kind, names, known in (("section", compared.section or (), SECTIONS), ("table", tables, TABLES)):
        for name in names:
            if name not in known:
                raise UsageError(f"a replay has no {kind} {name!r}", hint=meant(name, known))
    if "replay_vs_baseline" in tables and not several:
        raise UsageError("--table replay_vs_baseline: a single policy has nothing to be compared with")
    if "replay_failures" in tables and not failing:
        raise UsageError("--table replay_failures: no node fails in this replay", hint="add --failures 0.0065")
    if {"replay_vs_recorded", "replay_fidelity"} & set(tables) and compared.against is None:
        raise UsageError("this table compares with the recorded trace", hint="add --against recorded")
    if not 0 <= compared.warmup < 1:
        raise UsageError(f"--warmup {compared.warmup:g}: expected a share of the jobs, at least 0 and less than 1")


def _wanted(compared: Comparison, shown: TableOptions, *, first: bool, drawing: bool) -> Sequence[str] | None:
    """The tables to make; None for all."""
    if first:
        from gpuctl.reports.screens.replay import TABLES as SHOWN

        return SHOWN
    if compared.section or shown.every or not shown.table:
        return None
    from gpuctl.reports.terminal.pictures import drawn_from

    return [*shown.table, *(drawn_from(shown.table) if drawing else ())]


def _tell_unfinished(outcomes: list[Outcome], given: Settings) -> None:
    for outcome in outcomes:
        left = Counter(word for word in outcome.jobs["state"].to_list() if word not in {"finished", "cut"})
        if left:
            each = ", ".join(f"{count:,} {word}" for word, count in left.most_common())
            message(
                f"{outcome.policy}: {left.total():,} of {outcome.jobs.height:,} jobs did not finish ({each}); "
                "the table replay_unfinished lists them",
                quiet=given.quiet,
            )
