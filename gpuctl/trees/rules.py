"""Rules over whole numbers as editable text; the first that holds applies.

A line is ``job_rank <= 0 and free > 2 -> 20 of 57 (35.1 %), 53 rows``: conditions, the weight of the rows that the
teacher chose, the weight of all rows, and their number. Written by hand, ``-> 35 %``, ``-> prefer`` and ``-> avoid``
suffice, and ``otherwise`` for no condition. Lines that begin with ``#`` are remarks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST_RULES = 4096
MOST_NUMBER = 10**15
"""Largest number in a condition, and weight: cross products of weights stay within 64 bits up to the square root of
2^62."""
MOST_WEIGHT = 10**9
_LOOKS = 200_000
"""Most parts of space checked for coverage by rules."""
_CONDITION = re.compile(r"(?P<name>[a-z][a-z0-9_]*)\s*(?P<op><=|>=|<|>|==?|≤|≥)\s*(?P<limit>-?[0-9]{1,16})")
_OF = re.compile(
    r"(?P<chosen>[0-9]{1,10})\s+of\s+(?P<all>[0-9]{1,10})(?:\s*\((?P<share>[0-9]{1,3}(?:\.[0-9]+)?)\s*%\))?"
    r"(?:\s*,\s*(?P<rows>[0-9]{1,10})\s+rows?)?"
)
_SHARE = re.compile(r"(?P<share>[0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_HINT = "a rule: job_rank <= 0 and free > 2 -> 35 %; or -> prefer, -> avoid; `otherwise -> 5 %` as the last one"


class Tier(IntEnum):
    """A rule's verdict on its candidate relative to all others."""

    AVOIDED = 0
    JUDGED = 1
    PREFERRED = 2


@dataclass(frozen=True)
class Condition:
    """``feature <= limit``, or ``feature > limit``.

    Attributes:
        feature: place among the features.
        above: whether it must be above the limit.
        limit: a whole number.
    """

    feature: int
    above: bool
    limit: int


@dataclass(frozen=True)
class Rule:
    """A verdict on candidates for which all conditions hold.

    Attributes:
        conditions: all of them must hold.
        tier: preferred to all, avoided, or judged by its share.
        chosen: weight of the rows that the teacher chose.
        other: weight of the others.
        rows: number of training rows; 0: written by hand.
    """

    conditions: tuple[Condition, ...]
    tier: Tier = Tier.JUDGED
    chosen: int = 0
    other: int = 0
    rows: int = 0

    @property
    def share(self) -> float:
        """Return the share of the weight that the teacher chose; 1 and 0 for preferred and avoided ones."""
        if self.tier is not Tier.JUDGED:
            return float(self.tier is Tier.PREFERRED)
        return self.chosen / (self.chosen + self.other)


@dataclass(frozen=True)
class Rules:
    """Rules in their order.

    Attributes:
        features: their names.
        rules: the first that holds applies; some rule holds for any features.
    """

    features: tuple[str, ...]
    rules: tuple[Rule, ...]

    def first(self, row: Sequence[int]) -> int:
        """Return the index of the first rule that holds for these features."""
        return next(
            k
            for k, rule in enumerate(self.rules)
            if all((row[c.feature] > c.limit) == c.above for c in rule.conditions)
        )


def rule_line(rule: Rule, features: Sequence[str]) -> str:
    """Return a rule as a line."""
    return f"{conditions_of(rule, features)} -> {_result(rule)}"


def conditions_of(rule: Rule, features: Sequence[str]) -> str:
    """Return the conditions as text."""
    texts = (f"{features[c.feature]} {'>' if c.above else '<='} {c.limit}" for c in rule.conditions)
    return " and ".join(texts) or "otherwise"


def _result(rule: Rule) -> str:
    if rule.tier is not Tier.JUDGED:
        return "prefer" if rule.tier is Tier.PREFERRED else "avoid"
    of = f"{rule.chosen} of {rule.chosen + rule.other} ({100 * rule.share:.1f} %)"
    return of + (f", {rule.rows} rows" if rule.rows else "")


def text_of(rules: Rules, remarks: Sequence[str] = ()) -> str:
    """Return all rules as text that `read_text` reads back as the same rules."""
    return "".join(
        f"{line}\n" for line in (*(f"# {r}" for r in remarks), *(rule_line(r, rules.features) for r in rules.rules))
    )


def read_file(path: Path, features: Sequence[str], *, whole: bool = True) -> Rules:
    """Read rules from a file of text.

    Args:
        path: of the file.
        features: names that conditions may use.
        whole: check that some rule holds for any features.

    Raises:
        InputError: it is not such a file; with the line.
    """
    try:
        text = read_whole(path, most=MOST_TABLE, hint=_HINT).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", path=str(path), hint=_HINT) from error
    return read_text(text, features, str(path), whole=whole)


