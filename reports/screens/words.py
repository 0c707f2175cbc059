"""Numbers and names for screens: one unit per quantity, names no longer than their column."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeGuard

from rich.cells import cell_len, set_cell_size

from gpuctl.core.numbers import MISSING
from gpuctl.core.relative_time import without_date
from gpuctl.reports.cell_text import shown, visible
from gpuctl.reports.screens.model import Line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import Analysis

    Row = dict[str, Any]

NAME = 24
"""Maximum characters of a name from a log; ``--table`` prints it in full."""
ORACLE = "*"
"""Mark after the name of a policy that knew true run times."""


def oracles(found: Sequence[Row]) -> Line | None:
    """Return the line on the policies of a replay or experiment that knew true run times; None if none did."""
    names = list(dict.fromkeys(clipped(row["policy"], 20) for row in found if row["oracle"]))
    if not names:
        return None
    return Line(f"{ORACLE} oracle", f"{', '.join(names)} know true run times, unlike a real scheduler: a bound")


def rows(analysis: Analysis, name: str) -> list[Row]:
    """Return the rows of a table; empty if the analysis lacks it."""
    table = analysis.table(name)
    return [] if table is None else table.frame.to_dicts()


def only(analysis: Analysis, name: str, column: str = "", value: str = "all") -> Row:
    """Return the row of a table that sums it up, or its only row; empty if there is none."""
    found = rows(analysis, name)
    return next((row for row in found if not column or row.get(column) == value), {})


def known(value: object) -> TypeGuard[float]:
    """Return whether there is a number to show."""
    return isinstance(value, int | float) and math.isfinite(value)


def clipped(text: object, most: int = NAME) -> str:
    """Return a name from a log, made harmless and at most `most` characters long."""
    plain = visible(str(text)) or '""'
    return plain if cell_len(plain) <= most else set_cell_size(plain, most - 1) + "\u2026"


def count(number: object, word: str) -> str:
    """Return ``1 job``, ``1,962 jobs``; empty without a number."""
    return "" if number is None else f"{shown(number)} {word}{'' if number == 1 else 's'}"


def day(time: object) -> str:
    """Return ``2017-10-02 07:00``, or ``day 3 07:00:00`` without a date; a dash for an unknown time."""
    if not isinstance(time, datetime):
        return MISSING
    return without_date(time) or f"{time:%Y-%m-%d %H:%M}"


def filtered(analysis: Analysis, but: str = "") -> Line | None:
    """Return the line on the jobs that a result covers, and on figures of all jobs; None without a filter."""
    setting = analysis.settings.get("filter")
    return None if setting is None else Line("Filter", f"{setting}{but}", lines=2)


def windowed(analysis: Analysis) -> Line | None:
    """Return the line on the replayed time window, and that waits are too short at its start."""
    setting = analysis.settings.get("window")
    return None if setting is None else Line("Window", setting, lines=3)


def stated(analysis: Analysis) -> str:
    """Return statements that have their own lines, so that they are not repeated as caveats."""
    return "\n".join(str(analysis.settings.get(name, "")) for name in ("window", "fidelity"))


def worst(warnings: Sequence[str], most: int = 3) -> Line | None:
    """Return the caveats with the largest possible effect, and their number; None if there are none."""
    if not warnings:
        return None
    return Line(f"Caveats ({len(warnings)}, --notes)", "; ".join(map(_first_words, warnings[:most])), lines=most)


def briefly(warnings: Sequence[str]) -> Line | None:
    """Return the line of caveats: their number, and the beginning of each; None if there are none."""
    if not warnings:
        return None
    first, *more = map(_first_words, warnings)
    return Line(f"Caveats ({len(warnings)}, --notes)", first, more=tuple(more))


def _first_words(warning: str) -> str:
    signs = (". ", ", which", ", not ", " (", "; ", ", so ", " from what", ": ")
    ends = [at for sign in signs if (at := warning.find(sign)) > 0]
    words = warning[: min(ends, default=len(warning))].removeprefix("the ").removeprefix("The ")
    return clipped(words.removesuffix("."), 96)
