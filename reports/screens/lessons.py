"""The screen of the lessons: savings of each rule, and their basis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.notes import literal
from gpuctl.core.numbers import MISSING
from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Grid, Head, Line, Screen
from gpuctl.reports.screens.words import briefly, clipped, known, rows

if TYPE_CHECKING:
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.screens.words import Row

LINES = 45
"""The screen has no more lines."""


def screen(analysis: Analysis) -> Screen:
    """Return the screen of the lessons."""
    answers, inputs = rows(analysis, "lessons"), rows(analysis, "lesson_inputs")
    blocks: list[Block | None] = [
        _first(answers),
        _answers(answers),
        _inputs(inputs),
        briefly(list(dict.fromkeys(analysis.warnings))),
        Line("Next", "--all, --table NAME, --html FILE, --notes, --json; docs/how-to/lessons.md"),
    ]
    notes = [("Caveat", text) for text in dict.fromkeys(analysis.warnings)]
    for name in ("lessons", "lesson_inputs"):
        table = analysis.table(name)
        if table is not None:
            notes += [(f"{column.name} ({column.unit})", literal(column.description)) for column in table.columns]
    notes += [(f"Setting: {key}", value) for key, value in analysis.settings.items()]
    subtitle = f"{analysis.settings['replays']}; intervals: {analysis.settings['intervals']}"
    made = tuple(block for block in blocks if block is not None)
    return Screen(f"Lessons: {clipped(analysis.cluster, 96)}", subtitle, made, LINES, tuple(notes))


def _first(found: list[Row]) -> Line | None:
    """Return the answer: the rule with the largest proven saving of GPU-hours among those not proven to add waiting."""
    if not found:
        return None
    saving = [row for row in found if row["gpu_hours"] == "saves" and not _may_wait(row)]
    if not saving:
        return Line("Answer", "no rule demonstrably saves GPU-hours without longer waits", lines=2)
    best = max(saving, key=lambda row: float(row["gpu_hours_saved"]))
    waiting = f"; {shown(best['wait_saved_h'], 'h')} h of waiting per job" if best["waiting"] == "saves" else ""
    if best["waiting"] == "not known" and known(best["wait_saved_h"]):
        waiting = "; the trace is too short to judge waits"
    held, share = shown(best["gpu_hours_saved"], "GPU-h"), shown(best["gpu_hours_saved_pct"], "%")
    return Line("Answer", f"{best['rule']}: saves {held} GPU-hours ({share} %){waiting}", lines=2)


def _may_wait(row: Row) -> bool:
    """Return whether jobs wait longer under a rule, or do so in this trace, which is too short to prove it."""
    longer = known(row["wait_saved_h"]) and row["wait_saved_h"] < 0
    return row["waiting"] == "costs" or (row["waiting"] == "not known" and longer)


def _answers(found: list[Row]) -> Block:
    if not found:
        return Line("Answers", "none: this trace lacks the data for an estimate", lines=2)
    heads = (
        Head("Savings by rule", right=False), Head("GPU-hours", "90 %", right=False),
        Head("wait, h a job", "90 %", right=False), Head("%"), Head("GPU-hours", right=False),
        Head("waiting", right=False),
    )  # fmt: skip
    cells = [
        (
            clipped(row["rule"], 32), _ends(row, "gpu_hours_saved", "", "GPU-h"), _ends(row, "wait_saved", "_h", "h"),
            shown(row["gpu_hours_saved_pct"], "%"), row["gpu_hours"], row["waiting"],
        )
        for row in found
    ]  # fmt: skip
    return Grid(heads, tuple(cells), "... and {count} more: --table lessons", least=4)


def _inputs(found: list[Row]) -> Grid | None:
    if not found:
        return None
    heads = (Head("Basis of the estimate", right=False), Head("value"), Head("90 % interval", right=False),
             Head("origin", right=False))  # fmt: skip
    cells = [
        (
            clipped(row["what"], 64), _value(row["value"], row["unit"]),
            f"{_value(row['low'], '-')} to {_value(row['high'], '-')}" if known(row["low"]) else MISSING, row["origin"],
        )
        for row in found
    ]  # fmt: skip
    return Grid(heads, tuple(cells), "... and {count} more: --table lesson_inputs", least=3)


def _value(value: object, unit: str) -> str:
    return MISSING if not known(value) else f"{value:,.3g}" + ("" if unit == "-" else f" {unit}")


def _ends(row: Row, name: str, end: str, unit: str) -> str:
    value, low, high = (row[f"{name}{which}{end}"] for which in ("", "_low", "_high"))
    if not known(value):
        return MISSING
    return shown(value, unit) + (f" ({shown(low, unit)} to {shown(high, unit)})" if known(low) else "")
