"""Checks of what is installed: Python, gpuctl, the packages it needs, and its compiled code."""

from __future__ import annotations

import platform
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpuctl
from gpuctl.doctor.check import Finding, Status, few, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpuctl.doctor.check import Given

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?P<asked>[^;]*)(?P<marker>;.*)?")
_CLAUSE = re.compile(r"(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)")
INSTALL = (
    f"install {gpuctl.DISTRIBUTION} again, from the checkout or wheel that it came from: pip install --upgrade PATH"
)


def python(_given: Given) -> Iterable[Finding]:
    """The interpreter against ``requires-python``."""
    asked, _, _ = declared()
    version = platform.python_version()
    evidence = f"{platform.python_implementation()} {version}, gpuctl asks for {asked or 'any'}: {sys.executable}"
    if asked and not meets(version, asked):
        yield Finding("python", Status.FAIL, evidence, "run gpuctl with a newer Python")
        return
    yield Finding("python", Status.OK, evidence)


def package(_given: Given) -> Iterable[Finding]:
    """What gpuctl is: what runs, from where, what the installation says it is, and what else calls itself so."""
    place = Path(gpuctl.__file__).parent
    other = _installed("gpuctl")
    if other is not None:
        evidence = (
            f"{gpuctl.__version__} runs from {place}, but another program's distribution, gpuctl {other}, is installed"
        )
        fix = f"pip uninstall gpuctl; then {INSTALL}"
        yield Finding("gpuctl", Status.WARN, evidence, fix)
        return
    try:
        installed = metadata.version(gpuctl.DISTRIBUTION)
    except metadata.PackageNotFoundError:
        yield Finding("gpuctl", Status.OK, f"{gpuctl.__version__}, not installed, run from {place}")
        return
    if installed != gpuctl.__version__:
        evidence = f"{gpuctl.__version__} runs from {place}, but {installed} is installed"
        yield Finding("gpuctl", Status.WARN, evidence, "install it again, or unset PYTHONPATH")
        return
    yield Finding("gpuctl", Status.OK, f"{installed}, from {place}")


def dependencies(_given: Given) -> Iterable[Finding]:
    """The packages that gpuctl needs, by what their metadata says; none is imported."""
    _, asked, source = declared()
    yield judged(asked, {name: _installed(name) for name in asked}, source)


def judged(asked: Mapping[str, str], found: Mapping[str, str | None], source: str) -> Finding:
    """The finding on packages.

    Args:
        asked: by name, the versions that will do, as ``>=2.0,<3``.
        found: by name, the version that is installed; None: none.
        source: where `asked` is from.
    """
    listed = ", ".join(f"{name} {found[name]}" for name in asked if found[name])
    wrong = [
        f"{name} {found[name] or 'is missing'} (asked for: {versions or 'any'})"
        for name, versions in asked.items()
        if (version := found[name]) is None or not meets(version, versions)
    ]
    if wrong:
        return Finding("dependencies", Status.FAIL, f"{'; '.join(wrong)}; of {len(asked)} in {source}", INSTALL)
    return Finding("dependencies", Status.OK, f"{len(asked)} of {len(asked)} as {source} asks: {listed}")


def declared() -> tuple[str, dict[str, str], str]:
    """What gpuctl asks for: of Python, of packages by name, and which document says so.

    In a checkout that is ``pyproject.toml``, since what was installed from it may be older; else the metadata.
    """
    document = Path(gpuctl.__file__).resolve().parents[1] / "pyproject.toml"
    if document.is_file() and (document.parent / "queries").is_dir():
        project = tomllib.loads(document.read_text("utf-8"))["project"]
        return project["requires-python"], _needed(project["dependencies"]), "pyproject.toml"
    found = metadata.metadata(gpuctl.DISTRIBUTION)
    return (
        found["Requires-Python"] or "",
        _needed(metadata.requires(gpuctl.DISTRIBUTION) or ()),
        "the package's metadata",
    )


