"""A tree distilled from a policy of a replay, as a result and as a saved folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.core.notes import NamedValue, literal, named, note
from gpuctl.predictors.results import analysis_of, finite
from gpuctl.replay.policies.tree.known import FEATURES
from gpuctl.research.learn.imitation import Decisions, Fidelity
from gpuctl.research.row_tables import Row, column
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


class FidelityRow(
    Row, name="tree_fidelity", section=SECTION, title="Fidelity to the teacher",
    question="How often does the tree choose as its teacher, where there is a choice?",
):  # fmt: skip
    """An order of candidates compared with the teacher's choices."""

    policy: str = column("-", "What orders the candidates; chance: any order alike.")
    decisions: int = column(
        "decisions", "Of the test part, with a choice: some candidates were chosen and some were not."
    )
    same_pct: float = column(
        "%",
        "Of the jobs that the teacher chose, the share that is among as many first ones of the order; mean over the "
        "decisions.",
    )
    exact_pct: float = column("%", "Share of the decisions in which all of them are.")


def result(
    teacher: str, tree: Tree, learnt: Decisions, tested: Decisions, found: Sequence[Fidelity], *,
    sources: tuple[SourceInfo, ...], command: str, preempts: bool, model: str,
) -> Analysis:  # fmt: skip
    """Assemble the result of a distillation."""
    population = note(
        "{decisions:,} decisions from second {at:.0f} on, after all that the tree was fitted to; {left:,} of all "
        "decisions had no choice.", decisions=tested.at.size, at=tested.at[0], left=learnt.left_out,
    )  # fmt: skip
    rows = [FidelityRow(each.policy, each.decisions, 100 * each.same, 100 * each.exact) for each in found]
    fidelity = FidelityRow.table(rows, population, (_verdict(found),))
    settings = {
        "teacher": named("policy", teacher),
        "fitted to": note(
            "{rows:,} row{rows||s} of {decisions:,} decisions before that second; one decision in {every} is kept",
            rows=len(learnt.rows), decisions=learnt.at.size, every=learnt.thinned,
        ),
        "run it with": note(
            "--policy tree --param tree.file={path}{more}", path=NamedValue("path", model),
            more=literal(" --param tree.preempt=true" if preempts else ""),
        ),
    }  # fmt: skip
    rules = rules_table(rules_of(tree, FEATURES), SECTION)
    return analysis_of(literal("a tree"), (fidelity, rules), settings, command, sources, warnings=())


def _verdict(found: Sequence[Fidelity]) -> Any:
    tree, *others = (each for each in found if each.policy != "chance")
    best = max(others, key=lambda each: each.same)
    if tree.same > best.same:
        return note(
            "The tree agrees with its teacher in {share:.1f} % of the choices, the best simple order ({best}) in "
            "{other:.1f} %.",
            share=100 * tree.same, best=literal(best.policy), other=100 * best.same,
        )  # fmt: skip
    return note(
        "The tree does not pay: a simple order ({best}) agrees with the teacher in {other:.1f} % of the choices, the "
        "tree in {share:.1f} %.", share=100 * tree.same, best=literal(best.policy), other=100 * best.same,
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
