"""An experiment as a result: its tables and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.core.notes import NamedValue, listed, literal, note
from gpuctl.core.numbers import number
from gpuctl.core.results import Analysis
from gpuctl.replay.experiments.cells import STRETCHES
from gpuctl.replay.experiments.table import tables
from gpuctl.replay.policies import label
from gpuctl.replay.results.comparison import ALL
from gpuctl.replay.results.intervals import LEAST_STRETCHES
from gpuctl.replay.results.settings import nodes_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.core.results import SourceInfo
    from gpuctl.replay.experiments.cells import Base, Cell
    from gpuctl.replay.results.comparison import Nearness

SECTION = ("experiments", "Experiment")


_DRAWN = {
    "days": note(
        "each seed draws whole days of the trace's jobs with replacement, as many jobs as there are; all policies "
        "and loads of a seed replay the same jobs"
    ),
    "weeks": note(
        "each seed draws whole weeks of the trace's jobs with replacement, as many jobs as there are; all policies "
        "and loads of a seed replay the same jobs"
    ),
    "users": note(
        "each seed draws the trace's users with replacement, each with all jobs at their times; the number of jobs and "
        "the load differ between seeds; all policies and loads of a seed replay the same jobs"
    ),
    "none": note("every seed replays the trace's own jobs"),
}


_OF_TRACE = note(
    "95 %, for a long run of the same workload: from the spread of draws of the trace, and the error of its load; "
    "none where the trace is too short to tell; differences are of the same jobs"
)
_INTERVALS = {
    "none": note("95 % of the mean over the seeds, by Student's t; differences are of the same jobs"),
    "days": _OF_TRACE,
    "weeks": _OF_TRACE,
    "users": note("none: draws of users differ in their load, and their mean is not that of the trace"),
}


def result(
    base: Base,
    cells: Sequence[Cell],
    figures: Sequence[dict[str, Any]],
    baseline: str,
    *,
    sources: tuple[SourceInfo, ...] = (),
    command: str = "",
    locality: str = "",
    measures: Sequence[str] = (),
    changes: Note | None = None,
    nearness: Nearness | None = None,
) -> Analysis:
    """Return an experiment's tables.

    Args:
        base: inputs of all cells.
        cells: the cells.
        figures: of each.
        baseline: label of the policy that the others are compared with.
        sources: the files that the jobs came from.
        command: the command line.
        locality: whether scattered jobs run slower, in words.
        measures: figures to show in addition to the usual ones, and to draw instead of them.
        changes: the change of the cells, if they are compared with the unchanged replay.
        nearness: how close the model is to the trace; None: no recorded starts to compare with.
    """
    labels = list(dict.fromkeys(label(cell.policy) for cell in cells))
    seeds = list(dict.fromkeys(cell.seed for cell in cells))
    is_known = base.resample in {"days", "weeks"}
    unfinished = sum(row["jobs"] - row["jobs_finished"] - row["jobs_cut"] for row in figures)
    warnings = []
    if len(seeds) == 1:
        warnings.append(
            note(
                "a single seed gives intervals of the differences from the unchanged replay alone, and none where the "
                "trace is too short to tell. Use --seed 1..10"
            )
            if changes is not None
            else note("a single seed gives no intervals. Use --seed 1..10")
        )
    elif is_known and (short := sum(row[STRETCHES] < LEAST_STRETCHES for row in figures)):
        warnings.append(
            note(
                "{short:,} of {n:,} replay{n||s} hold fewer than {least} independent stretches: the trace is too "
                "short to tell, and there are no intervals of such",
                short=short, n=len(figures), least=literal(number(LEAST_STRETCHES)),
            )
        )  # fmt: skip
    if unfinished:
        warnings.append(
            note(
                "{unfinished:,} job{unfinished||s} over all replays did not finish; figures are over the others",
                unfinished=unfinished,
            )
        )
    extra_settings: dict[str, Note] = {}
    if changes is not None:
        extra_settings["changes"] = changes
    if nearness is not None:
        extra_settings["fidelity"] = nearness.text
        if not nearness.calibrated:
            warnings.append(nearness.text)
    notes = [note("Changed: {changes}.", changes=changes)] if changes is not None else []
    notes += [nearness.text] if nearness is not None else []
    error = None if nearness is None else nearness.errors.get(("wait", ALL))
    return Analysis(
        cluster=note(
            "{jobs} on {nodes}", jobs=NamedValue("cluster", base.workload.name), nodes=nodes_note(base.cluster)
        ),
        tables=tables(cells, figures, baseline, measures, resample=base.resample, error=error, notes=tuple(notes)),
        sections=(SECTION,),
        sources=sources,
        settings={
            "policies": listed("policy", labels),
            "baseline": note("{name}", name=NamedValue("policy", baseline)),
            "jobs": _DRAWN[base.resample],
            "intervals": _INTERVALS[base.resample],
            "locality": literal(locality),
        }
        | extra_settings,
        command=command,
        warnings=(*base.workload.notes, *base.cluster.notes, *warnings),
    )
