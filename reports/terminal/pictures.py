"""Which picture stands below which table in a terminal, and how it is drawn.

A picture comes from a result table that is there anyhow, most often a detail table that a terminal does not print;
where that table is missing, empty or not as expected, there is no picture. Scale, unit and range are always written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpuctl.reports.stacked_columns import CAUSES, USES
from gpuctl.reports.terminal.picture import TOTAL, Rule, curves, draw, durations, rows_of
from gpuctl.reports.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpuctl.core.results import Analysis
    from gpuctl.reports.report import Part
    from gpuctl.reports.terminal.picture import Curves, Picture
    from gpuctl.reports.terminal.text_graphics import Signs

RESULTS = 6
"""So many results of a report get a picture of their own over time."""


def _named(columns: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((c, c.removesuffix("_gpu_h").removesuffix("_h").replace("_", " ")) for c in columns)


_OCCUPANCY = Rule(
    "time", "overview", "occupancy", "GPUs in use and attempts waiting over time",
    y=(("gpus_busy", "GPUs in use"), ("jobs_waiting", "waiting")), x="ts", limit="gpus_total", height=3,
)  # fmt: skip
_BUSY = Rule(
    "time", "replay_summary", "replay_timeline", "GPUs in use over time, by policy", y=(("gpus_busy", "GPUs"),),
    label="policy", head="policy", x="t_s", end="t_end_s", limit="gpus_available", unit="GPUs",
)  # fmt: skip
_JCT = Rule(
    "durations", "replay_summary", "replay_jct_cdf", "How long jobs took from submission to end (JCT), by policy",
    label="policy", head="policy", x="minutes", share="cdf_pct", zero="0 s", what="jobs",
)  # fmt: skip
_REPLAYED_WAITS = Rule(
    "durations", "replay_summary", "replay_wait_cdf", "How long jobs waited, by policy",
    label="policy", head="policy", x="minutes", share="cdf_pct", zero="at once", what="jobs",
)  # fmt: skip

RULES = (
    _OCCUPANCY,
    Rule(
        "durations", "runtime_by_size", "runtime_cdf", "How long jobs ran, by gang size",
        label="size_bucket", head="GPUs", x="minutes", share="cdf_pct", ranked=True, zero="0 s", what="runs",
    ),
    Rule(
        "durations", "wait_by_size", "waits", "How long attempts waited, by gang size",
        label="size_bucket", head="GPUs", x="wait_min", zero="at once", what="waits",
    ),
    Rule(
        "stacked", "delay_by_size", "delay_by_size", "What attempts waited for, by gang size",
        y=_named(CAUSES), label="size_bucket", head="GPUs", unit="h", what="hours",
    ),
    Rule(
        "stacked", "delay_by_queue", "delay_by_queue", "What attempts waited for, by queue",
        y=_named(CAUSES), label="queue", head="queue", unit="h", what="hours",
    ),
    Rule(
        "percent", "gpu_util_by_state", "gpu_util_cdf", "How busy GPUs were, by GPUs of the job",
        label="size", head="GPUs", x="util_pct", share="cdf_pct", zero="idle", what="GPU-minutes",
        where=(("state", TOTAL),),
    ),
    Rule(
        "percent", "host_util", "host_util_cdf", "How busy processors and memory were",
        label="measure", head="measure", x="util_pct", share="cdf_pct", zero="at 0 %", what="samples",
    ),
    Rule(
        "stacked", "gpu_hours_lost", "gpu_hours_lost", "What became of the GPU-hours, by gang size",
        y=_named(("succeeded_h", "retried_h", "killed_h", "failed_h", "other_h")),
        label="size_bucket", head="GPUs", unit="GPU-h", what="GPU-hours",
    ),
    _BUSY,
    Rule(
        "time", "replay_summary", "replay_timeline", "Jobs waiting over time, by policy",
        y=(("waiting_jobs", "jobs"),), label="policy", head="policy", x="t_s", end="t_end_s", unit="jobs",
    ),
    Rule(
        "stacked", "replay_summary", "replay_summary", "What the GPU-hours went into, by policy",
        y=_named(USES), label="policy", head="policy", unit="GPU-h", what="GPU-hours",
    ),
    _JCT,
    _REPLAYED_WAITS,
)  # fmt: skip
"""Every picture of analyses and replays, in the order that they stand below a table."""

_OVER_TIME = (_OCCUPANCY, _BUSY)
_SIDE_BY_SIDE = (
    (
        "How long was waited, by result",
        (Rule("durations", "", "waits", "", x="wait_min", zero="at once", what="waits"), _REPLAYED_WAITS),
    ),
    ("How long jobs took from submission to end (JCT), by result", (_JCT,)),
)


def drawn_from(names: Iterable[str]) -> list[str]:
    """The tables that the pictures below tables of these names are drawn from."""
    wanted = set(names)
    return [rule.table for rule in RULES if rule.beside in wanted]


def of_analysis(analysis: Analysis, names: Sequence[str], width: int, signs: Signs) -> dict[str, tuple[Picture, ...]]:
    """Draw the pictures of the registry that belong to tables that are printed.

    Args:
        analysis: where the tables are.
        names: of the tables that are printed.
        width: characters of a line.
        signs: to draw with.

    Returns:
        Pictures by the name of the table that they stand below.
    """
    found: dict[str, tuple[Picture, ...]] = {}
    for rule in RULES:
        table = analysis.table(rule.table)
        place = next((name for name in (rule.beside, rule.table) if name in names), None)
        if table is None or place is None:
            continue
        picture = draw(rule, table, width, signs)
        if picture is not None:
            found[place] = (*found.get(place, ()), picture)
    return found


def of_results(parts: Sequence[Part], names: Sequence[str], width: int, signs: Signs) -> dict[str, tuple[Picture, ...]]:
    """Draw what several results have in common on one axis, and each one's GPUs in use over time.

    Args:
        parts: the results of a report.
        names: of the tables that are printed; the pictures stand below ``metrics``.
        width: characters of a line.
        signs: to draw with.
    """
    if "metrics" not in names:
        return {}
    found = []
    for part in parts[:RESULTS]:
        for rule in _OVER_TIME:
            table = part.analysis.table(rule.table)
            picture = draw(rule, table, width, signs) if table is not None else None
            if picture is not None:
                name = f"{visible(part.label)}: " if len(parts) > 1 else ""
                found.append(replace(picture, title=f"{name}{picture.title}"))
    for title, rules in _SIDE_BY_SIDE:
        there = [rule for rule in rules if any(part.analysis.table(rule.table) is not None for part in parts)]
        if not there:
            continue
        groups = [group for part in parts for rule in there for group in _of_result(part, rule, alone=len(parts) == 1)]
        rule = replace(
            there[-1], title=title, head="result", what=" or ".join(dict.fromkeys(rule.what for rule in there))
        )
        picture = durations(rule, groups, width, signs, " and ".join(rule.table for rule in there))
        if picture is not None:
            found.append(picture)
    return {"metrics": tuple(found)} if found else {}


def _of_result(part: Part, rule: Rule, *, alone: bool) -> Curves:
    table = part.analysis.table(rule.table)
    frame = rows_of(rule, table) if table is not None else None
    if frame is None:
        return []
    label = visible(part.label)
    return [
        (name if name and alone else f"{label}: {name}" if name else label, points)
        for name, points in curves(rule, frame)
    ]
