"""No pattern of the program takes quadratic time: text of logs is hostile, and a name may have 40,000 characters.

Each pattern is tried in the ways in which its module uses it, on long runs of what may fit it over and over.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORT, LONG = 1_500, 12_000
SLOW_S = 0.02
"""Quicker than this for a long run is quick enough."""
RUNS = (
    *("a", "0", "a0", "0a", " ", "\t", "[", "a[", "[0-9]", ",", '"', "\\", "(", "=", "a=", "a ", "-", "_", ".", "a."),
    *("a-", "/", "a/", "\n", ":", "0:", "{", "a,", "0.", "0,", "<", "'", "\n ", " \n"),
)
WHOLE = frozenset({"match", "fullmatch"})
ANYWHERE = frozenset({"search", "sub", "subn", "split", "finditer", "findall"})
PACKAGES = ("gpuctl.core", "gpuctl.slurm", "gpuctl.ingest", "gpuctl.joblogs", "gpuctl.store", "gpuctl.reports")
"""Those that read what others wrote, or write it out."""


def modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for place in package.__path__:
            for file in sorted(Path(place).rglob("*.py")):
                parts = (*name.split("."), *file.relative_to(place).with_suffix("").parts)
                yield importlib.import_module(".".join(part for part in parts if part != "__init__"))


def uses(module: ModuleType) -> dict[str, set[str]]:
    """How a module uses each of its names that hold patterns."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Attribute) and node.attr in WHOLE | ANYWHERE and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


def patterns() -> Iterator[tuple[str, re.Pattern[Any], str]]:
    seen = set()
    for module in modules():
        for name, how in uses(module).items():
            held = getattr(module, name, None)
            if isinstance(held, re.Pattern):
                for each in sorted({"search" if one in ANYWHERE else one for one in how}):
                    if (held, each) not in seen:
                        seen.add((held, each))
                        yield f"{module.__name__}.{name}", held, each


def seconds(pattern: re.Pattern[Any], how: str, text: str) -> float:
    data: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    before = time.process_time()
    getattr(pattern, how)(data)
    return time.process_time() - before


PATTERNS = list(patterns())


def test_there_are_patterns() -> None:
    assert len(PATTERNS) > 100


@pytest.mark.parametrize(("name", "pattern", "how"), PATTERNS, ids=[f"{name} {how}" for name, _, how in PATTERNS])
def test_a_long_run_takes_time_in_proportion_to_its_length(name: str, pattern: re.Pattern[Any], how: str) -> None:
    slow = []
    for run in RUNS:
        long = seconds(pattern, how, (run * LONG)[:LONG] + "\0!")
        if long < SLOW_S:
            continue
        short = min(seconds(pattern, how, (run * SHORT)[:SHORT] + "\0!") for _ in range(3))
        # eight times the length: linear is 8 times the time, quadratic 64 times
        if min(long, seconds(pattern, how, (run * LONG)[:LONG] + "\0!")) > 24 * max(short, 1e-4):
            slow.append((run, round(long, 3)))
    assert not slow, f"{name}: {pattern.pattern!r}"


def test_a_name_of_40_000_characters_is_read_at_once() -> None:
    from gpuctl.slurm.conf import _WORD
    from gpuctl.slurm.hostlist import expand

    before = time.process_time()
    assert expand("n" * 40_000) == ["n" * 40_000]
    assert len(expand("n" * 40_000 + "[1-3]")) == 3
    assert [word[1] for word in _WORD.finditer("a" * 40_000 + " b=1")] == ["b"]
    assert time.process_time() - before < 1
