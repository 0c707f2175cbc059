"""The built wheel: what is in it, and that it works in an environment that has nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.release import UV, pythons

pytestmark = pytest.mark.slow

ROOMS = ("queries", "predictors", "reports")
LEFT_OUT = ("__pycache__", ".ruff_cache", ".mypy_cache")


def call(*command: str | Path, cwd: Path, timeout_s: float = 280, ok: bool = True) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [os.fspath(part) for part in command],
        cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout_s,
    )  # fmt: skip
    if ok:
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def dist(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of the checkout, and the wheel that is built from that sdist."""
    target = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", target, root, cwd=target)
    return target


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def needed(wheel: Path) -> list[Distribution]:
    """What the wheel asks for and what that asks for, as it is installed here; fails where something is not."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        asked = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []
    found: dict[str, Distribution] = {}
    left = [(text, "") for text in asked]
    for text, extra in left:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        here = distribution(wanted.name)
        assert here.version in wanted.specifier, f"{text}, here {here.version}"
        extras = wanted.extras or {""}
        if canonicalize_name(wanted.name) not in found or wanted.extras:
            found[canonicalize_name(wanted.name)] = here
            left += [(more, one) for one in extras for more in here.requires or []]
    return list(found.values())


@pytest.fixture(scope="module")
def empty_venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel and what the wheel asks for, and no more; its bin folder.

    What it asks for is linked from where it is installed already: unpacking it again takes 20 s of a core.
    """
    venv = tmp_path_factory.mktemp("empty") / "venv"
    call(sys.executable, "-m", "venv", "--without-pip", venv, cwd=venv.parent)
    (packages,) = venv.glob("lib/python*/site-packages")
    for each in needed(wheel):
        for name in {file.parts[0] for file in each.files or () if file.parts[0] not in {"..", "__pycache__"}}:
            (packages / name).symlink_to(each.locate_file(name))
    call(
        sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "--quiet", "--no-compile",
        "--no-deps", "--no-index", wheel, cwd=venv.parent,
    )  # fmt: skip
    return venv / "bin"


def in_tree(root: Path) -> set[str]:
    """What the wheel should hold, as paths inside it."""
    ours = {path.relative_to(root).as_posix() for path in (root / "gpuctl").rglob("*") if path.is_file()}
    for room in ROOMS:
        ours |= {f"gpuctl/{p.relative_to(root).as_posix()}" for p in (root / room).rglob("*") if p.is_file()}
    return {name for name in ours if not set(LEFT_OUT) & set(name.split("/"))}


def test_wheel_holds_the_tree_and_nothing_else(wheel: Path, root: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info/" not in name} == in_tree(root)


def test_sdist_can_be_worked_with(dist: Path) -> None:
    """It keeps the layout of the checkout: tests, sample data and documents, no caches, no environment."""
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "Makefile", "README.md", "LICENSE", "queries/__init__.py", "tests/conftest.py"} <= names
    assert any(name.startswith("sample_data/") for name in names)
    assert not [name for name in names if name.startswith((".venv", "build/", ".git/")) or "__pycache__" in name]


def test_wheel_states_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = next(name.rpartition("/")[0] for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        meta = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        assert "Apache License" in archive.read(f"{info}/licenses/LICENSE").decode()
    assert meta["Requires-Python"] == ">=3.11"
    assert meta["License-Expression"] == "Apache-2.0"
    assert "gpuctl = gpuctl.cli.start:main" in entry_points
    always = [text for text in meta.get_all("Requires-Dist") if "extra ==" not in text]
    assert not [text for text in always if re.match(r"(pytest|ruff|mypy|hypothesis|playwright|click|pandas)\b", text)]


def test_main_job_in_an_empty_environment(empty_venv: Path, sample_data: Path, thin_data: Path, tmp_path: Path) -> None:
    """From another folder, that holds modules named like our rooms."""
    for name in ROOMS:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a module of the working directory was imported')\n")
    page = tmp_path / "report.html"
    programs = {
        (empty_venv / "python", "-W", "error", "-m", "gpuctl"): (thin_data / "philly", "--html", page),
        (empty_venv / "gpuctl",): (sample_data / "failures" / "sacct.txt", "--table", "overview"),
    }
    for program, words in programs.items():
        done = call(*program, "analyze", *words, cwd=tmp_path)
        assert "Traceback" not in done.stderr
        # those of Python and its libraries; ours begin a line
        assert re.search(r"\wWarning", done.stderr) is None
        assert done.stdout.strip()
    assert page.stat().st_size > 10_000


def test_empty_environment_is_empty(empty_venv: Path, tmp_path: Path) -> None:
    """Else the test before this one would not see that a dependency is missing."""
    program = (
        "import importlib.util as u, gpuctl.queries, gpuctl.reports, gpuctl.predictors;"
        "print([n for n in ('pytest', 'click', 'pandas', 'hypothesis', 'playwright', 'queries') if u.find_spec(n)]);"
        "print(*gpuctl.__path__, *(m.__file__ for m in (gpuctl.queries, gpuctl.reports, gpuctl.predictors)))"
    )
    done = call(empty_venv / "python", "-I", "-c", program, cwd=tmp_path)
    extra, places = done.stdout.splitlines()
    assert extra == "[]"
    assert all(place.startswith(str(empty_venv.parent)) for place in places.split())


def test_version_is_the_same_everywhere(empty_venv: Path, tmp_path: Path) -> None:
    said = call(empty_venv / "gpuctl", "--version", cwd=tmp_path).stdout
    program = "import gpuctl, importlib.metadata as m; print(gpuctl.__version__, m.version('gpuctl-toolkit'))"
    module, installed = call(empty_venv / "python", "-c", program, cwd=tmp_path).stdout.split()
    assert module == installed
    assert module in said.split()


_IMPORTS = """
import gpuctl, importlib, pkgutil
for module in pkgutil.walk_packages(gpuctl.__path__, "gpuctl.", onerror=lambda _: None):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:  # of an extra
        if (error.name or "").startswith("gpuctl"):
            raise
"""


def test_the_newest_python_here_runs_the_main_job(wheel: Path, sample_data: Path, root: Path, tmp_path: Path) -> None:
    newest = list(pythons().items())[-1]
    if newest[0] == f"{sys.version_info.major}.{sys.version_info.minor}":
        pytest.skip("no Python newer than the one that runs the tests")
    call(UV, "venv", "--quiet", "--python", newest[1], "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    install = (UV, "pip", "install", "--quiet", "--python", python, "--constraint", root / ".ci" / "constraints.txt")
    done = call(*install, wheel, cwd=tmp_path, ok=False)
    if done.returncode and "error sending request" in done.stderr:
        pytest.skip(f"no package index can be reached: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    call(python, "-I", "-c", _IMPORTS, cwd=tmp_path)
    done = call(
        python, "-I", "-m", "gpuctl", "analyze", sample_data / "failures" / "sacct.txt", "--table", "overview",
        cwd=tmp_path,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.stdout.strip()
