"""A decision tree as nodes, and as JSON: ``{"features": [...], "tree": {"f": 3, "t": 0, "lo": ..., "hi": ...}}``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError
from gpuctl.trees.rules import MOST_NUMBER, MOST_RULES, MOST_WEIGHT, Condition, Rule, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_DEPTH = 64
_HINT = (
    'expected {"features": [names], "tree": {"f": feature, "t": limit, "lo": tree, "hi": tree}}; leaves: pos, neg, n'
)


@dataclass(frozen=True)
class Leaf:
    """Rows with the same result.

    Attributes:
        chosen: weight of the rows that the teacher chose.
        other: weight of the others.
        rows: their number.
    """

    chosen: int
    other: int
    rows: int


@dataclass(frozen=True)
class Split:
    """A question: is the feature at most the limit?

    Attributes:
        feature: place among the features.
        limit: of the feature.
        low: branch for at most the limit.
        high: branch for above.
    """

    feature: int
    limit: int
    low: Tree
    high: Tree


Tree = Leaf | Split


def rules_of(tree: Tree, features: Sequence[str]) -> Rules:
    """Return the leaves as rules, the low side first."""
    return Rules(tuple(features), tuple(_leaves(tree, ())))


def _leaves(tree: Tree, before: tuple[Condition, ...]) -> Iterator[Rule]:
    if isinstance(tree, Leaf):
        yield Rule(_tightest(before), chosen=tree.chosen, other=tree.other, rows=tree.rows)
        return
    yield from _leaves(tree.low, (*before, Condition(tree.feature, False, tree.limit)))
    yield from _leaves(tree.high, (*before, Condition(tree.feature, True, tree.limit)))


def _tightest(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Keep the strictest condition of each feature and side."""
    strictest: dict[tuple[int, bool], Condition] = {}
    for one in conditions:
        other = strictest.setdefault((one.feature, one.above), one)
        if (one.limit > other.limit) == one.above and one.limit != other.limit:
            strictest[one.feature, one.above] = one
    return tuple(strictest.values())


def json_of(tree: Tree, features: Sequence[str]) -> dict[str, Any]:
    """Return the value of a tree's JSON file."""
    return {"features": list(features), "tree": _value(tree)}


def _value(tree: Tree) -> dict[str, Any]:
    if isinstance(tree, Leaf):
        return {"pos": tree.chosen, "neg": tree.other, "n": tree.rows}
    return {"f": tree.feature, "t": tree.limit, "lo": _value(tree.low), "hi": _value(tree.high)}


def read_json(value: Any, features: Sequence[str], place: str) -> tuple[Tree, tuple[str, ...]]:
    """Return the tree of a JSON file, with features as indices into `features`, and the names it uses.

    Args:
        value: of the file.
        features: known names.
        place: of the file, for errors.

    Raises:
        InputError: it is not such a tree.
    """
    names = value.get("features") if isinstance(value, dict) else None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InputError("has no list of features", path=place, hint=_HINT)
    unknown = [name for name in names if name not in features]
    if unknown or len(set(names)) < len(names):
        what = f"there is no feature {unknown[0][:40]!r}" if unknown else "names a feature twice"
        raise InputError(f"{what}; there are {', '.join(features)}", path=place, hint=_HINT)
    try:
        tree = _tree(value.get("tree"), [list(features).index(name) for name in names], 0, [0])
    except ValueError as error:
        raise InputError(str(error), path=place, hint=_HINT) from None
    return tree, tuple(names)


def _tree(value: Any, places: list[int], depth: int, leaves: list[int]) -> Tree:
    if depth > MOST_DEPTH:
        raise ValueError(f"is deeper than {MOST_DEPTH}")
    if not isinstance(value, dict):
        raise ValueError("has an element that is not a tree")
    if "pos" in value:
        leaves[0] += 1
        if leaves[0] > MOST_RULES:
            raise ValueError(f"has more than {MOST_RULES:,} leaves")
        chosen, other, rows = (_whole(value.get(key), key, 0, MOST_WEIGHT) for key in ("pos", "neg", "n"))
        if not 0 < chosen + other <= MOST_WEIGHT:
            raise ValueError(f"has a leaf with pos {chosen} and neg {other}: expected a weight")
        return Leaf(chosen, other, rows)
    feature = places[_whole(value.get("f"), "f", 0, len(places) - 1)]
    limit = _whole(value.get("t"), "t", -MOST_NUMBER, MOST_NUMBER)
    return Split(
        feature, limit, _tree(value.get("lo"), places, depth + 1, leaves),
        _tree(value.get("hi"), places, depth + 1, leaves),
    )  # fmt: skip


def _whole(value: Any, key: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{key}: found {str(value)[:40]}, expected a whole number from {least} to {most}")
    return value
