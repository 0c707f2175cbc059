"""Checks of the installation on made-up versions and caches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

import gpuctl
from gpuctl import __version__
from gpuctl.core.numbers import size
from gpuctl.doctor import installation
from gpuctl.doctor.check import DoctorContext, Status, abbreviate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("version", "asked", "good"),
    [
        ("2.0.1", ">=2.0,<3", True),
        ("3.0", ">=2.0,<3", False),
        ("1.9.9", ">=2.0,<3", False),
        ("2", ">=2.0.0", True),
        ("0.26.8", ">=0.26,<0.29", True),
        ("0.29.0", ">=0.26,<0.29", False),
        ("2.10", ">=2.9", True),
        ("3.0rc1", "<3", False),
        ("1.5", "==1.5.0", True),
        ("1.5", "!=1.5.0", False),
        ("1.5", ">1.4, <=1.5", True),
        ("", ">=1", False),
        ("7", "", True),
    ],
)
def test_versions_are_compared_by_number(version: str, asked: str, good: bool) -> None:
    assert installation.meets(version, asked) is good


def test_a_clause_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="~=2"):
        installation.meets("2.0", "~=2.0")


@settings(max_examples=60, derandomize=True)
@examples(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.lists(st.integers(0, 50), min_size=1, max_size=4))
def test_of_two_versions_one_is_not_before_the_other(one: list[int], other: list[int]) -> None:
    a, b = (".".join(map(str, numbers)) for numbers in (one, other))
    assert installation.meets(a, f">={b}") or installation.meets(b, f">={a}")
    assert installation.meets(a, f"<{b}") is not installation.meets(a, f">={b}")


def test_what_pyproject_asks_for_can_be_read() -> None:
    python, asked, source = installation.declared()
    assert source == "pyproject.toml"
    assert installation.meets("3.11.0", python)
    assert not installation.meets("3.10.9", python)
    assert {"duckdb", "polars", "typer", "numba"} <= set(asked)
    assert not {"pytest", "ruff"} & set(asked)
    for versions in asked.values():
        installation.meets("1.0", versions)


def test_metadata_gives_the_same_without_its_extras(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = ["duckdb<3,>=2.0", "pytest>=9; extra == 'dev'", "rich"]
    monkeypatch.setattr(installation.gpuctl, "__file__", str(tmp_path / "gpuctl" / "__init__.py"))
    monkeypatch.setattr(installation.metadata, "metadata", lambda _: {"Requires-Python": ">=3.11"})
    monkeypatch.setattr(installation.metadata, "requires", lambda _: lines)
    assert installation.declared() == (">=3.11", {"duckdb": "<3,>=2.0", "rich": ""}, "the package's metadata")


def test_packages_as_asked() -> None:
    found = installation.compare_versions({"a": ">=1,<2", "b": ""}, {"a": "1.4", "b": "0.1"}, "here")
    assert (found.status, found.evidence, found.fix) == (Status.OK, "2 of 2 as required by here: a 1.4, b 0.1", "")


def test_packages_that_are_missing_or_too_old_fail() -> None:
    found = installation.compare_versions({"a": ">=1", "b": ">=2", "c": ""}, {"a": "0.9", "b": None, "c": "1"}, "here")
    assert found.status is Status.FAIL
    assert found.evidence == "a 0.9 (required: >=1); b is missing (required: >=2); of 3 in here"
    assert "pip install" in found.fix


def test_this_installation_is_as_asked() -> None:
    found = [*installation.python(DoctorContext()), *installation.dependencies(DoctorContext())]
    assert [one.status for one in found] == [Status.OK, Status.OK]


def test_a_python_too_old_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "declared", lambda: (">=99", {}, "here"))
    (found,) = installation.python(DoctorContext())
    assert found.status is Status.FAIL
    assert ">=99" in found.evidence


@pytest.mark.parametrize(("installed", "status"), [("0.0.1", Status.WARN), (__version__, Status.OK)])
def test_another_version_than_that_installed_is_reported(
    installed: str, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(monkeypatch, {gpuctl.DISTRIBUTION: installed})
    (found,) = installation.package(DoctorContext())
    assert found.status is status
    assert installed in found.evidence


def test_the_other_program_of_that_name_is_pointed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(monkeypatch, {gpuctl.DISTRIBUTION: __version__, "gpuctl": "3.1"})
    (found,) = installation.package(DoctorContext())
    assert found.status is Status.WARN
    assert "another program's distribution, gpuctl 3.1" in found.evidence
    assert found.fix.startswith("pip uninstall gpuctl")


def _installed(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]) -> None:
    def version(name: str) -> str:
        if name not in versions:
            raise installation.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(installation.metadata, "version", version)


def test_gpuctl_that_is_not_installed_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: str) -> str:
        raise installation.metadata.PackageNotFoundError

    monkeypatch.setattr(installation.metadata, "version", none)
    (found,) = installation.package(DoctorContext())
    assert found.status is Status.OK
    assert "not installed" in found.evidence


# ---- compiled code


class Loop:
    """Stands in for what numba makes of a function."""

    __name__ = "run"

    def __init__(self, source: Path, folder: Path | None) -> None:
        self.__module__ = f"gpuctl.replay.{source.stem}"
        self.__code__ = SimpleNamespace(co_filename=str(source))
        self.stats = SimpleNamespace(cache_path=None if folder is None else str(folder))


@pytest.mark.parametrize(("current", "status"), [(False, Status.WARN), (True, Status.OK)])
def test_compiled_code_must_be_of_the_sources(current: bool, status: Status, tmp_path: Path) -> None:
    found = installation.cached_code({Loop(tmp_path / "made_kernel.py", tmp_path): current})
    assert found.status is status
    assert ("1 of 1 loops are compiled" in found.evidence) == (status is Status.OK)
    assert (str(tmp_path) if status is Status.OK else "made_kernel") in found.evidence


def test_a_cache_that_cannot_be_written_to_is_reported(tmp_path: Path) -> None:
    source = tmp_path / "made_kernel.py"
    found = installation.cached_code({Loop(source, tmp_path / "absent"): True})
    assert found.status is Status.WARN
    assert f"cannot be saved in {tmp_path / 'absent'}" in found.evidence
    assert "NUMBA_CACHE_DIR" in found.fix


def test_no_cache_at_all_is_reported(tmp_path: Path) -> None:
    found = installation.cached_code({Loop(tmp_path / "made_kernel.py", None): True})
    assert found.status is Status.WARN
    assert "every process compiles again" in found.evidence


def test_loops_that_run_uncompiled_are_reported() -> None:
    (found,) = installation.compiled_code(DoctorContext(environ={"NUMBA_DISABLE_JIT": "1"}))
    assert found.status is Status.WARN
    assert found.fix == "unset NUMBA_DISABLE_JIT"


# ---- words


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (4_730_880, "4.73 MB"), (999_600, "1.00 MB"), (150e9, "150 GB"),
     (3e15, "3,000 TB")],
)  # fmt: skip
def test_sizes(count: float, text: str) -> None:
    assert size(count) == text


def test_few_of_many() -> None:
    assert abbreviate("abcde") == "a, b, c and 2 more"
    assert abbreviate("ab") == "a, b"
