"""Numbers and names as screens write them: one unit for one quantity, names no longer than their column."""

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
    """The line that says which policies of a replay or an experiment knew true run times; None where none did."""
    names = list(dict.fromkeys(clipped(row["policy"], 20) for row in found if row["oracle"]))
    if not names:
        return None
    return Line(f"{ORACLE} oracle", f"{', '.join(names)} knew true run times, as no real scheduler does: a bound")


def rows(analysis: Analysis, name: str) -> list[Row]:
    """The rows of a table; none where the analysis has no such table."""
    table = analysis.table(name)
    return [] if table is None else table.frame.to_dicts()


def only(analysis: Analysis, name: str, column: str = "", value: str = "all") -> Row:
    """The row of a table that sums it up, or its only row; empty where there is none."""
    found = rows(analysis, name)
    return next((row for row in found if not column or row.get(column) == value), {})


def known(value: object) -> TypeGuard[float]:
    """Whether there is a number to show."""
    return isinstance(value, int | float) and math.isfinite(value)


def clipped(text: object, most: int = NAME) -> str:
    """A name from a log, made harmless and no longer than `most` characters."""
    plain = visible(str(text)) or '""'
    return plain if cell_len(plain) <= most else set_cell_size(plain, most - 1) + "\u2026"


def count(number: object, word: str) -> str:
    """``1 job``, ``1,962 jobs``; empty where there is not a number."""
    return "" if number is None else f"{shown(number)} {word}{'' if number == 1 else 's'}"


def day(time: object) -> str:
    """``2017-10-02 07:00``, ``day 3 07:00:00`` where it has no date; a dash where the time is not known."""
    if not isinstance(time, datetime):
        return MISSING
    return without_date(time) or f"{time:%Y-%m-%d %H:%M}"


def filtered(analysis: Analysis, but: str = "") -> Line | None:
    """The line that says which jobs a result is about, and what is not; None where it is about all."""
    setting = analysis.settings.get("filter")
    return None if setting is None else Line("Filter", f"{setting}{but}", lines=2)


def windowed(analysis: Analysis) -> Line | None:
    """The line that says which window of time is replayed, and that waits are too short at its start."""
    setting = analysis.settings.get("window")
    return None if setting is None else Line("Window", setting, lines=3)


def stated(analysis: Analysis) -> str:
    """What lines of their own say, so that it is no caveat as well."""
    return "\n".join(str(analysis.settings.get(name, "")) for name in ("window", "fidelity"))


def worst(warnings: Sequence[str], most: int = 3) -> Line | None:
    """The caveats that can change most, the worst first, and how many there are; None where there is none."""
    if not warnings:
        return None
    return Line(f"Caveats ({len(warnings)}, --notes)", "; ".join(map(_first_words, warnings[:most])), lines=most)


def briefly(warnings: Sequence[str]) -> Line | None:
    """The line of caveats: how many there are, and what each says first; None where there is none."""
    if not warnings:
        return None
    first, *more = map(_first_words, warnings)
    return Line(f"Caveats ({len(warnings)}, --notes)", first, more=tuple(more))


def _first_words(warning: str) -> str:
    signs = (". ", ", which", ", not ", " (", "; ", ", so ", " from what", ": ")
    ends = [at for sign in signs if (at := warning.find(sign)) > 0]
    words = warning[: min(ends, default=len(warning))].removeprefix("the ").removeprefix("The ")
    return clipped(words.removesuffix("."), 96)
