"""Counts in notes: one of a thing is in the singular, in every template there is."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from gpuctl.core.notes import Note, counted, fields, named, note
from gpuctl.queries.catalogue import built_in

ROOT = Path(__file__).parents[3]
ROOMS = ("gpuctl", "reports", "predictors", "queries")
_NOUNS = (
    "account|allocation|array|association|attempt|bar|case|cell|cluster|column|day|dependency|dependencie|feature|file|"
    "finding|gang|GPU|hour|job|line|machine|metric|minute|model|node|partition|part|period|place|queue|rack|record|"
    "replay|request|resample|result|round|row|sample|set|seed|server|service|size|slot|span|start|submission|suspension|task|"
    "time|trace|unit|user|value|wait|week"
)
_FEW = (
    r"(?!(?:in|of|at|over|to|less|with|without|a|by|the) )"
    rf"(?:(?!(?:{_NOUNS}|of|in)s? )[a-z]+ |array ){{0,2}}(?:{_NOUNS})"
)
"""What is counted, with up to two words before it: ``other failed job``."""
_VERBS = "are|were|have|do|run|wait|fit|fail|say|name|suit|ask|allow"
ONE = re.compile(rf"(?<!load )(?<![\w.,:-])1 {_FEW}s\b|(?<!of )(?<![\w.,:-])1 {_FEW} (?:{_VERBS})\b")
"""``1 jobs``, ``1 job have``."""
MANY = re.compile(
    rf"(?<![\w.,:-])2 {_FEW}\b(?!-| task)|(?<!of )(?<![\w.,:-])2 {_FEW}s (?:is|was|has|does|runs|waits|asks)\b"
)
"""``2 job``, ``2 jobs has``."""


@cache
def templates() -> list[tuple[str, str]]:
    """Every template, with where it is: those of calls of `note`, and the populations of our SQL."""
    found = [(f"queries/{name}.sql", one.population) for name, one in built_in().items()]
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "note" and node.args):
                    continue
                template = getattr(node.args[0], "value", None)
                if isinstance(template, str):
                    found.append((f"{path.relative_to(ROOT)}:{node.lineno}", template))
    return found


def filled(template: str, number: int) -> str:
    return note(template, **dict.fromkeys(fields(template), number))


def test_every_template_has_a_singular_and_a_plural() -> None:
    there = templates()
    assert len(there) > 400
    wrong = [
        f"{place}: {match[0]!r} of {template!r}"
        for place, template in there
        for number, pattern in ((1, ONE), (2, MANY))
        for match in pattern.finditer(filled(template, number))
    ]
    assert not wrong, "\n".join(wrong)


def test_forms_are_two() -> None:
    forms = [
        (place, name) for place, one in templates() for _, name, _, _ in Formatter().parse(one) if name and "|" in name
    ]
    assert forms
    assert not [one for one in forms if one[1].count("|") != 2]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1, "1 job has none"), (0, "0 jobs have none"), (1234, "1,234 jobs have none"),
    ],
)  # fmt: skip
def test_words_follow_the_number(value: int, said: str) -> None:
    assert note("{n:,} job{n||s} {n|has|have} none", n=value) == said


def test_words_follow_a_note_that_counts() -> None:
    assert note("{n} {n|was|were} left", n=counted(1, "row")) == "1 row was left"
    assert note("{n} {n|was|were} left", n=counted(1000, "row")) == "1,000 rows were left"
    assert note("{n} {n|was|were} left", n=Note("1,000")) == "1,000 were left"
    assert note("{n} {n|was|were} left", n=named("job", "1")).named[0].kind == "job"


def test_a_singular_that_is_missing_is_found() -> None:
    assert ONE.search(filled("{cut:,} jobs still ran", 1))
    assert ONE.search(filled("of {other:,} other job{other||s}: {n:,} job are left", 1))
    assert not ONE.search(filled("{cut:,} job{cut||s} still ran", 1))
    assert MANY.search(filled("{n:,} job{n||} ran", 2))
