"""``gpuctl replay``: the same jobs under other policies, loads or nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuctl.cli.common import message, settings
from gpuctl.cli.keep import keep, keeping_place, traces_db
from gpuctl.cli.options import Filters, TableOptions, grouped
from gpuctl.cli.output import announce_written, command_line, for_people, print_result
from gpuctl.cli.replay_options import Comparison, Failing, Inputs, Places, Policies, Rules
from gpuctl.cli.replay_tables import SECTIONS, TABLES
from gpuctl.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.cli.common import Settings
    from gpuctl.cli.experiment import ExperimentOptions
    from gpuctl.cli.replay_inputs import Source
    from gpuctl.cli.unchanged import Before
    from gpuctl.core.notes import Note
    from gpuctl.core.results import Analysis
    from gpuctl.replay.inputs.calibration import Calibration
    from gpuctl.replay.models.records import Outcome
    from gpuctl.reports.screens.model import Screen


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
    from gpuctl.cli import experiment, unchanged
    from gpuctl.cli.policy_choice import checked_baseline

    given = settings(context)
    shape = shown.shape(given)
    calibration, (names, varied, paths, inputs, rules, compared) = configured(
        chosen, inputs, rules, compared, paths or [], failing=failing
    )
    baseline = checked_baseline(compared.baseline, names)
    places.check(context, shown)
    shown = _with_gantt(shown, compared, drawing=for_people(shape, shown.output))
    if varied.several:
        experiment.refuse(places, compared)
        inputs = replace(inputs, scale_load=None, add_nodes=None)
    else:
        _check_options(compared, shown.table or (), several=len(names) > 1, failing=failing.failures is not None)
    place = keeping_place(places.keep_as, paths, inputs.db)
    from gpuctl.cli.replay_inputs import by_traits, gantt_window, read
    from gpuctl.replay.results.settings import policy_notes

    inputs = replace(inputs, db=traces_db(paths, inputs.db, places.keep_as))
    models = models_of(rules) | {"failures": experiment.failures_of(failing, varied)}
    read_in = read(
        paths, inputs, filters.parsed(), rules, tuple(chosen.slurm_conf or ()), given,
        names=names, quotas=None if calibration is None else calibration.quotas, failing=models["failures"] is not None,
    )  # fmt: skip
    source, models = by_traits(read_in, models, names)
    window = gantt_window(compared.gantt, source.workload)
    first = for_people(shape, shown.output) and not (compared.section or shown.table or shown.every)
    notes = _print_notes([*source.workload.notes, *source.cluster.notes], quiet=given.quiet or first)
    if varied.several:
        was = unchanged.for_cells(
            source, names, models, known=calibration, wanted=compared.unchanged,
            run=partial(_run, jobs=compared.jobs, given=given),
        )  # fmt: skip
        experiment.answer(source, names, models, varied, was, rules, compared, places, shown, baseline, given)
        return
    models["seed"] = varied.seeds[0]
    outcomes, missing = _run(source, names, models, jobs=compared.jobs, given=given)
    if missing:
        message(f"gpuctl: interrupted; not done: {', '.join(missing)}" + ("" if outcomes else "; nothing was done"))
        if not outcomes:
            raise typer.Exit(ExitCode.INTERRUPTED)
        baseline = baseline if baseline in {o.policy for o in outcomes} else None
    notes += _print_notes(policy_notes(outcomes), quiet=given.quiet or first)
    before = unchanged.before(
        source, names, models, outcomes, known=calibration, wanted=compared.unchanged and not missing,
        run=partial(_run, jobs=compared.jobs, given=given),
    )  # fmt: skip
    result = result_of(
        outcomes, source, baseline, compared, window, was=before, seed=varied.seeds[0],
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


def configured(
    chosen: Policies, inputs: Inputs, rules: Rules, compared: Comparison, paths: list[Path], *, failing: Failing
) -> tuple[Calibration | None, ExperimentOptions]:
    """What the options, an experiment's file and a calibration say together."""
    from gpuctl.cli import experiment, unchanged

    chosen, rules, calibration = unchanged.with_calibration(chosen, rules)
    options = experiment.experiment_of(chosen, inputs, rules, compared, paths, failing=failing)
    if calibration is not None and chosen.experiment is not None:
        options = options._replace(names=unchanged.in_file(options.names, calibration, chosen.experiment))
    return calibration, options


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


