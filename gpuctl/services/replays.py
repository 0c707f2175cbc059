"""Replays: jobs and nodes prepared as planned, policies replayed, and the tables of what came out."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuctl.services import unchanged
from gpuctl.services.replay_inputs import by_traits, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.job_filter import JobFilter
    from gpuctl.core.results import Analysis
    from gpuctl.replay.models.records import Outcome
    from gpuctl.services.frontend import Frontend
    from gpuctl.services.replay_inputs import Source
    from gpuctl.services.replay_plan import Plan
    from gpuctl.services.unchanged import Before, Chosen


@dataclass(frozen=True)
class Prepared:
    """What is ready to be replayed.

    Attributes:
        plan: what was asked for.
        source: the jobs and nodes.
        models: as `gpuctl.replay.run.replay` takes them.
    """

    plan: Plan
    source: Source
    models: dict[str, Any]


def prepare(plan: Plan, wanted: JobFilter, frontend: Frontend) -> Prepared:
    """Read jobs, nodes, and the files that rules name.

    Raises:
        UsageError: the options do not fit together or do not fit the input.
        InputError: something cannot be read, or nothing of it replayed.
    """
    inputs = plan.inputs
    if plan.varied.several:
        inputs = dataclasses.replace(inputs, scale_load=None, add_nodes=None)
    models = plan.rules.models() | {"failures": plan.failures()}
    source = read(
        plan.paths, inputs, wanted, plan.rules, frontend, slurm_conf=plan.slurm_conf, names=plan.names,
        quotas=None if plan.calibration is None else plan.calibration.quotas, failing=models["failures"] is not None,
    )  # fmt: skip
    source, models = by_traits(source, models, plan.names)
    if not plan.varied.several:
        models["seed"] = plan.varied.seeds[0]
    return Prepared(plan, source, models)


def run(ready: Prepared, frontend: Frontend) -> list[Outcome]:
    """Replay each policy.

    Raises:
        ReplayInterrupted: Ctrl-C; it has the outcomes so far.
    """
    return run_on(ready.source, ready.plan.names, ready.models, ready.plan.compared.jobs, frontend)


def run_on(
    source: Source, names: Chosen, models: dict[str, Any], processes: int | None, frontend: Frontend
) -> list[Outcome]:
    """Replay policies on jobs and nodes, with progress.

    Raises:
        ReplayInterrupted: Ctrl-C; it has the outcomes so far.
    """
    from gpuctl.replay.run import replay

    with frontend.progress() as bar:

        def at(ended: Sequence[int], size: int, seconds: Sequence[float]) -> None:
            each = zip(names, ended, seconds, strict=True)
            share = [f"{name} {k / size:.0%} day {s / 86_400:,.1f}" for (name, _), k, s in each if s > 0 and k < size]
            more = f" +{len(share) - 2}" if len(share) > 2 else ""
            bar.at(", ".join(share[:2]) + more or "replaying", sum(ended), size * len(names))

        return replay(
            source.workload, source.cluster, names,
            rates=source.rates, processes=processes, progress=at, notify=bar.tell, **models,
        )  # fmt: skip


def compare(ready: Prepared, outcomes: list[Outcome], frontend: Frontend, *, wanted: bool = True) -> Before:
    """Replay without what options change, if they change something.

    Args:
        ready: what was replayed.
        outcomes: what came out.
        frontend: receives progress and messages.
        wanted: whether changes are to be compared with their absence, besides what the options say.
    """
    plan = ready.plan
    return unchanged.before(
        ready.source, plan.names, ready.models, outcomes, known=plan.calibration,
        wanted=wanted and plan.compared.unchanged,
        run=lambda source, names, models: run_on(source, names, models, plan.compared.jobs, frontend),
    )  # fmt: skip


def result(
    ready: Prepared, outcomes: list[Outcome], was: Before, *, command: str,
    window: tuple[float, float] | None = None, tables: Sequence[str] | None = None,
) -> Analysis:  # fmt: skip
    """Return the tables of replays, with what they are compared with and how they were set up.

    Args:
        ready: what was replayed.
        outcomes: what came out.
        was: the same without changes.
        command: for the record.
        window: seconds that the Gantt chart shows; None: around the busiest moment.
        tables: those to make; None: all.
    """
    from gpuctl import __version__
    from gpuctl.core.notes import literal
    from gpuctl.replay.results.tables import result as tables_of

    source, plan, compared = ready.source, ready.plan, ready.plan.compared
    found = tables_of(
        outcomes,
        source.workload,
        source.cluster,
        baseline=plan.baseline if plan.baseline in {each.policy for each in outcomes} else None,
        against_recorded=compared.against is not None,
        command=command,
        version=__version__,
        warmup=compared.warmup,
        sources=source.sources,
        tables=tables,
        window=window,
        unchanged=was.unchanged,
        own=was.own,
        traced=source.traced,
        failure_seed=plan.varied.seeds[0],
    )
    found = dataclasses.replace(found, settings=found.settings | {"locality": literal(source.locality)} | source.chosen)
    sections = compared.section
    if not sections:
        return found
    return dataclasses.replace(
        found,
        tables=tuple(t for t in found.tables if t.section in sections),
        sections=tuple(s for s in found.sections if s[0] in sections),
    )
