"""`gpuctl --help` must be quick, so it may import next to nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.example_counts import SEARCHING

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
MODULES = 204
"""Ceiling for all modules of a started program, measured: 205 for --help, gc, which is built in, among them."""
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


@pytest.mark.parametrize("arguments", [["formats"], ["formats", "--json"]])
def test_the_list_of_formats_imports_nothing_heavy(root: Path, arguments: list[str]) -> None:
    assert not HEAVY & _modules(root, *arguments)


def test_compiled_code_starts_without_scipy(root: Path) -> None:
    # Numba would import scipy.linalg to see whether there is a BLAS: a tenth of a second that only matrices need
    code = (
        "import sys, numpy as np\nfrom gpuctl.compiled.loading import load_compiler\nload_compiler()\n"
        "assert 'numba' in sys.modules and 'scipy.linalg' not in sys.modules\nimport numba\n"
        "assert np.allclose(numba.njit(lambda a: a @ a)(np.eye(2) * 3), np.eye(2) * 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_end_of_the_process_reports_nothing(root: Path, tmp_path: Path) -> None:
    # objects that the interpreter does not free are a leak to DuckDB, which says so on standard error
    store, jobs = tmp_path / "s.duckdb", tmp_path / "sacct.txt"
    times = "2024-01-01T00:00:00|2024-01-01T00:00:01|2024-01-01T00:01:01"
    jobs.write_text(f"JobID|State|Submit|Start|End\n1|COMPLETED|{times}\n")
    for arguments in (["ingest", jobs, "--db", store], ["query", store, "SELECT job FROM jobs"]):
        program = [sys.executable, "-m", "gpuctl", "--quiet", *map(str, arguments)]
        done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=root)
        assert (done.returncode, done.stderr) == (0, ""), done


_PRESSED = """
import os, signal, sys

class Pressing:
    left = 0

    @classmethod
    def find_spec(cls, name, *_):
        cls.left -= 1
        if not cls.left:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Pressing)
ends = []
# the first four are __future__, the package, its folder and the module that sets the handler
for Pressing.left in range(5, 190, int(sys.argv[1])):
    child = os.fork()
    if not child:
        from gpuctl.cli.start import main
        sys.argv = ["gpuctl", "formats"]
        main()
        os._exit(0)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(ends)
"""


def test_ctrl_c_during_the_imports_of_a_start_ends_without_a_word(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PRESSED, "1" if SEARCHING else "9"],
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(json.loads(done.stdout)) == {130}
    assert not done.stderr.replace("gpuctl: interrupted\n", ""), done.stderr[:2000]