def models_of(rules: Rules) -> dict[str, Any]:
    """The rules as `gpuctl.replay.run.replay` takes them, their files read.

    Raises:
        UsageError: one of them makes no sense.
    """
    from gpuctl.replay.models.resources import parse_resources
    from gpuctl.replay.models.speed import parse_time_slice, read_pairs

    return {
        "overhead": rules.overhead,
        "placement": rules.placement and rules.placement.value,
        "limits": rules.limits,
        "mode": rules.mode and rules.mode.value,
        "resources": parse_resources(rules.resources),
        "pairs": None if rules.pair_speeds is None else read_pairs(rules.pair_speeds),
        "time_slice": parse_time_slice(rules.time_slice),
        "skip_unplaceable": rules.skip_unplaceable,
    }


def _run(
    source: Source,
    names: list[tuple[str, dict[str, str]]],
    models: dict[str, Any],
    *,
    jobs: int | None,
    given: Settings,
) -> tuple[list[Outcome], list[str]]:
    """The outcomes, and the policies that Ctrl-C left undone."""
    from gpuctl.cli.progress import Bar
    from gpuctl.replay.run import ReplayInterrupted
    from gpuctl.replay.run import replay as run

    with Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:

        def at(ended: Sequence[int], size: int, seconds: Sequence[float]) -> None:
            each = zip(names, ended, seconds, strict=True)
            share = [f"{name} {k / size:.0%} day {s / 86_400:,.1f}" for (name, _), k, s in each if s > 0 and k < size]
            more = f" +{len(share) - 2}" if len(share) > 2 else ""
            bar.at(", ".join(share[:2]) + more or "replaying", sum(ended), size * len(names))

        try:
            outcomes = run(
                source.workload,
                source.cluster,
                names,
                rates=source.rates,
                processes=jobs,
                progress=at,
                notify=lambda text: None if given.quiet else bar.tell(text),
                **models,
            )
        except ReplayInterrupted as stop:
            return stop.outcomes, stop.missing
    return outcomes, []


def _wanted(compared: Comparison, shown: TableOptions, *, first: bool, drawing: bool) -> Sequence[str] | None:
    """The tables to make; None for all."""
    if first:
        from gpuctl.reports.screens.replay import TABLES as SHOWN

        return SHOWN
    if compared.section or shown.every or not shown.table:
        return None
    from gpuctl.reports.terminal.pictures import drawn_from

    return [*shown.table, *(drawn_from(shown.table) if drawing else ())]


def result_of(
    outcomes: list[Outcome],
    source: Source,
    baseline: str | None,
    compared: Comparison,
    window: tuple[float, float] | None,
    *,
    was: Before,
    seed: int,
    tables: Sequence[str] | None,
) -> Analysis:
    """Return the tables of replays, with what they are compared with and how they were set up."""
    from gpuctl import __version__
    from gpuctl.core.notes import literal
    from gpuctl.replay.results.tables import result

    found = result(
        outcomes,
        source.workload,
        source.cluster,
        baseline=baseline,
        against_recorded=compared.against is not None,
        command=command_line(),
        version=__version__,
        warmup=compared.warmup,
        sources=source.sources,
        tables=tables,
        window=window,
        unchanged=was.unchanged,
        own=was.own,
        traced=source.traced,
        failure_seed=seed,
    )
    found = replace(found, settings=found.settings | {"locality": literal(source.locality)} | source.chosen)
    sections = compared.section
    if not sections:
        return found
    return replace(
        found,
        tables=tuple(t for t in found.tables if t.section in sections),
        sections=tuple(s for s in found.sections if s[0] in sections),
    )


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
