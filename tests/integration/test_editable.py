"""The two ways to run without a wheel: an editable install, and a bare checkout that is not installed."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOMS = ("gpuctl", "queries", "predictors", "reports")
WHERE = "import gpuctl, gpuctl.queries as q, gpuctl.predictors as p, gpuctl.reports as r; " + (
    "print(*(m.__file__ for m in (gpuctl, q, p, r)), sep='\\n')"
)


def python(*args: str | Path, cwd: Path, **env: str) -> list[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *map(os.fspath, args)],
        cwd=cwd, env=clean | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def editable(root: Path) -> Path:
    """The checkout, where this environment has it installed in editable mode (`make test` does that)."""
    try:
        origin = importlib.metadata.distribution("gpuctl-toolkit").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("gpuctl is not installed here: run the tests through `make test`")
    told = json.loads(origin or "{}")
    if not told.get("dir_info", {}).get("editable") or told["url"] != root.as_uri():
        pytest.skip("this environment has another gpuctl than this checkout: run the tests through `make test`")
    return root


def test_editable_install_finds_every_room(editable: Path, tmp_path: Path) -> None:
    assert [Path(place).parent for place in python("-c", WHERE, cwd=tmp_path)] == [editable / room for room in ROOMS]


@pytest.fixture(scope="module")
def bare(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a checkout holds, in a place that nothing is installed from."""
    checkout = tmp_path_factory.mktemp("bare") / "a checkout"
    for room in ROOMS:
        # with its bytecode, which knows no place, and without compiled loops
        shutil.copytree(root / room, checkout / room, ignore=shutil.ignore_patterns("*.nb[ic]"))
    shutil.copy(root / "pyproject.toml", checkout)
    return checkout


def test_bare_checkout_finds_every_room(bare: Path, tmp_path: Path) -> None:
    found = python("-c", WHERE, cwd=tmp_path, PYTHONPATH=str(bare))
    assert [Path(place).parent for place in found] == [bare / room for room in ROOMS]


def test_bare_checkout_does_the_main_job(bare: Path, sample_data: Path) -> None:
    # without telemetry, whose reader would be compiled: test_wheel does that in a place as empty
    assert python(
        "-m",
        "gpuctl",
        "analyze",
        sample_data / "failures" / "sacct.txt",
        "--table",
        "overview",
        cwd=bare,
        PYTHONPATH=".",
    )


def test_same_logs_give_the_same_bytes(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], thin_data: Path
) -> None:
    """Whatever order the threads of a run finish in, and that of sets; else two runs could not be compared."""
    first, second = (gpuctl("--json", "analyze", thin_data / "philly", own_process=own).stdout for own in (False, True))
    assert first == second


def test_rooms_are_taken_only_from_our_own_checkout(bare: Path, tmp_path: Path) -> None:
    """A folder that merely holds the package, such as site-packages, must not lend its neighbours to it."""
    told = bare / "pyproject.toml"
    told.rename(tmp_path / told.name)
    program = "from importlib.util import find_spec; print(find_spec('gpuctl.queries'))"
    assert python("-c", program, cwd=tmp_path, PYTHONPATH=str(bare)) == ["None"]
    (tmp_path / told.name).rename(told)


def test_a_checkout_lends_the_package_its_rooms_and_nothing_else(bare: Path, tmp_path: Path) -> None:
    program = (
        "import pkgutil, gpuctl; from importlib.util import find_spec;"
        "print(sum(1 for _ in pkgutil.walk_packages(gpuctl.__path__, 'gpuctl.')) > 100);"
        "print(*(find_spec(f'gpuctl.{name}') for name in ('gpuctl', 'docs', 'tests')))"
    )
    assert python("-c", program, cwd=tmp_path, PYTHONPATH=str(bare)) == ["True", "None None None"]
