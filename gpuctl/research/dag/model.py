"""A distilled tree: a folder with ``tree.json``, ``rules.txt`` and a card; or a file of rules alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.research.dag.features import AMOUNT, FEATURES, Limit, features_of
from gpuctl.trees import model as trees
from gpuctl.trees.rules import read_file, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpuctl.trees.model import Tree
    from gpuctl.trees.rules import Rules

KIND = "dag-tree"
REMARKS = (
    "Rules of which the first that holds counts: conditions -> weight that the teacher chose of all weight, rows.",
    "The candidate with the largest share gets executors; ties: the job with the least work left.",
    "To change them copy this file: edit shares (-> 35 %), write -> prefer or -> avoid, add and remove lines;",
    "then gpuctl dag simulate --policy tree:FILE.",
)


@dataclass(frozen=True)
class LoadedRules:
    """Rules to apply.

    Attributes:
        rules: the rules.
        limit: limit on the executors that they give.
        card: card of the folder; None: a file.
    """

    rules: Rules
    limit: Limit
    card: Mapping[str, Any] | None = None


def save(path: Path, tree: Tree, limit: Limit, about: Mapping[str, Any]) -> None:
    """Save a tree as a folder."""
    from gpuctl.predictors import card

    features = features_of(limit)
    files = {
        "tree.json": trees.json_of(tree, features),
        "rules.txt": text_of(trees.rules_of(tree, features), REMARKS),
    }
    card.save_folder(path, KIND, {**about, "limit": limit.value}, files)


def load(path: Path, limit: Limit | None = None) -> LoadedRules:
    """Load the rules of a folder, a tree's JSON file, or a text file.

    Args:
        path: of the folder or file.
        limit: limit on the executors that they give; None: as the folder records, ``fair`` for a file, ``tree`` if it
            uses the amount.

    Raises:
        InputError: it cannot be read.
        UsageError: its features are not those of the limit.
    """
    if path.is_dir():
        from gpuctl.predictors import card

        folder = card.load_folder(path, KIND)
        try:
            own = Limit(str(folder.card.get("limit")))
        except ValueError:
            raise InputError("names no limit: fair, all or tree", path=str(path / card.CARD)) from None
        return _of_json(folder.json("tree.json"), path / "tree.json", limit, own, folder.card)
    if path.suffix.lower() == ".json":
        data = read_whole(path, most=MOST_TABLE, hint="name a tree's JSON file")
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InputError(f"is not valid JSON: {str(error)[:200]}", path=str(path)) from None
        return _of_json(value, path, limit, None, None)
    rules = read_file(path, (*FEATURES, AMOUNT))
    return _checked(rules, limit, None, path, asks=_asks_amount(rules), card=None)


def _of_json(
    value: Any, path: Path, limit: Limit | None, own: Limit | None, card: Mapping[str, Any] | None
) -> LoadedRules:
    tree, names = trees.read_json(value, (*FEATURES, AMOUNT), str(path))
    rules = trees.rules_of(tree, (*FEATURES, AMOUNT))
    return _checked(rules, limit, own, path, asks=AMOUNT in names, card=card)


def _asks_amount(rules: Rules) -> bool:
    return any(c.feature == len(FEATURES) for rule in rules.rules for c in rule.conditions)


def _checked(
    rules: Rules, limit: Limit | None, own: Limit | None, path: Path, *, asks: bool, card: Mapping[str, Any] | None
) -> LoadedRules:
    chosen = limit or own or (Limit.TREE if asks else Limit.FAIR)
    if asks != (chosen is Limit.TREE):
        wants = "asks for the amount" if asks else "does not ask for the amount"
        raise UsageError(f"{path}: {wants}, and --limit is {chosen}", hint="--limit tree is for trees that ask for it")
    return LoadedRules(rules, chosen, card)
