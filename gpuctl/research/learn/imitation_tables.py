"""A tree distilled from a policy of a replay, as a result and as a saved folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.notes import Named, named, note, ours
from gpuctl.core.results import Column, ResultTable
from gpuctl.predictors.results import analysis_of, finite
from gpuctl.replay.policies.tree.known import FEATURES
from gpuctl.research.learn.imitation import Decisions, Fidelity
from gpuctl.trees.model import json_of, rules_of
from gpuctl.trees.rules import text_of
from gpuctl.trees.tables import rules_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuctl.core.results import Analysis, SourceInfo
    from gpuctl.trees.model import Tree

KIND = "replay-tree"
SECTION = "tree"
TABLES = ("tree_fidelity", "rules")
REMARKS = (
    "Rules for the policy tree of gpuctl replay; the first that holds counts: conditions -> weight of the rows that",
    "the teacher chose of all weight, rows. Candidates with larger shares run first; ties: in the order of submission.",
    "To change them copy this file: edit shares (-> 35 %), write -> prefer or -> avoid, add and remove lines.",
)
COLUMNS = (
    Column("policy", "-", "What orders the candidates; chance: any order alike."),
    Column("decisions", "decisions", "Of the test part, with a choice: some candidates were chosen and some were not."),
    Column("same_pct", "%", "Of the jobs that the teacher chose, the share that is among as many first ones of the "
           "order; mean over the decisions."),
    Column("exact_pct", "%", "Share of the decisions in which all of them are."),
)  # fmt: skip


def result(
    teacher: str, tree: Tree, learnt: Decisions, tested: Decisions, found: Sequence[Fidelity], *,
    sources: tuple[SourceInfo, ...], command: str, preempts: bool, model: str,
) -> Analysis:  # fmt: skip
    """Put a distillation together as a result."""
    frame = pl.DataFrame(
        [(each.policy, each.decisions, 100 * each.same, finite(100 * each.exact)) for each in found],
        schema={c.name: pl.Float64 if c.unit == "%" else pl.String if c.unit == "-" else pl.Int64 for c in COLUMNS},
        orient="row",
    )
    population = note(
        "{decisions:,} decisions from second {at:.0f} on, after all that the tree was fitted to; {left:,} of all "
        "decisions had no choice.", decisions=tested.at.size, at=tested.at[0], left=learnt.left_out,
    )  # fmt: skip
    fidelity = ResultTable(
        name="tree_fidelity", section=SECTION, title="Fidelity to the teacher", columns=COLUMNS, frame=frame,
        question="How often does the tree choose as its teacher, where there is a choice?", population=population,
        notes=(_verdict(found),),
    )  # fmt: skip
    settings = {
        "teacher": named("policy", teacher),
        "fitted to": note(
            "{rows:,} row{rows||s} of {decisions:,} decisions before that second; one decision in {every} is kept",
            rows=len(learnt.rows), decisions=learnt.at.size, every=learnt.thinned,
        ),
        "run it with": note(
            "--policy tree --param tree.file={path}{more}", path=Named("path", model),
            more=ours(" --param tree.preempt=true" if preempts else ""),
        ),
    }  # fmt: skip
    rules = rules_table(rules_of(tree, FEATURES), SECTION)
    return analysis_of(ours("a tree"), (fidelity, rules), settings, command, sources, warnings=())


def _verdict(found: Sequence[Fidelity]) -> Any:
    tree, *others = (each for each in found if each.policy != "chance")
    best = max(others, key=lambda each: each.same)
    if tree.same > best.same:
        return note(
            "The tree agrees with its teacher in {share:.1f} % of the choices, the best simple order ({best}) in "
            "{other:.1f} %.",
            share=100 * tree.same, best=ours(best.policy), other=100 * best.same,
        )  # fmt: skip
    return note(
        "The tree does not pay: a simple order ({best}) agrees with the teacher in {other:.1f} % of the choices, the "
        "tree in {share:.1f} %.", share=100 * tree.same, best=ours(best.policy), other=100 * best.same,
    )  # fmt: skip


def save(path: Path, teacher: str, tree: Tree, learnt: Decisions, found: Sequence[Fidelity], *, preempts: bool) -> None:
    """Save the tree with a card; the same training gives the same bytes."""
    from gpuctl.predictors import card

    about = {
        "title": f"A tree that orders jobs as {teacher} does",
        "what": "Distilled by gpuctl train tree from a replay; rules.txt is what the policy tree runs.",
        "teacher": teacher,
        "preempt": preempts,
        "decisions": int(learnt.at.size),
        "rows": len(learnt.rows),
        "fidelity": [
            {"policy": f.policy, "decisions": f.decisions, "same": f.same, "exact": finite(f.exact)} for f in found
        ],
    }
    files = {"tree.json": json_of(tree, FEATURES), "rules.txt": text_of(rules_of(tree, FEATURES), REMARKS)}
    card.save_folder(path, KIND, about, files)
