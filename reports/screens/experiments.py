"""The screen of an experiment: policies by the varied parameter, with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.notes import literal
from gpuctl.core.numbers import MISSING, timed
from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Grid, Head, Line, Screen
from gpuctl.reports.screens.words import ORACLE, briefly, clipped, filtered, known, oracles, rows, stated, windowed
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.numbers import Unit
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.screens.words import ORACLE, Row, oracles

LINES = 45
"""The screen has no more lines."""
_SUMMARY = "experiments_summary"
_AFTER_FACTORS = "variant"


def screen(analysis: Analysis) -> Screen:
    """Return the screen of an experiment."""
    table = analysis.table(_SUMMARY)
    found = rows(analysis, _SUMMARY)
    names = [] if table is None else table.frame.columns[1 : table.frame.columns.index(_AFTER_FACTORS)]
    blocks: list[Block | None] = [
        filtered(analysis),
        windowed(analysis),
        _grid(found, names, Units(analysis.tables).waits()),
        oracles(found),
        *(_setting_line(analysis, "Change", "changes", 2), _setting_line(analysis, "Fidelity", "fidelity", 3)),
        briefly([text for text in dict.fromkeys(analysis.warnings) if text not in stated(analysis)]),
        Line("Next", "--table experiments, --parquet DIR (resumes), --html FILE, --json"),
    ]
    notes = [("Caveat", text) for text in dict.fromkeys(analysis.warnings)]
    if table is not None:
        notes += [(f"{column.name} ({column.unit})", literal(column.description)) for column in table.columns]
    notes += [(f"Setting: {key}", value) for key, value in analysis.settings.items()]
    title = f"Experiment: {clipped(analysis.cluster, 96)}"
    return Screen(title, "", tuple(block for block in blocks if block is not None), LINES, tuple(notes))


def _setting_line(analysis: Analysis, label: str, setting: str, lines: int) -> Line | None:
    text = analysis.settings.get(setting)
    return None if text is None else Line(label, text, lines=lines)


def _grid(found: Sequence[Row], names: Sequence[str], unit: Unit) -> Grid:
    several = any(known(row["wait_mean_s_low"]) for row in found)
    ends = "95 % interval" if several else ""
    compared = any(known(row["change_s"]) for row in found)
    changed = any(known(row.get("vs_unchanged_s")) for row in found)
    sure = "95 % interval" if any(known(row.get("vs_unchanged_low_s")) for row in found) else "too short to tell"
    heads = [Head("Policy", unit.name, right=False), *(Head(clipped(name, 16)) for name in names)]
    heads += [Head("wait", ends, right=False), *([Head("vs unchanged", sure, right=False)] if changed else [])]
    heads += [Head("p95"), *([Head("vs baseline", ends, right=False)] if compared else [])]
    fails = any(known(row.get("ettr")) for row in found)
    heads += [Head("JCT"), Head("util %"), *([Head("ETTR", ends, right=False)] if fails else [])]
    cells = []
    for row in found:
        own = [clipped(row["policy"], 16) + (ORACLE if row["oracle"] else ""), *(_value(row[name]) for name in names)]
        own += [_with_ends(row, "wait_mean_s", "wait_mean_s_low", "wait_mean_s_high", unit)]
        own += [_with_ends(row, "vs_unchanged_s", "vs_unchanged_low_s", "vs_unchanged_high_s", unit)] if changed else []
        own += [timed(row["wait_p95_s"], unit)]
        own += [_with_ends(row, "change_s", "change_low_s", "change_high_s", unit)] if compared else []
        own += [timed(row["jct_mean_s"], unit), shown(row["utilization_pct"], "%")]
        own += [_share(row)] if fails else []
        cells.append(tuple(own))
    return Grid(tuple(heads), tuple(cells), f"... and {{count}} more: --table {_SUMMARY}", least=8)


def _share(row: Row) -> str:
    """The ETTR of a row, with its interval if it has one."""
    ends = [shown(row[name]) for name in ("ettr", "ettr_low", "ettr_high") if known(row[name])]
    return f"{ends[0]} ({ends[1]} to {ends[2]})" if len(ends) == 3 else ends[0] if ends else MISSING


def _value(value: object) -> str:
    return MISSING if value is None else f"{value:g}" if isinstance(value, float) else clipped(value, 16)


def _with_ends(row: Row, name: str, low: str, high: str, unit: Unit) -> str:
    if not known(row[name]):
        return MISSING
    mean = _signed(row[name], unit)
    return mean if not known(row[low]) else f"{mean} ({_signed(row[low], unit)} to {_signed(row[high], unit)})"


def _signed(value: float, unit: Unit) -> str:
    text = timed(abs(value), unit)
    return f"-{text}" if value < 0 and text != "0" and not text.startswith("<") else text
