"""The two README commands: what they set up, what they say, and what they do where something is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

SH = shutil.which("sh") or "/bin/sh"


def run(*command: str | Path, cwd: Path, ok: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    # what `make test WORKERS=4` was told is not for the runs of make in here
    known = {"VENV", "DEMO", "REPORT", "WORKERS", "PYTEST", "PYTHON", "GPUCTL_LABS"}
    inherited = {n: value for n, value in os.environ.items() if n not in known and not n.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        [os.fspath(part) for part in command],
        cwd=cwd, env=inherited | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=280,
    )  # fmt: skip
    if ok:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def venv(tmp_path: Path, program: Path) -> Path:
    """What make takes for an environment in which all is installed."""
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "bin").symlink_to(program.parent)
    return tmp_path / "venv"


@pytest.mark.slow
def test_demo_makes_the_page_and_states_where(root: Path, venv: Path, thin_data: Path, tmp_path: Path) -> None:
    target = tmp_path / "demo"
    words = ("demo", f"VENV={venv}", f"DEMO={target}", "-o", f"{venv}/.installed-run")
    done = run("make", "-f", root / "Makefile", *words, cwd=thin_data.parent, PYTHONPATH=str(root))
    page = target / "report.html"
    assert page.stat().st_size > 10_000
    assert done.stdout.splitlines()[-1].startswith(f"The report is {page}")


@pytest.mark.slow
def test_report_of_the_sample_data(root: Path, venv: Path, tmp_path: Path) -> None:
    target = Path(os.environ.get("MADE_REPORT") or tmp_path / "report")
    if not os.environ.get("MADE_REPORT"):  # `make test` has just made it
        made = ("-o", f"{venv}/.installed-dev", "-o", "kernels")
        done = run("make", "report", f"VENV={venv}", f"REPORT={target}", *made, cwd=root, PYTHONPATH=str(root))
        assert done.stdout == f"The report of the sample data is {target}/index.html\n"
    made = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    results = {f"results/{name}.json" for name in ("philly", "failures", "replay")}
    assert made == {"index.html", "report.md", "checks.xml", "metrics.json"} | results
    assert "All 4 checks passed." in (target / "report.md").read_text("utf-8")
    cases = ET.parse(target / "checks.xml").getroot().iter("testcase")
    assert {case.attrib["classname"] for case in cases} == {"philly", "failures", "jobs.csv on 4x8"}


def test_test_runs_every_check(root: Path) -> None:
    """`make test` is what CI calls; a step that fell out of it would guard nothing any more."""
    plan = run("make", "--dry-run", "--always-make", "test", cwd=root).stdout
    checks = ("ruff check", "ruff format --check", "mypy", "lint-imports")
    made = "gpuctl --quiet report"
    for step in (*checks, made, "tools/chromium.sh", "tools/compile_kernels.py", "-m pytest -n 4", "--dist loadfile"):
        assert step in plan
    assert plan.index(made) < plan.index("-m pytest"), "it is kept also where a test fails"
    told = (root / ".ci" / "run").read_text()
    assert "make test" in told
    assert "build/report (index.html, report.md, checks.xml, metrics.json)" in told
    assert os.access(root / ".ci" / "run", os.X_OK)


def test_a_fresh_checkout_starts_with_an_environment(root: Path, tmp_path: Path) -> None:
    plan = run("make", "--dry-run", "demo", f"VENV={tmp_path}/none", cwd=root).stdout
    steps = [plan.index(step) for step in ("tools/make_venv.sh", "install --editable .", "gpuctl analyze")]
    assert steps == sorted(steps)


def test_a_second_run_sets_up_nothing(root: Path, tmp_path: Path) -> None:
    for name in ("bin/python", ".installed-run", ".installed-dev"):
        stamp = tmp_path / "venv" / name
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
    for target in ("demo", "report", "unit"):
        assert "pip" not in run("make", "--dry-run", target, f"VENV={tmp_path}/venv", cwd=root).stdout


def test_help_names_every_target(root: Path) -> None:
    text = (root / "Makefile").read_text()
    listed = run("make", cwd=root).stdout
    documented = re.findall(r"^([a-z]+):.*## ", text, re.MULTILINE)
    assert len(documented) > 10
    assert [line.split()[0] for line in listed.splitlines()] == documented


def stub(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!{SH}\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 127", "found: none"),
        ('case "$2" in *print*) echo 3.9;; *) exit 1;; esac', "found: python3 (3.9)"),
    ],
)
def test_no_usable_python_is_reported(script: str, told: str, root: Path, tmp_path: Path) -> None:
    for name in ("python3", *(f"python3.{minor}" for minor in range(11, 15))):
        stub(tmp_path, name, script if name == "python3" else "exit 127")
    done = run(SH, root / "tools" / "make_venv.sh", tmp_path / "venv", cwd=tmp_path, ok=False, PATH=str(tmp_path))
    assert done.returncode == 1
    assert told in done.stderr
    assert "3.11 or newer" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_python_without_venv_is_reported(root: Path, tmp_path: Path) -> None:
    """Debian's python3 comes without the module; a half-made environment must not stay behind."""
    stub(tmp_path, "python3", f'[ "$1" = -m ] && {{ mkdir "$3"; exit 1; }}; exec {sys.executable} "$@"')
    stub(tmp_path, "mkdir", 'exec /bin/mkdir "$@"')
    stub(tmp_path, "rm", 'exec /bin/rm "$@"')
    env = {"PATH": str(tmp_path), "DISTRIBUTION_PYTHON": str(tmp_path / "python3")}
    done = run(SH, root / "tools" / "make_venv.sh", tmp_path / "venv", cwd=tmp_path, ok=False, **env)
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_the_distributions_python_is_taken_where_its_version_is_the_same(root: Path, tmp_path: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for name, told in (("python3", version), ("same", version), ("other", "3.99"), ("without", version)):
        made = "exit 1" if name == "without" else f'echo {name} > "$3"'
        # the version is asked for by print, whether it is new enough by exit
        stub(tmp_path, name, f'case "$2" in venv) {made};; *print*) echo {told};; esac')
    stub(tmp_path, "rm", 'exec /bin/rm "$@"')
    for distribution, env, taken in (
        ("same", {}, "same"),
        ("same", {"PYTHON": "python3"}, "python3"),
        ("other", {}, "python3"),
        ("without", {}, "python3"),
        ("none", {}, "python3"),
    ):
        env |= {"PATH": str(tmp_path), "DISTRIBUTION_PYTHON": str(tmp_path / distribution)}
        done = run(SH, root / "tools" / "make_venv.sh", tmp_path / "venv", cwd=tmp_path, **env)
        assert (tmp_path / "venv").read_text() == f"{taken}\n"
        assert f"with {taken if taken == 'python3' else tmp_path / taken} ({version})" in done.stderr


def test_a_missing_browser_is_no_error_but_in_ci(root: Path, tmp_path: Path) -> None:
    script = root / "tools" / "chromium.sh"
    for env, code in (({}, 0), ({"GPUCTL_REQUIRE_BROWSER": "1"}, 1)):
        calm = {"GPUCTL_REQUIRE_BROWSER": "", "PATH": str(tmp_path), **env}
        done = run(SH, script, cwd=tmp_path, ok=False, **calm)
        assert done.returncode == code
        assert "no apt-get" in done.stderr