def read_text(text: str, features: Sequence[str], place: str, *, whole: bool = True) -> Rules:
    """Read rules, one per line.

    Raises:
        InputError: a line is not a rule, or there is a case for which no rule holds.
    """
    found: list[Rule] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            try:
                found.append(_rule(stripped, features))
            except ValueError as error:
                raise InputError(str(error), path=place, line=number, hint=_HINT) from None
    if not found or len(found) > MOST_RULES:
        raise InputError(f"has {len(found):,} rules, expected 1 to {MOST_RULES:,}", path=place, hint=_HINT)
    rules = Rules(tuple(features), tuple(found))
    if whole:
        _check_whole(rules, place)
    return rules


def _rule(line: str, features: Sequence[str]) -> Rule:
    before, arrow, after = line.replace("→", "->").partition("->")
    if not arrow:
        raise ValueError(f"found {line[:80]!r}, expected conditions, ->, and a result")
    words = before.strip()
    conditions: list[Condition] = []
    if words not in {"otherwise", "always"}:
        for part in re.split(r"\s+and\s+", words):
            conditions += _conditions(part.strip(), features)
    result = after.strip()
    if result in {"prefer", "avoid"}:
        return Rule(tuple(conditions), Tier.PREFERRED if result == "prefer" else Tier.AVOIDED)
    if share := _SHARE.fullmatch(result):
        exact = Fraction(share["share"]) / 100
        if exact > 1:
            raise ValueError(f"found {result!r}, expected a share of at most 100 %")
        return Rule(tuple(conditions), chosen=exact.numerator, other=exact.denominator - exact.numerator)
    of = _OF.fullmatch(result)
    if of is None:
        raise ValueError(f"found {result[:60]!r} after ->, expected prefer, avoid, 35 % or 20 of 57")
    chosen, whole = int(of["chosen"]), int(of["all"])
    if not 0 <= chosen <= whole <= MOST_WEIGHT or whole == 0:
        raise ValueError(f"found {result[:60]!r}, expected A of B with A at most B, and B from 1 to {MOST_WEIGHT:,}")
    if of["share"] is not None and of["share"] != f"{100 * chosen / whole:.1f}":
        raise ValueError(f"{chosen} of {whole} is not {of['share']} %: leave one of them out")
    return Rule(tuple(conditions), chosen=chosen, other=whole - chosen, rows=int(of["rows"] or 0))


def _conditions(part: str, features: Sequence[str]) -> list[Condition]:
    found = _CONDITION.fullmatch(part)
    if found is None:
        raise ValueError(f"found {part[:60]!r}, expected a condition: {features[0]} <= 12")
    if found["name"] not in features:
        raise ValueError(f"there is no feature {found['name'][:40]}; there are {', '.join(features)}")
    place, limit = list(features).index(found["name"]), int(found["limit"])
    if abs(limit) > MOST_NUMBER:
        raise ValueError(f"{limit} is beyond {MOST_NUMBER:,}")
    match found["op"]:
        case "<=" | "≤":
            return [Condition(place, False, limit)]
        case "<":
            return [Condition(place, False, limit - 1)]
        case ">":
            return [Condition(place, True, limit)]
        case ">=" | "≥":
            return [Condition(place, True, limit - 1)]
        case _:
            return [Condition(place, True, limit - 1), Condition(place, False, limit)]


Box = dict[int, tuple[int, int]]
"""By feature, an exclusive lower and an inclusive upper bound; other features are unbounded."""


def _check_whole(rules: Rules, place: str) -> None:
    """Check that some rule holds everywhere.

    Raises:
        InputError: there is a case without one; the message shows it.
    """
    far = 4 * MOST_NUMBER
    boxes: list[tuple[Box, int]] = [({}, 0)]
    for _ in range(_LOOKS):
        if not boxes:
            return
        box, at = boxes.pop()
        while True:
            if at == len(rules.rules):
                raise InputError(
                    f"no rule holds for {_condition_text(box, rules.features, far)}", path=place,
                    hint="add a last line for all that is left: otherwise -> 5 %",
                )  # fmt: skip
            cut = _cut(rules.rules[at], box, far)
            if cut is None:
                break
            if cut.feature < 0:
                at += 1
                continue
            low, high = box.get(cut.feature, (-far, far))
            sides = [(low, cut.limit), (cut.limit, high)]
            # the side on which the condition does not hold needs another rule
            boxes.append((box | {cut.feature: sides[not cut.above]}, at + 1))
            box = box | {cut.feature: sides[cut.above]}
    raise InputError("has rules that cut space into too many parts", path=place, hint="add: otherwise -> 5 %")


_NEVER = Condition(-1, False, 0)


def _cut(rule: Rule, box: Box, far: int) -> Condition | None:
    """Return a condition that holds in a part of the box; None: all hold everywhere; `_NEVER`: some holds nowhere."""
    cut = None
    for c in rule.conditions:
        low, high = box.get(c.feature, (-far, far))
        if (c.limit >= high) if c.above else (c.limit <= low):
            return _NEVER
        if (c.limit > low) if c.above else (c.limit < high):
            cut = cut or c
    return cut


def _condition_text(box: Box, features: Sequence[str], far: int) -> str:
    parts = []
    for place, (low, high) in sorted(box.items()):
        if low > -far:
            parts.append(f"{features[place]} > {low}")
        if high < far:
            parts.append(f"{features[place]} <= {high}")
    return " and ".join(parts) or "any case"
