"""Replays with several values of something: every combination, with intervals over the seeds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from gpuctl.services import unchanged
from gpuctl.services.replays import run_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.core.results import Analysis
    from gpuctl.replay.experiments.cells import Base, Cell
    from gpuctl.replay.experiments.run import CellFolder
    from gpuctl.services.frontend import Frontend
    from gpuctl.services.replay_inputs import Source
    from gpuctl.services.replay_plan import Experiment
    from gpuctl.services.replays import Prepared
    from gpuctl.services.unchanged import ForCells
    from gpuctl.spread.engine import Engine

_OPTIONS = {"scale_load": "scale-load", "add_nodes": "add-nodes"}
"""Options of factors that change jobs or nodes."""


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep.

    Args:
        done: replays that are done.
        total: of so many.
    """

    def __init__(self, done: int, total: int) -> None:
        super().__init__("interrupted")
        self.done = done
        self.total = total


def sweep(
    ready: Prepared, frontend: Frontend, *, engine: Engine, command: str, cells: CellFolder | None = None
) -> Analysis:
    """Replay every combination and return the result.

    Args:
        ready: what is replayed.
        frontend: receives progress and messages.
        engine: where the replays run.
        command: for the record.
        cells: keeps each replay that is done; None: nothing is kept.

    Raises:
        SweepInterrupted: Ctrl-C.
        ReplayInterrupted: Ctrl-C before that, while the trace is replayed as it was.
    """
    from gpuctl.replay.experiments import cells as cells_of
    from gpuctl.replay.experiments.result import result
    from gpuctl.replay.policies import label

    source, plan, models = ready.source, ready.plan, ready.models
    varied, compared = plan.varied, plan.compared
    was = unchanged.for_cells(
        source, plan.names, models, known=plan.calibration, wanted=compared.unchanged,
        run=lambda source, names, models: run_on(source, names, models, compared.jobs, frontend),
    )  # fmt: skip
    resample = plan.rules.resample if len(varied.seeds) > 1 else "none"
    every = cells_of.plan(plan.names, varied.factors, varied.seeds)
    base = _base(source, models, was, resample, compared.warmup)
    changes = _changes(base, every, varied, was.everywhere)
    base = base if changes is not None else dataclasses.replace(base, unchanged=None)
    found = result(
        base, every, _figures(base, every, cells, engine, frontend), plan.baseline or label(plan.names[0][0]),
        sources=source.sources, command=command, locality=source.locality,
        measures=varied.measures, changes=changes, nearness=was.nearness,
    )  # fmt: skip
    return dataclasses.replace(found, settings=found.settings | source.chosen)


def _base(source: Source, models: dict[str, Any], was: ForCells, resample: str, warmup: float) -> Base:
    from gpuctl.replay.experiments.cells import Base

    def of(one: Source, models: dict[str, Any]) -> Base:
        return Base(one.workload, one.cluster, {**models, "rates": one.rates}, resample, warmup)

    before = None if was.source is None else of(was.source, was.models)
    return dataclasses.replace(
        of(source, models), unchanged=before, changed=bool(was.everywhere), own_params=was.own_params
    )


def _changes(base: Base, plan: Sequence[Cell], varied: Experiment, everywhere: list[Note]) -> Note | None:
    """What is compared with the unchanged replay; None if no cell is changed, or there is nothing to compare with."""
    from gpuctl.core.notes import NamedValue, literal, note, together
    from gpuctl.replay.experiments.cells import changed_factors
    from gpuctl.replay.policies import label

    if not any(map(base.changes, plan)):
        return None
    names = dict.fromkeys(name for cell in plan for name, _ in changed_factors(cell))
    changed = [
        note(
            "--{option} {values}",
            option=literal(_OPTIONS[name]),
            values=NamedValue("value", ",".join(varied.factors[name])),
        )
        for name in names
    ]
    params: dict[str, dict[str, None]] = {}
    for cell in plan:
        own = base.own_params.get(label(cell.policy), dict(cell.params))
        for key, value in cell.params:
            if own.get(key) != value:
                params.setdefault(f"{label(cell.policy)}.{key}", {})[value] = None
    changed += [
        note("--param {name}={values}", name=NamedValue("value", name), values=NamedValue("value", ",".join(values)))
        for name, values in params.items()
    ]
    return together(", ", [*changed, *everywhere])


def _figures(
    base: Base, plan: list[Cell], cells: CellFolder | None, engine: Engine, frontend: Frontend
) -> list[dict[str, Any]]:
    from gpuctl.replay.experiments.run import run

    done = 0
    with frontend.progress() as bar:

        def at(count: int, size: int) -> None:
            nonlocal done
            done = count
            bar.at(f"replay {count:,} of {size:,}", count, size)

        try:
            return run(base, plan, cells, engine=engine, progress=at, notify=frontend.tell)
        except KeyboardInterrupt:
            raise SweepInterrupted(done, len(plan)) from None
