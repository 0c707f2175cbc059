"""The screens of ``gpuctl predict``: run times, waits, and the cost of a suspension."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpuctl.core.numbers import MISSING, timed
from gpuctl.reports.cell_text import visible
from gpuctl.reports.screens.model import Figures, Grid, Head, Line, Screen
from gpuctl.reports.screens.words import briefly, clipped, count, known, rows
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from gpuctl.core.numbers import Unit
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.screens.words import Row

LINES = 25
"""The screens have no more lines."""
_JOBS = 14


def runtime_screen(analysis: Analysis) -> Screen:
    """Return the screen of ``gpuctl predict runtime``."""
    found = rows(analysis, "predictions")
    answered = [row for row in found if known(row["run_time_s"])]
    blocks: list[Block | None] = [
        _jobs(answered, Units(analysis.tables).timed("predictions", "run_time_s")),
        _methods(answered),
        _silent([row for row in found if row not in answered]),
        briefly(analysis.warnings),
        Line("Next", "--format csv for every job, --job NAME for one, --json"),
    ]
    title = f"Run times predicted for {len(answered):,} of {count(len(found), 'job')}"
    return Screen(title, "", tuple(block for block in blocks if block is not None), LINES, _notes(analysis))


def _jobs(answered: list[Row], unit: Unit) -> Grid | None:
    left = any(known(row["remaining_s"]) for row in answered)
    heads = [Head("Job", right=False), Head("run time", unit.name), Head("80 % interval")]
    heads += [Head("remaining")] if left else []
    cells = []
    for row in answered[:_JOBS]:
        own = [clipped(row["job"], 32), timed(row["run_time_s"], unit)]
        own += [f"{timed(row['lower_s'], unit)} to {timed(row['upper_s'], unit)}" if known(row["lower_s"]) else MISSING]
        own += [timed(row["remaining_s"], unit)] if left else []
        cells.append((*own, str(row["method"])))
    more = "... and {count} more jobs: --format csv has all"
    heads.append(Head("method", right=False))
    return Grid(tuple(heads), tuple(cells), more, left_out=max(0, len(answered) - _JOBS)) if cells else None


def _methods(answered: list[Row]) -> Line | None:
    counts = Counter(str(row["method"]) for row in answered).most_common()
    return Line("Methods", ", ".join(f"{name} {number:,}" for name, number in counts)) if counts else None


def _silent(others: list[Row]) -> Line | None:
    if not others:
        return None
    reasons = Counter(visible(str(row["reason"])) for row in others).most_common(2)
    text = "; ".join(f"{why} ({number:,})" for why, number in reasons)
    return Line(f"No answer for {count(len(others), 'job')}", text, lines=2)


def wait_screen(analysis: Analysis) -> Screen:
    """Return the screen of ``gpuctl predict wait``."""
    found = rows(analysis, "predictions")
    answered = [row for row in found if known(row["p50_s"])]
    unit = Units(analysis.tables).timed("predictions", "p90_s")
    slurm = any(known(row["slurm_s"]) for row in answered)
    heads = (Head("Job", right=False), Head("median wait", unit.name), Head("80 % interval"), Head("80 % wait at most"),
             *((Head("Slurm says"),) if slurm else ()), Head("method", right=False))  # fmt: skip
    cells = [
        (
            clipped(row["job"], 32),
            timed(row["p50_s"], unit),
            f"{timed(row['p10_s'], unit)} to {timed(row['p90_s'], unit)}",
            timed(row["p80_s"], unit),
            *((timed(row["slurm_s"], unit),) if slurm else ()),
            str(row["method"]),
        )
        for row in answered[:_JOBS]
    ]
    more = "... and {count} more jobs: --format csv has all"
    blocks: list[Block | None] = [
        Grid(heads, tuple(cells), more, left_out=max(0, len(answered) - _JOBS)) if cells else None,
        _silent([row for row in found if row not in answered]),
        briefly(analysis.warnings),
        Line("Next", "--format csv for every job, --json"),
    ]
    title = f"Waits forecast for {len(answered):,} of {count(len(found), 'job')}"
    there = tuple(block for block in blocks if block is not None)
    return Screen(title, "", there, LINES, _notes(analysis))


def overhead_screen(analysis: Analysis) -> Screen:
    """Return the screen of ``gpuctl predict overhead``."""
    [row] = rows(analysis, "overhead")
    unit = Units(analysis.tables).timed("overhead", "loss_s")
    items = [
        (label, f"{timed(row[f'{name}_s'], unit)} {unit.name}{_interval(row, name, unit)}")
        for label, name in (("Until its GPUs are free", "suspend"), ("To resume", "resume"), ("Time lost", "loss"))
    ]
    blocks: list[Block | None] = [
        Figures((*items, ("Method", str(row["method"])))),
        briefly(analysis.warnings),
        Line("Next", "gpuctl train overhead for costs of your own jobs, --json"),
    ]
    table = analysis.table("overhead")
    subtitle = visible(table.population) if table is not None else ""
    there = tuple(block for block in blocks if block is not None)
    return Screen("Cost of one suspension", subtitle, there, LINES, _notes(analysis))


def _interval(row: Row, name: str, unit: Unit) -> str:
    low, high = row[f"{name}_lower_s"], row[f"{name}_upper_s"]
    return f" ({timed(low, unit)} to {timed(high, unit)})" if known(low) and known(high) else ""


def _notes(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    notes: list[tuple[str, str]] = [("Caveat", text) for text in analysis.warnings]
    for table in analysis.tables:
        notes.append((f"{table.title} (table {table.name})", " ".join((table.population, *table.notes))))
        notes += [(column.name, column.description) for column in table.columns]
    return tuple(notes)
