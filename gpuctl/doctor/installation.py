"""Checks of the installation: Python, gpuctl, its dependencies, and its compiled code."""

from __future__ import annotations

import operator
import platform
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpuctl
from gpuctl.doctor.check import Finding, Status, abbreviate, finding, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpuctl.doctor.check import DoctorContext

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?P<asked>[^;]*)(?P<marker>;.*)?")
_CLAUSE = re.compile(r"(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)")
_COMPARISONS = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt
}  # fmt: skip
INSTALL = f"reinstall {gpuctl.DISTRIBUTION} from its checkout or wheel: pip install --upgrade PATH"


def python(_context: DoctorContext) -> list[Finding]:
    """Compare the interpreter with ``requires-python``."""
    required, _, _ = declared()
    version = platform.python_version()
    evidence = f"{platform.python_implementation()} {version}, gpuctl requires {required or 'any'}: {sys.executable}"
    fix = "run gpuctl with a newer Python" if required and not meets(version, required) else ""
    return [finding("python", evidence, fix, Status.FAIL)]


def package(_context: DoctorContext) -> list[Finding]:
    """Compare the gpuctl that runs with the one that is installed, and with other distributions of that name."""
    place, running = Path(gpuctl.__file__).parent, gpuctl.__version__
    other, installed = _installed("gpuctl"), _installed(gpuctl.DISTRIBUTION)
    evidence, fix = f"{running}, from {place}", ""
    if other is not None:
        evidence = f"{running} runs from {place}, but another program's distribution, gpuctl {other}, is installed"
        fix = f"pip uninstall gpuctl; then {INSTALL}"
    elif installed is None:
        evidence = f"{running}, not installed, run from {place}"
    elif installed != running:
        evidence = f"{running} runs from {place}, but {installed} is installed"
        fix = "install it again, or unset PYTHONPATH"
    return [finding("gpuctl", evidence, fix)]


def dependencies(_context: DoctorContext) -> list[Finding]:
    """Compare the packages that gpuctl needs with their metadata; none is imported."""
    _, required, source = declared()
    return [compare_versions(required, {name: _installed(name) for name in required}, source)]


def compare_versions(required: Mapping[str, str], installed: Mapping[str, str | None], source: str) -> Finding:
    """Return the finding on packages.

    Args:
        required: by name, the accepted versions, as ``>=2.0,<3``.
        installed: by name, the version that is installed; None: none.
        source: document that `required` is from.
    """
    wrong = [
        f"{name} {installed[name] or 'is missing'} (required: {versions or 'any'})"
        for name, versions in required.items()
        if (version := installed[name]) is None or not meets(version, versions)
    ]
    if wrong:
        return finding("dependencies", f"{'; '.join(wrong)}; of {len(required)} in {source}", INSTALL, Status.FAIL)
    listed = ", ".join(f"{name} {installed[name]}" for name in required)
    return finding("dependencies", f"{len(required)} of {len(required)} as required by {source}: {listed}")


def declared() -> tuple[str, dict[str, str], str]:
    """Return the versions of Python and, by name, of packages that gpuctl requires, and the document they are from.

    In a checkout that is ``pyproject.toml``, since what was installed from it may be older; else the metadata.
    """
    document = Path(gpuctl.__file__).resolve().parents[1] / "pyproject.toml"
    if document.is_file() and (document.parent / "queries").is_dir():
        project = tomllib.loads(document.read_text("utf-8"))["project"]
        return project["requires-python"], _requirements(project["dependencies"]), "pyproject.toml"
    version = metadata.metadata(gpuctl.DISTRIBUTION)["Requires-Python"] or ""
    return version, _requirements(metadata.requires(gpuctl.DISTRIBUTION) or ()), "the package's metadata"


def _requirements(lines: Iterable[str]) -> dict[str, str]:
    parts = [match for line in lines if (match := _REQUIREMENT.fullmatch(line.strip()))]
    return {part["name"]: part["asked"].strip() for part in parts if "extra" not in (part["marker"] or "")}


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def meets(version: str, required: str) -> bool:
    """Return whether a version meets all clauses, by the numbers of its release alone.

    Args:
        version: as ``2.0.1``; what follows the numbers (``rc1``, ``.post1``) is ignored.
        required: clauses with commas between them, of ``>= <= == != > <`` and a release.

    Raises:
        ValueError: a clause of another form.
    """
    for clause in filter(None, (each.strip() for each in required.split(","))):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise ValueError(f"{clause!r} is not a supported version clause")
        if not _COMPARISONS[match[1]](_release(version), _release(match[2])):
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    """Strip trailing zeros, so that 2.0 == 2."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(word) for word in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def compiled_code(context: DoctorContext) -> list[Finding]:
    """Check that hot loops are compiled, and that cached code matches the current sources."""
    if context.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:
        evidence = "NUMBA_DISABLE_JIT is set: loops run uncompiled, a hundred times slower"
        return [finding("compiled_code", evidence, "unset NUMBA_DISABLE_JIT")]
    from gpuctl.analyze import fragmentation_kernel
    from gpuctl.compiled.jit import is_compiled
    from gpuctl.ingest.philly import telemetry_kernel
    from gpuctl.ingest.slurm import ctld_kernel
    from gpuctl.ingest.yarn import scan_kernel
    from gpuctl.predictors import history_kernel
    from gpuctl.replay.policies import BUILT_IN, find
    from gpuctl.replay.run import entries
    from gpuctl.waits import bound_kernel, state_kernel

    functions = {function for name in BUILT_IN for function in entries(find(name))}
    functions |= {telemetry_kernel.scan, ctld_kernel.scan, scan_kernel.scan, history_kernel.sweep}
    functions |= {state_kernel.sweep, bound_kernel.follow, fragmentation_kernel.sweep}
    return [cached_code({function: is_compiled(function) for function in functions})]


def cached_code(current: Mapping[Any, bool]) -> Finding:
    """Return the finding on compiled code.

    Args:
        current: by function that Python calls, whether its cache holds code compiled from the current source.
    """
    places = {getattr(getattr(function, "stats", None), "cache_path", None) for function in current}
    folders = sorted(place for place in places if place is not None)
    old = sorted(f"{function.__module__.rpartition('.')[2]}" for function, good in current.items() if not good)
    locked = [f"{folder}: {why}" for folder in folders if (why := unwritable(Path(folder)))]
    evidence, fix = f"{len(current)} of {len(current)} loops are compiled, in {abbreviate(folders, 1)}", ""
    if None in places:
        evidence = "no folder for compiled code: every process compiles again, 5 to 15 s per policy"
        fix = "set NUMBA_CACHE_DIR to a writable directory"
    elif locked:
        evidence = f"compiled code cannot be saved in {abbreviate(locked, 2)}"
        fix = "give write access, or set NUMBA_CACHE_DIR to a writable directory"
    elif old:
        evidence = f"{len(old)} of {len(current)} loops are not compiled, or older than their source: {abbreviate(old)}"
        fix = "none needed: the next command compiles what it needs, once, in 5 to 15 s per policy"
    return finding("compiled_code", evidence, fix)
