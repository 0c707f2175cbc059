"""The screen of ``gpuctl deferrable simulate``: completed work, waits, and the cost of evictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.numbers import MISSING, number
from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Grid, Head, Line, Screen, Sentences, Strip, Strips
from gpuctl.reports.screens.words import ORACLE, briefly, clipped, known, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import Analysis, Column
    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.screens.words import Row

LINES = 25
"""The screen has no more lines."""


def screen(analysis: Analysis) -> Screen:
    """Return the screen."""
    policies = rows(analysis, "deferrable")
    best = _best(policies)
    oracles = [clipped(row["policy"], 20) for row in policies if row["oracle"]]
    blocks: list[Block | None] = [
        Sentences("How much fits, and how long it waits", _answer(policies, best), least=2),
        _policies(policies),
        _strips(analysis, best),
        Line(f"{ORACLE} oracle", f"{', '.join(oracles)} knew later load, as no scheduler does: an upper bound")
        if oracles
        else None,
        briefly(analysis.warnings),
        Line("Next", "--policy quantile:50,osdec:MODEL,optimum, --table deferrable, --csv DIR"),
    ]
    title = f"{clipped(analysis.cluster, 48)}: deferrable jobs in the capacity that on-demand jobs leave"
    subtitle = f"{analysis.settings['slots']}, {analysis.settings['GPUs']} GPUs"
    notes = [(column.name, column.description) for column in _columns(analysis)]
    notes += [(f"Setting: {key}", value) for key, value in analysis.settings.items()]
    notes += [("Caveat", text) for text in analysis.warnings]
    return Screen(title, subtitle, tuple(block for block in blocks if block is not None), LINES, tuple(notes))


def _columns(analysis: Analysis) -> Sequence[Column]:
    table = analysis.table("deferrable")
    return () if table is None else table.columns


def _best(policies: Sequence[Row]) -> Row | None:
    """Return the policy with the highest score among those that a scheduler can use; else among all."""
    scored = [row for row in policies if known(row["score"])]
    usable = [row for row in scored if not row["oracle"]] or scored
    return max(usable, key=lambda row: row["score"], default=None)


def _answer(policies: Sequence[Row], best: Row | None) -> tuple[str, ...]:
    if best is None:
        return ("There are no deferrable jobs.",)
    share = 100 * best["done"] / best["jobs"]
    wait = "" if best["mean_wait_h"] is None else f", after a mean wait of {number(best['mean_wait_h'])} h"
    found = [
        f"{clipped(best['policy'])}: {best['done']:,} of {best['jobs']:,} jobs ({shown(share, '%')} %) run to their end"
        f"{wait}: {number(best['useful_gpu_h'])} GPU-h."
    ]
    lost = best["lost_gpu_h"]
    used = (
        ""
        if best["utilization_pct"] is None
        else f"{shown(best['utilization_pct'], '%')} % of the leftover capacity is used; "
    )
    found.append(f"{used}{best['evictions']:,} evictions lose a further {number(lost)} GPU-h.")
    bound = max((row["score"] for row in policies if row["oracle"] and known(row["score"])), default=None)
    if bound is not None and not best["oracle"]:
        found.append(f"Score {number(best['score'])}, of {number(bound)} with later load known.")
    return tuple(found)


def _policies(policies: Sequence[Row]) -> Grid:
    heads = (
        Head("Policy", right=False), Head("done"), Head("wait", "h"), Head("lost", "GPU-h"), Head("evictions"),
        Head("util %"), Head("score"), Head("p95", "h"), Head("useful", "GPU-h"),
    )  # fmt: skip

    def cell(value: object) -> str:
        return number(value) if known(value) else MISSING

    cells = tuple(
        (
            clipped(row["policy"], 20) + (ORACLE if row["oracle"] else ""), shown(row["done"]),
            cell(row["mean_wait_h"]), cell(row["lost_gpu_h"]), shown(row["evictions"]),
            shown(row["utilization_pct"], "%"), cell(row["score"]), cell(row["p95_wait_h"]), cell(row["useful_gpu_h"]),
        )
        for row in policies
    )  # fmt: skip
    return Grid(heads, cells, "... and {count} more: --table deferrable", least=4)


def _strips(analysis: Analysis, best: Row | None) -> Strips | None:
    """Return leftover GPUs, and those in use under the best policy."""
    points = [row for row in rows(analysis, "deferrable_load") if best is not None and row["policy"] == best["policy"]]
    top = max((row["leftover_gpus"] for row in points), default=0)
    if len(points) < 2 or top <= 0:
        return None
    begins = [3600 * row["hours"] for row in points]
    ends = [*begins[1:], 2 * begins[-1] - begins[-2]]
    strips = tuple(
        Strip(
            label, tuple(zip(begins, ends, (row[name] for row in points), strict=True)), top,
            f"max {number(max(row[name] for row in points))} GPUs",
        )
        for label, name in (("Leftover GPUs", "leftover_gpus"), ("Deferrable jobs", "used_gpus"))
    )  # fmt: skip
    return Strips(strips, begins[0], ends[-1], calendar=False)
