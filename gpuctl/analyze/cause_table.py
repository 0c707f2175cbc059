"""Makes ``base_cause_ranges`` and ``base_delay_settings``: the range of each cause, and the rules considered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze import delays
from gpuctl.analyze.racks import Gangs
from gpuctl.core.causes import CAUSES
from gpuctl.core.notes import note

if TYPE_CHECKING:
    from gpuctl.analyze.delay_ranges import Ranges
    from gpuctl.analyze.scheduler_rules import LayoutFit, Rules
    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store

UNEXPLAINED = 0.05
"""Unexplained share of the waiting time above which to warn."""
UNSURE = 0.2
"""Width of a cause's range, as a share of the waiting time, above which to warn."""
SHOWN = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Borrowing rules shown for every guess at the racks, whether good or not."""
RANGES = {"cause": pl.String, "low_s": pl.Float64, "high_s": pl.Float64}
SETTINGS = {
    "racks_by": pl.String, "racks": pl.Int64, "borrow_pct": pl.Float64, "one_rack_s": pl.Float64,
    "any_rack_s": pl.Float64, "unexplained_s": pl.Float64, "forbidden_starts": pl.Float64, "lost_pct": pl.Float64,
    "as_good": pl.Boolean, "used": pl.Boolean, "fair_share_low_s": pl.Float64, "fair_share_high_s": pl.Float64,
}  # fmt: skip


def gangs_of(waited: pl.DataFrame, waits: delays.Waits, shared: pl.DataFrame, machines: pl.DataFrame) -> Gangs:
    """Return the multi-node gangs of attempts with a known wait; nodes are numbered as `machines`."""
    rows = waited.select("number", "gpus", "largest").with_columns(
        pl.Series("waited", waits.start - waits.queued, pl.Float64)
    )
    rows = rows.join(shared, on="number").sort("waited", "number")
    spread = rows["machines"].list.len() > (rows["gpus"] / rows["largest"]).ceil()
    number = {name: node for node, name in enumerate(machines["machine"].to_list())}
    nodes = tuple(np.array([number[name] for name in names], np.int64) for names in rows["machines"].to_list())
    return Gangs(nodes, rows["waited"].to_numpy(), spread.to_numpy())


def build(store: Store, found: Ranges, rules: Rules | None) -> None:
    """Create ``base_cause_ranges`` and ``base_delay_settings``; without `rules` nothing was inferred."""
    ends = zip(CAUSES, found.total_low.tolist(), found.total_high.tolist(), strict=True)
    ranges = list(ends)
    settings = [] if rules is None else [row for one in rules.considered for row in _rows(one, rules)]
    for name, rows, schema in (("cause_ranges", ranges, RANGES), ("delay_settings", settings, SETTINGS)):
        store.keep(f"base_{name}", pl.DataFrame(rows, schema=schema, orient="row"))


def _rows(one: LayoutFit, rules: Rules) -> list[tuple[object, ...]]:
    good = np.flatnonzero(one.lost <= rules.good)
    ends = [int(good[0]), int(good[-1])] if good.size else []
    shown = {int(np.abs(one.busy - share * rules.total).argmin()) for share in SHOWN}
    mine = one.layout is rules.layout
    used = int(np.abs(one.busy - int(rules.borrow_below * rules.total)).argmin()) if mine else -1
    picked = sorted({*(shown if mine else ()), int(one.lost.argmin()), *ends, *([used] if mine else [])})
    racks = one.layout.nodes.rack
    alone = int((racks < 0).sum())
    return [
        (
            one.layout.name, int(np.unique(racks[racks >= 0]).size) + alone, 100 * float(one.busy[k]) / rules.total,
            *(seconds if np.isfinite(seconds) else None for seconds in one.layout.relax), float(one.waits[k]),
            float(one.starts[k]), 100 * float(one.lost[k]) / max(1.0, rules.waited), bool(one.lost[k] <= rules.good),
            k == used, float(one.causes[k, :, 0].min()), float(one.causes[k, :, 0].max()),
        )
        for k in picked
    ]  # fmt: skip


def warnings(rules: Rules) -> list[Note]:
    """Return caveats on the certainty of the causes."""
    notes = []
    share = rules.best / rules.waited if rules.waited else 0.0
    if share > UNEXPLAINED:
        notes.append(
            note(
                "no quotas and no rule of borrowing explain {share:.0%} of the waiting time (delay_settings), so "
                "rules missing from the log apply. Give quotas with --quotas; for the reliability of causes, see "
                "docs/reference/analyses/delays.md",
                share=share,
            )
        )
    width = float((rules.high - rules.low).max()) / rules.waited if rules.waited else 0.0
    if width > UNSURE:
        low, high = (100 * ends[0] / rules.waited for ends in (rules.low, rules.high))
        notes.append(
            note(
                "settings that explain the log about equally well put fair share between {low:.0f} and {high:.0f} % "
                "of the waiting time (delay_causes)."
                " Give what you know with --quotas, --racks and --borrow-below",
                low=low,
                high=high,
            )
        )
    return notes
