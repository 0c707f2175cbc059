"""The page of one user for ``gpuctl report --user``: resources used, efficiency, and requests to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.numbers import MISSING, number
from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Figures, Grid, Head, Line, Screen, Sentences
from gpuctl.reports.screens.words import briefly, clipped, count, day, known, only, rows

if TYPE_CHECKING:
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.screens.words import Row

LINES = 60
"""The page has no more lines."""
TABLES = (
    *("overview", "users", "efficiency", "efficiency_by_user", "smaller_requests", "sessions", "idle_nights"),
    "charges_by_user",
)
"""What it is made of."""
_MONTHS, _JOBS = 6, 5
_SMALLER_PCT = 80
"""A request is worth changing if so much of it, or less, would do."""
_UNITS = {"time limit": "h", "memory": "GiB", "CPUs": "CPUs", "GPUs": "GPUs"}
_FREED = {"time limit": "h of limits", "memory": "GiB-h", "CPUs": "CPU-h", "GPUs": "GPU-h"}


def screen(analysis: Analysis, user: str) -> Screen:
    """Return the page.

    Args:
        analysis: `TABLES` of the user's jobs.
        user: name of the user.
    """
    overview = only(analysis, "overview")
    efficient = only(analysis, "efficiency_by_user")
    blocks: list[Block | None] = [
        _used(analysis, efficient),
        _months(analysis),
        Sentences("What to change", _changes(analysis), least=8),
        _requests(analysis),
        _idle(analysis),
        *_risk(analysis),
        briefly(analysis.warnings),
        Line("Details", f"gpuctl analyze STORE --user {clipped(user)} --table efficiency, smaller_requests", lines=2),
    ]
    first = overview.get("first_submit_ts")
    span = f"{day(first)} to {day(overview.get('last_ts'))} UTC" if first else ""
    title = f"GPU use of {clipped(user, 48)} on {clipped(analysis.cluster, 48)}"
    return Screen(title, span, tuple(block for block in blocks if block is not None), LINES, _notes(analysis))


def _notes(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    tables = (analysis.table(name) for name in ("efficiency_by_user", "smaller_requests"))
    found = [(column.name, column.description) for table in tables if table is not None for column in table.columns]
    return (*found, *(("Caveat", text) for text in analysis.warnings))


def _used(analysis: Analysis, efficient: Row) -> Figures:
    """Return hours held and lost, and the share used of each resource."""
    held = only(analysis, "users")
    items = [
        ("jobs", shown(held.get("jobs"))),
        ("GPU-hours held", shown(held.get("gpu_hours"), "GPU-h")),
        ("lost to failures and kills", _share(held.get("own_lost_pct"))),
    ]
    for label, column in (
        *(("GPU utilization", "gpu_util_mean"), ("CPU time used", "cpu_eff_pct"), ("memory used", "mem_eff_pct")),
        ("time limits used", "time_limit_pct"),
    ):
        items.append((label, _share(efficient.get(column))))
    if known(efficient.get("idle_gpu_h")):
        items.append(("idle", f"{number(efficient['idle_gpu_h'])} GPU-h"))
    return Figures(tuple(items))


def _share(value: object) -> str:
    return f"{shown(value, '%')} %" if known(value) else "not known"


def _months(analysis: Analysis) -> Grid | None:
    charged = [row for row in rows(analysis, "charges_by_user") if row["gpu_hours"]]
    if not charged:
        return None
    heads = [Head("Month", right=False), Head("GPU type", right=False), Head("held", "GPU-h"), Head("jobs")]
    priced = any(row["cost"] is not None for row in charged)
    cells = [
        (row["period"], clipped(row["gpu_type"]), shown(row["gpu_hours"], "GPU-h"), shown(row["jobs"]))
        + ((MISSING if row["cost"] is None else f"{row['cost']:,.2f}",) if priced else ())
        for row in sorted(charged, key=lambda row: row["period"], reverse=True)
    ]
    return Grid((*heads, Head("cost")) if priced else tuple(heads), tuple(cells[: 2 * _MONTHS]))


def _requests(analysis: Analysis) -> Grid | None:
    found = rows(analysis, "smaller_requests")
    heads = (
        Head("Request", right=False), Head("median"), Head("used, median"), Head("used, 95th pct"), Head("most used"),
        Head("enough"), Head("risk"), Head("jobs"),
    )  # fmt: skip
    cells = tuple(
        (
            row["resource"], _amount(row),
            *(_share(row[name]) for name in ("used_p50_pct", "used_p95_pct", "used_max_pct")),
            *(_share(row[name]) if known(row[name]) else MISSING for name in ("could_ask_pct", "risk_pct")),
            shown(row["jobs"]),
        )
        for row in found
    )  # fmt: skip
    return Grid(heads, cells) if cells else None


def _amount(row: Row) -> str:
    unit, amount = _UNITS[row["resource"]], shown(row["asked_p50"])
    return f"{amount} {unit[:-1] if amount == '1' and unit.endswith('s') else unit}"


def _risk(analysis: Analysis) -> list[Block | None]:
    """Return the meaning of the columns of `_requests`; empty without them."""
    if not rows(analysis, "smaller_requests"):
        return []
    meaning = "enough: the share of today's requests that would do; risk: that the next job, if like these, needs more"
    return [Line("Requests", meaning, lines=2)]


def _changes(analysis: Analysis) -> tuple[str, ...]:
    """Return the user's options for action, those that free most GPUs first."""
    found = []
    efficient = only(analysis, "efficiency_by_user")
    if efficient.get("gpus_unused"):
        jobs = [row for row in rows(analysis, "efficiency") if row["gpus_unused"]]
        jobs.sort(key=lambda row: (-row["gpus_unused"], str(row["job"])))
        worst = ", ".join(
            f"{clipped(row['job'])}: {shown(row['gpus_unused'])} of {shown(row['gpus'])}" for row in jobs[:3]
        )
        found.append(
            f"{count(efficient['gpus_unused'], 'GPU')} in {count(len(jobs), 'job')} did nothing ({worst}): request "
            "fewer, or make the program use all."
        )
    idle = [row for row in rows(analysis, "idle_nights") if row["night_idle_gpu_hours"] > 0]
    if idle:
        hours = sum(row["night_idle_gpu_hours"] for row in idle)
        worst = ", ".join(clipped(row["job"]) for row in idle[:3])
        batch = all(row["started_as"] == "batch" for row in idle)
        advice = "see whether they hang" if batch else "end sessions in the evening, or set a short time limit"
        found.append(
            f"{count(len(idle), 'job')} held GPUs at 0 % at night, for {number(hours)} GPU-h ({worst}): {advice}."
        )
    for row in rows(analysis, "smaller_requests"):
        if known(row["could_ask_pct"]) and row["could_ask_pct"] <= _SMALLER_PCT:
            resource = "time limits" if row["resource"] == "time limit" else row["resource"]
            found.append(
                f"Request {shown(row['could_ask_pct'], '%')} % of today's {resource} (median {_less(row)}): that frees "
                f"{number(row['freed'])} {_FREED[row['resource']]}; a job needs more with a probability of "
                f"{shown(row['risk_pct'], '%')} % ({count(row['jobs'], 'job')})."
            )
    lost = only(analysis, "users")
    if known(lost.get("own_lost_pct")) and lost["own_lost_pct"] >= 100 - _SMALLER_PCT:
        found.append(
            f"{number(lost['lost_gpu_hours'])} GPU-h ({_share(lost['own_lost_pct'])}) were lost to attempts without "
            "success: write checkpoints, and test with few GPUs first."
        )
    return tuple(found) or ("Nothing stands out in what is known.",)


def _less(row: Row) -> str:
    """The median request, and what it would become."""
    unit = _UNITS[row["resource"]]
    return f"{shown(row['asked_p50'] * row['could_ask_pct'] / 100)} in place of {shown(row['asked_p50'])} {unit}"


def _idle(analysis: Analysis) -> Grid | None:
    """Return the jobs with the most idle GPU-hours; empty without telemetry."""
    jobs = [row for row in rows(analysis, "efficiency") if known(row["idle_gpu_h"]) and row["idle_gpu_h"] > 0]
    jobs.sort(key=lambda row: (-row["idle_gpu_h"], str(row["job"])))
    heads = (
        Head("Most idle jobs", right=False),
        Head("GPUs"),
        Head("unused"),
        Head("utilization"),
        Head("idle", "GPU-h"),
    )
    cells = tuple(
        (
            clipped(row["job"]), shown(row["gpus"]), shown(row["gpus_unused"]), _share(row["gpu_util_mean"]),
            shown(row["idle_gpu_h"]),
        )
        for row in jobs[:_JOBS]
    )  # fmt: skip
    return Grid(heads, cells) if cells else None
