"""Rules as a result table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.notes import counted
from gpuctl.core.results import Column, ResultTable
from gpuctl.trees.rules import Tier, conditions_of

if TYPE_CHECKING:
    from gpuctl.trees.rules import Rules

COLUMNS = (
    Column("rule", "-", "Its number: the first that holds counts."),
    Column("conditions", "-", "What must hold of a candidate."),
    Column("says", "-", "prefer, avoid, or share: the candidate with the largest share is chosen."),
    Column("share_pct", "%", "Share of the weight of such rows that the teacher chose."),
    Column("rows", "rows", "Rows of the training; empty: written by hand."),
)
_SAYS = {Tier.PREFERRED: "prefer", Tier.AVOIDED: "avoid", Tier.JUDGED: "share"}


def rules_table(rules: Rules, section: str) -> ResultTable:
    """Return the rules as a table.

    Args:
        rules: in their order.
        section: section of the result.
    """
    each = rules.rules
    frame = pl.DataFrame(
        {
            "rule": range(1, len(each) + 1),
            "conditions": [conditions_of(rule, rules.features) for rule in each],
            "says": [_SAYS[rule.tier] for rule in each],
            "share_pct": [100 * rule.share if rule.tier is Tier.JUDGED else None for rule in each],
            "rows": [rule.rows or None for rule in each],
        },
        schema={
            "rule": pl.Int64,
            "conditions": pl.String,
            "says": pl.String,
            "share_pct": pl.Float64,
            "rows": pl.Int64,
        },
    )
    return ResultTable(
        name="rules", section=section, title="Rules", columns=COLUMNS, frame=frame, notes=(),
        question="What are the rules of the tree?", population=counted(len(each), "rule"),
    )  # fmt: skip