def _needed(lines: Iterable[str]) -> dict[str, str]:
    parts = [match for line in lines if (match := _REQUIREMENT.fullmatch(line.strip()))]
    return {part["name"]: part["asked"].strip() for part in parts if "extra" not in (part["marker"] or "")}


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def meets(version: str, asked: str) -> bool:
    """Whether a version is one of those asked for, by the numbers of its release alone.

    Args:
        version: as ``2.0.1``; what follows the numbers (``rc1``, ``.post1``) is not looked at.
        asked: clauses with commas between them, of ``>= <= == != > <`` and a release.

    Raises:
        ValueError: a clause of another form.
    """
    have = _release(version)
    for clause in filter(None, (each.strip() for each in asked.split(","))):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise ValueError(f"{clause!r} is not a version clause that gpuctl reads")
        want = _release(match[2])
        holds = {
            ">=": have >= want, "<=": have <= want, "==": have == want,
            "!=": have != want, ">": have > want, "<": have < want,
        }  # fmt: skip
        if not holds[match[1]]:
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    """Its numbers without the zeros at the end: 2.0 and 2 are the same release."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(word) for word in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def compiled_code(given: Given) -> Iterable[Finding]:
    """Whether the hot loops are compiled at all, and whether the code that earlier runs left is of today's sources."""
    if given.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:
        evidence = "NUMBA_DISABLE_JIT is set: loops run uncompiled, a hundred times as slowly"
        yield Finding("compiled_code", Status.WARN, evidence, "unset NUMBA_DISABLE_JIT")
        return
    from gpuctl.analyze import fragmentation_kernel
    from gpuctl.compiled.jit import is_compiled
    from gpuctl.ingest.philly import telemetry_kernel
    from gpuctl.ingest.slurm import ctld_kernel
    from gpuctl.ingest.yarn import scan_kernel
    from gpuctl.predictors import history_kernel
    from gpuctl.replay.policies import BUILT_IN, find
    from gpuctl.replay.run import entries
    from gpuctl.waits import bound_kernel, state_kernel

    replay = {function for name in BUILT_IN for function in entries(find(name))}
    others = {telemetry_kernel.scan, ctld_kernel.scan, scan_kernel.scan, history_kernel.sweep}
    others |= {state_kernel.sweep, bound_kernel.follow, fragmentation_kernel.sweep}
    yield cached({function: is_compiled(function) for function in replay | others})


def cached(current: Mapping[Any, bool]) -> Finding:
    """The finding on compiled code.

    Args:
        current: by function that Python calls, whether code compiled from today's source lies in its cache.
    """
    places = {getattr(getattr(function, "stats", None), "cache_path", None) for function in current}
    folders = sorted(place for place in places if place is not None)
    if None in places:
        evidence = "no folder to keep compiled code in: every process compiles again, 5 to 15 s for each policy"
        fix = "set NUMBA_CACHE_DIR to a directory that can be written to"
        return Finding("compiled_code", Status.WARN, evidence, fix)
    shut = [f"{folder}: {why}" for folder in folders if (why := unwritable(Path(folder)))]
    if shut:
        evidence = f"compiled code cannot be kept in {few(shut, 2)}"
        fix = "give write access, or set NUMBA_CACHE_DIR to a directory that can be written to"
        return Finding("compiled_code", Status.WARN, evidence, fix)
    names = sorted(f"{function.__module__.rpartition('.')[2]}" for function, good in current.items() if not good)
    where = few(folders, 1)
    if names:
        evidence = f"{len(names)} of {len(current)} loops are not compiled, or older than their source: {few(names)}"
        fix = "none needed: the next command compiles what it needs, once, in 5 to 15 s for each policy"
        return Finding("compiled_code", Status.WARN, evidence, fix)
    return Finding("compiled_code", Status.OK, f"{len(current)} of {len(current)} loops are compiled, in {where}")
