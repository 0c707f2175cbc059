"""Policies and formats of installed packages and of files: found, named with where they are from, kept apart."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.pipeline import registry
from gpuctl.replay import policies
from gpuctl.replay.contract.policy import Policy
from tests.damage import command
from tests.made_package import forget, install, on_path

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
FORMAT = (ROOT / "docs" / "examples" / "format" / "turnstile_jobs.py").read_text("utf-8")
POLICY = """
from gpuctl.replay.contract.python_policy import RankPolicy

class Last(RankPolicy):
    name = "last-first"
    title = "the last one first"

    def rank(self, jobs):
        return -jobs.submit
"""
GOOD = {
    "gpuctl.policies": {"last-first": "good:Last"},
    "gpuctl.formats": {"turnstile-jobs": "turnstile:FORMAT"},
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    on_path(folder, monkeypatch)
    yield folder
    monkeypatch.undo()
    forget()


def test_a_package_s_policy_and_format_are_listed_with_where_they_are_from(site: Path) -> None:
    install(site, "good", GOOD, good=POLICY, turnstile=FORMAT)
    forget()
    listed = {one["name"]: one["from"] for one in json.loads(command("policies", "--json").out)}
    assert (listed["last-first"], listed["fifo"]) == ("package good 1.2", "built in")
    listed = {one["name"]: one["from"] for one in json.loads(command("formats", "--json").out)}
    assert (listed["turnstile-jobs"], listed["slurm-sacct"]) == ("package good 1.2", "built in")
    assert policies.find("x=last-first").name == "last-first"
    found = command("ingest", ROOT / "docs/examples/format/jobs.turnstile", "--db", site / "t.duckdb", "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["sources"][0]["format"] == "turnstile-jobs"
    # the package is gone, what it loaded is not
    (site / "good-1.2.dist-info" / "entry_points.txt").unlink()
    forget()
    assert "turnstile-jobs" not in command("formats").out
    again = command("analyze", site / "t.duckdb", "--table", "overview")
    assert again.code == 0, again.err


def test_a_broken_one_is_named_and_stops_no_other(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    points = {
        "gpuctl.policies": {"torn": "torn:Last", "other": "good:Last", "list": "good:NAMES", "quits": "quits:X"},
        "gpuctl.formats": {"torn-log": "torn:FORMAT", "gone-log": "absent:FORMAT"},
    }
    install(site, "bad", points, torn="import no_such_module_of_anybody", good=POLICY + "NAMES = []", quits="exit(3)")
    forget()
    shown = command("policies")
    assert shown.code == 0
    assert "fifo\t" in shown.out
    for text in (
        "policy 'torn' of package bad 1.2: it cannot be loaded: ModuleNotFoundError",
        "policy 'other' of package bad 1.2: its class calls itself 'last-first'",
        "policy 'list' of package bad 1.2: it is no subclass",
        "policy 'quits' of package bad 1.2: it cannot be loaded: SystemExit: 3",
    ):
        assert text in shown.err
    with pytest.raises(InputError, match="'torn' of package bad"):
        policies.find("torn")
    assert issubclass(policies.find("fifo"), Policy)
    caplog.set_level(logging.WARNING)
    assert {fmt.name for fmt in registry.all_formats()} == {fmt.name for fmt in registry.built_in()}
    assert "format 'torn-log' of package bad 1.2" in caplog.text
    assert "format 'gone-log' of package bad 1.2" in caplog.text
    with pytest.raises(InputError, match="'gone-log'"):
        registry.named("gone-log", registry.all_formats())


def test_one_name_for_two_is_refused_with_both_origins(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    clash = {"gpuctl.policies": {"fifo": "good:Last", "last-first": "good:Last"}, "gpuctl.formats": {"slurm-conf": "x"}}
    install(site, "one", clash, good=POLICY)
    install(site, "two", {"gpuctl.policies": {"last-first": "good:Last"}})
    forget()
    for name, one, other in (("fifo", "built in", "package one 1.2"), ("last-first", "package one", "package two")):
        with pytest.raises(UsageError, match=f"'{name}' is there more than once") as refused:
            policies.find(name)
        assert one in refused.value.message
        assert other in refused.value.message
    assert policies.find("srtf").name == "srtf"
    assert "fifo\t" in command("policies").out
    assert {fmt.name for fmt in registry.all_formats()} == {fmt.name for fmt in registry.built_in()}
    assert "format 'slurm-conf' is there more than once: built in; package one 1.2" in caplog.text
    with pytest.raises(UsageError, match="more than once"):
        registry.named("slurm-conf", registry.all_formats())


def test_a_format_that_fails_keeps_no_other_from_its_files(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = FORMAT.replace('    """Recognise the first line."""', '    if b"JobID" in head: raise KeyError(name)')
    assert text != FORMAT
    text = text.replace("def load(", "def load(stream, sink):\n    return 1 / 0\n\n\ndef unused(")
    install(site, "good", {"gpuctl.formats": {"turnstile-jobs": "turnstile:FORMAT"}}, turnstile=text)
    forget()
    sacct = site / "sacct.txt"
    sacct.write_text(
        "JobID|State|Submit|Start|End\n1|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00\n"
    )
    ended = command("ingest", sacct, "--db", site / "s.duckdb", "--json")
    assert ended.code == 0, ended.err
    assert "format 'turnstile-jobs' of package good 1.2: sniff() failed: KeyError: 'sacct.txt'" in caplog.text
    ended = command("ingest", ROOT / "docs/examples/format/jobs.turnstile", "--db", site / "s.duckdb", "--cluster", "c")
    assert ended.code == 3
    assert "format 'turnstile-jobs' of package good 1.2: " in ended.err
    assert "load() failed: ZeroDivisionError" in ended.err


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("FORMAT = 1", "FORMAT", "has no format 'FORMAT'"),
        ("import absent_module_of_anybody", "FORMAT", r"own\.py:1: it cannot be loaded: ModuleNotFoundError"),
        ("x = (", "FORMAT", r"own\.py:1: not Python"),
        ("raise SystemExit(0)", "FORMAT", r"own\.py:1: it cannot be loaded: SystemExit"),
        (
            FORMAT.replace('name="turnstile-jobs"', 'name="slurm-conf"'),
            "FORMAT",
            "there is more than once|more than once",
        ),
    ],
)
def test_a_file_that_has_no_such_format_is_refused(tmp_path: Path, text: str, name: str, message: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(text)
    with pytest.raises((UsageError, InputError), match=message):
        registry.with_named(f"{own}:{name}", registry.all_formats())


def test_nothing_of_a_package_is_imported_before_it_is_needed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    points = {group: {"noisy": "noisy:X"} for group in ("gpuctl.policies", "gpuctl.formats", "gpuctl.analyses")}
    install(site, "noisy", points, noisy="open(__file__ + '.ran', 'w')")
    for arguments in (["--help"], ["policies", "--help"], ["analyze", "--help"], ["policies", "fifo"], ["--version"]):
        ended = subprocess.run(
            [sys.executable, "-m", "gpuctl", *arguments], env={"PYTHONPATH": f"{site}:{ROOT}", "PATH": ""}, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        assert ended.stdout
    assert not (site / "noisy.py.ran").exists()


def test_every_policy_that_a_module_has_is_found_without_importing_it() -> None:
    found: dict[str, type[Policy]] = {name: policies.built_in_policy(name) for name in policies.BUILT_IN}
    assert list(found) == sorted(found)
    assert {name: kind.name for name, kind in found.items()} == {name: name for name in found}
    names = [
        m.name for m in walk_packages(policies.__path__, f"{policies.__name__}.") if not m.name.endswith("_kernel")
    ]
    modules = [import_module(name) for name in names]
    named = {k for m in modules for k in vars(m).values() if isinstance(k, type) and issubclass(k, Policy) and k.name}
    assert named == set(found.values())
