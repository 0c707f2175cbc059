"""Guards on who imports what, and when: the rooms' layers, fast start-up, no module under two names."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import networkx

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOMS = ("gpuctl", "queries", "predictors", "reports")


def sources(root: Path) -> Iterator[Path]:
    for room in ROOMS:
        yield from sorted((root / room).rglob("*.py"))


def test_core_imports_the_standard_library_only(root: Path) -> None:
    allowed = sys.stdlib_module_names | {"gpuctl"}
    found = [
        f"{path.relative_to(root)}:{node.lineno}: {name}"
        for path in sorted((root / "gpuctl" / "core").rglob("*.py"))
        for node, name in imports_at_run_time(ast.parse(path.read_text("utf-8")))
        if name.partition(".")[0] not in allowed
    ]
    assert found == []


def imports_at_run_time(tree: ast.AST, *, functions: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """Every import statement but for those under ``if TYPE_CHECKING`` and, if so wished, those within functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node, node.module or ""
        if functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports_at_run_time(node, functions=functions)


def test_every_module_can_be_imported_alone(root: Path) -> None:
    """What works only after another was imported is part of a circle, which no order of imports needs to show.

    A circle through the package that a module lies in is no arrow here: that package is always imported before it, so
    that one import of all shows it.
    """
    paths = {module_name(path, root): path for path in sources(root)}
    arrows = networkx.DiGraph()
    for name, path in paths.items():
        for node, told in imports_at_run_time(ast.parse(path.read_text("utf-8")), functions=False):
            parts = [f"{told}.{each.name}" for each in node.names] if isinstance(node, ast.ImportFrom) else [told]
            for part in parts:
                # what it lies in is imported before it
                arrows.add_edges_from((name, each) for each in (within(part) - within(name)) & paths.keys())
    assert arrows.number_of_edges() > len(paths)
    assert [sorted(some) for some in networkx.strongly_connected_components(arrows) if len(some) > 1] == []
    program = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\n"
    names = [name for name, path in paths.items() if path.name != "__main__.py"]
    done = subprocess.run(
        [sys.executable, "-c", program, *names], cwd=root, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr


def within(name: str) -> set[str]:
    """A module and the packages that it lies in."""
    return {name.rsplit(".", cut)[0] for cut in range(name.count(".") + 1)}


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(part for part in ("gpuctl", *(parts if parts[0] != "gpuctl" else parts[1:])) if part != "__init__")


def test_no_module_is_imported_under_its_bare_name(root: Path) -> None:
    """The rule that keeps ``import reports`` out is on, and fires."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--output-format=concise", "--stdin-filename=gpuctl/x.py", "-"],
        input='"""X."""\n\nimport queries.x\nfrom reports import html\n\nimport click\n',
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.count("TID251") == 3, done.stdout


PLANTED = (
    ("gpuctl/store/planted.py", "gpuctl.ingest.core.format", "Rooms import only the rooms below them"),
    ("reports/planted.py", "gpuctl.store.database", "Reports know results"),
    ("predictors/planted.py", "gpuctl.ingest.core.format", "Nothing downstream of the store knows a log format"),
    ("gpuctl/replay/models/planted.py", "gpuctl.replay.engine.state", "Inside replay no arrow goes up"),
    ("gpuctl/ingest/core/planted.py", "gpuctl.ingest.read.files", "Inside ingest no arrow goes up"),
    ("gpuctl/replay/contract/waiting.py", "gpuctl.replay.contract.view", "No circles of files"),
)
"""Files that break a contract, what they import, and which contract."""


def linted(root: Path, folder: Path, planted: dict[str, str]) -> str:
    """What lint-imports says of a copy of the package with other files in it."""
    for room in ROOMS:
        target = folder / room if room == "gpuctl" else folder / "gpuctl" / room
        shutil.copytree(root / room, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name, line in planted.items():
        place = folder / name if name.startswith("gpuctl") else folder / "gpuctl" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f'"""Planted by a test."""\n{line}\n')
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--config", root / "pyproject.toml", "--no-cache", "--no-logo"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    return done.stdout


def test_the_import_contracts_fire(root: Path, tmp_path: Path) -> None:
    """A contract that cannot be broken guards nothing: plant an offence against each, see them all reported."""
    told = linted(root, tmp_path, {victim: f"import {what}" for victim, what, _ in PLANTED})
    broken = [line for line in told.splitlines() if line.endswith("BROKEN")]
    # of each contract that is broken, what breaks it
    parts = dict(re.findall(r"^([^\n]+)\n-{3,}\n(.*?)(?=^[^\n]+\n-{3,}\n|\Z)", told, re.MULTILINE | re.DOTALL))
    for victim, what, contract in PLANTED:
        module = module_name(Path(victim), Path())
        assert any(line.startswith(contract) for line in broken), contract
        [part] = [text for title, text in parts.items() if title.startswith(contract)]
        # circles are told within their package
        within = f"- .{module.rpartition('.')[2]} -> .{what.rpartition('.')[2]} "
        assert module in part or within in part, (victim, part)


def test_a_room_that_no_contract_knows_is_reported(root: Path, tmp_path: Path) -> None:
    assert "newroom" in linted(root, tmp_path, {"gpuctl/newroom/__init__.py": ""})


def test_no_file_outgrows_its_purpose(root: Path) -> None:
    """500 lines are the habit; what belongs together may have some more rather than a second file without a name."""
    files = [*sources(root), *(path for room in ("tests", "labs", "tools") for path in (root / room).rglob("*.py"))]
    for texts in (
        "fresh_programs.py",
        "gpu_programs.py",
        "tool_programs.py",
        "other_tool_programs.py",
    ):  # texts of programs, and nothing else
        files.remove(root / "labs" / "failures" / texts)
    long = {str(path.relative_to(root)): lines for path in files if (lines := path.read_text().count("\n")) > 600}
    assert long == {}
