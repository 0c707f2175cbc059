"""Phrases that no native speaker would write stay out of what users read: help, messages, notes, SQL, documents."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
IDIOMS = re.compile(
    r"\bso many (?!that\b)|\bgo(?:es)? by (?!itself|unnoticed)|\bgone by\b|what it is for\b|\bdraws? lots\b|\bby lot\b"
    r"|\bwhoever\b(?! fits)|\bas it stands\b|(?<!too short to )(?<!too few to )\btells?\b"
    r"|(?<!not )(?<![{_])\btold\b(?!_by| true run times\b)"
    r"|\bis there (?:twice|already|more than once)\b|\bthere is no such\b|\bhave it that\b|\bwhyever\b"
    r"|\banew\b|\bthat can(?:not)? be printed\b|\bmiss(?:es)? (?:a|the) column|\bmay not be written to\b"
    r"|\bcalls? [\w ]+ otherwise\b|\bcom(?:es?|ing) forward\b|\bat most so (?:long|many)\b|\breckons?\b"
    r"|\bis no (?:JSON|CSV|TOML|XML|UTF|number|text|list|time|whole)",
    re.IGNORECASE,
)
_SQL = re.compile(r"\b(?:SELECT|UPDATE|WHERE|JOIN|INSERT)\b")
ROOMS = ("gpuctl", "reports", "predictors", "queries")


def _texts(path: Path) -> list[tuple[int, str]]:
    """The strings of a module that are no docstring, each with its line."""
    tree = ast.parse(path.read_text("utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare
        if " " in node.value and not _SQL.search(node.value)
    ]


def _found(path: Path) -> list[str]:
    if path.suffix == ".py":
        lines = _texts(path)
    else:
        text = path.read_text("utf-8")
        code = re.sub(r"```.*?```|`[^`]*`", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
        lines = list(enumerate(code.split("\n"), 1))
        if path.suffix == ".sql":
            lines = [(number, line) for number, line in lines if re.match(r"-- \w+:", line)]
    return [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}" for number, line in lines for match in IDIOMS.finditer(line)
    ]


@pytest.mark.parametrize("room", [*ROOMS, "docs"])
def test_user_text_has_no_private_idioms(room: str) -> None:
    kinds = {".md"} if room == "docs" else {".py", ".sql"}
    files = [path for path in sorted((ROOT / room).rglob("*")) if path.suffix in kinds]
    files += [ROOT / "README.md"] if room == "docs" else []
    assert files
    assert not [found for path in files for found in _found(path)]


def _numbers_by_a_rule_of_their_own(path: Path) -> list[str]:
    """Notes with a number in a format such as ``:g``, where `gpuctl.core.numbers` should say how it is written."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.args[0].value}"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "note" and node.args
        if isinstance(node.args[0], ast.Constant) and re.search(r"\{\w+:[^}]*g\}", node.args[0].value)
    ]


def test_notes_write_numbers_by_the_one_rule() -> None:
    # as the user gave them: options, and a setting that is one
    given = {"core/job_filter.py", "analyze/run.py", "doctor/run.py", "research/dag/tables.py", "lessons/early.py"}
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    found = [line for path in files for line in _numbers_by_a_rule_of_their_own(path)]
    assert not [line for line in found if line.split(":")[0].removeprefix("gpuctl/") not in given]
    assert found


def test_an_idiom_is_found() -> None:
    assert IDIOMS.search("Told because: the interval holds no 0")
    assert IDIOMS.search("Stop after so many seconds")
    assert not IDIOMS.search("so many that none is left; the value 'not told'")
