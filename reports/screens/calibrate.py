"""The screen of ``gpuctl calibrate``: the rules found, and their distance to the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.numbers import timed
from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Grid, Head, Line, Screen
from gpuctl.reports.screens.words import clipped, rows
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Block

LINES = 25
"""The screen has no more lines."""


def screen(analysis: Analysis) -> Screen:
    """Return the screen of a calibration."""
    unit = Units(analysis.tables).waits()
    heads = (
        Head("Rules", unit.name, right=False), Head("within 1 min %"), Head("within 10 min %"), Head("mean wait"),
        Head("recorded"), Head("p95"), Head("recorded"),
    )  # fmt: skip
    cells = tuple(
        (
            clipped(row["rules"], 24), shown(row["within_1min_pct"], "%"), shown(row["within_10min_pct"], "%"),
            *(timed(row[name], unit) for name in
              ("delay_mean_s", "recorded_delay_mean_s", "delay_p95_s", "recorded_delay_p95_s")),
        )
        for row in rows(analysis, "calibration_scores")
        if row["by"] == "all"
    )  # fmt: skip
    found = [row for row in rows(analysis, "calibration_rules") if row["value"] != row["default"]]
    each = ", ".join(f"{clipped(row['name'])}={clipped(row['value'])}" for row in found)
    blocks: tuple[Block, ...] = (
        Line("Found", f"{analysis.settings['policy']} with {each or 'its defaults'}", lines=4),
        Grid(heads, cells, "... and {count} more: --table calibration_scores", least=4),
        Line("Verdict", analysis.settings["verdict"], lines=3),
        Line("Next", "--save FILE.toml, then gpuctl replay --calibrated FILE.toml; --table calibration_scores, --all"),
    )
    notes = [(f"Setting: {key}", value) for key, value in analysis.settings.items()]
    notes += [(f"{table.title} (table {table.name})", table.population) for table in analysis.tables]
    title = f"Calibration: {clipped(analysis.cluster, 60)}"
    basis = f"scored on jobs not used for fitting; fitted: {analysis.settings['fitted']}"
    return Screen(title, basis, blocks, LINES, tuple(notes))
