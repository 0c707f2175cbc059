"""`gpuctl --help` must be quick, so it may import next to nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {
    "numpy",
    "polars",
    "duckdb",
    "pyarrow",
    "scipy",
    "matplotlib",
    "networkx",
    "lightgbm",
    "numba",
    "jinja2",
    "rich",
    "zstandard",
}
MODULES = 192
"""Ceiling for all modules of a started program, measured: 167 for --help."""
_PROBE = """
import sys
from gpuctl.cli.main import main
sys.argv = ["gpuctl", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    code = end.code
sys.stderr.write("\\n".join([f"exit {code}", *sys.modules]))
"""


def _modules(root: Path, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, *arguments],
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    first, *modules = done.stderr.splitlines()
    assert first == "exit 0", done.stderr[:500]
    assert done.stdout
    return set(modules)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["ingest", "--help"], ["analyze", "--help"]])
def test_help_and_version_import_nothing_heavy(root: Path, arguments: list[str]) -> None:
    modules = _modules(root, *arguments)
    assert not HEAVY & modules
    assert len(modules) <= MODULES, sorted(modules)


@pytest.mark.parametrize("arguments", [["formats"], ["formats", "--json"], ["--json", "formats"]])
def test_the_list_of_formats_imports_nothing_heavy(root: Path, arguments: list[str]) -> None:
    assert not HEAVY & _modules(root, *arguments)
