"""The files under examples/ci: valid to the services' own schemas, and every line of them run on sample data."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.ci_services import (
    ALWAYS,
    EXAMPLES,
    ROOT,
    Service,
    accounting,
    github,
    gitlab,
    gitlab_job,
    gitlab_script,
    put,
    put_sacct,
    read,
    service,
    shell,
)

GITHUB = ("github-nightly.yml", "github-pull-request.yml")
SCHEMAS = {name: "vendor.github-workflows" for name in GITHUB} | {"gitlab-ci.yml": "vendor.gitlab-ci"}
BIN = Path(sys.executable).parent
LATE_H = 3
"""Hours that the jobs of a worse night start later; the examples let a 95th percentile grow by one."""


@pytest.fixture
def place(tmp_path: Path, program: Path) -> Service:
    return service(tmp_path, program)


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in read(name)["jobs"].values() for step in job["steps"]]


def checks(path: Path) -> dict[str, bool]:
    """Condition -> whether it failed, of a JUnit file."""
    return {
        case.attrib["name"].partition(": ")[2]: case.find("failure") is not None
        for case in ET.parse(path).getroot().iter("testcase")
    }


def check_report(folder: Path, failed: set[str]) -> None:
    """All files of a report are there, and just these conditions hold."""
    found = checks(folder / "checks.xml")
    assert {condition for condition, bad in found.items() if bad} == failed
    assert (folder / "index.html").read_text("utf-8").lower().startswith("<!doctype html>")
    verdict = f"{len(failed)} of {len(found)} checks failed" if failed else f"All {len(found)} checks passed"
    assert verdict in (folder / "report.md").read_text("utf-8")


# ---- what stands in them


@pytest.mark.parametrize("schema", sorted(set(SCHEMAS.values())))
def test_they_are_valid_to_the_services_schema(schema: str) -> None:
    files = [EXAMPLES / name for name in SCHEMAS if SCHEMAS[name] == schema]
    command: list[str | Path] = [BIN / "check-jsonschema", "--builtin-schema", schema, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_finds_faults(tmp_path: Path) -> None:
    broken = (EXAMPLES / GITHUB[0]).read_text().replace("runs-on:", "run-on:")
    (tmp_path / "broken.yml").write_text(broken)
    command: list[str | Path] = [
        BIN / "check-jsonschema",
        "--builtin-schema",
        SCHEMAS[GITHUB[0]],
        tmp_path / "broken.yml",
    ]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("name", GITHUB)
def test_github_gets_no_more_than_it_needs(name: str) -> None:
    document = read(name)
    assert document["permissions"] == {"contents": "read"}
    assert all("permissions" not in job and "timeout-minutes" in job for job in document["jobs"].values())
    text = (EXAMPLES / name).read_text()
    used = re.findall(r"uses: (.*)", text)
    assert len(used) == text.count("uses:") > 2
    for action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), "pinned to a commit, with its version"
    # without it the shell is bash -e alone, and a command that fails in a pipe is passed over
    assert all(job["defaults"]["run"] == {"shell": "bash"} for job in document["jobs"].values())
    for step in steps(name):
        assert "${{" not in step.get("run", ""), "a name would be run as code"
        if "actions/checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_a_strangers_change_meets_no_secret_and_no_machine_of_gpuctl() -> None:
    document = read("github-pull-request.yml")
    assert list(document["on"]) == ["pull_request"]
    assert [job["runs-on"] for job in document["jobs"].values()] == ["ubuntu-latest"]
    assert set(read("github-nightly.yml")["on"]) == {"schedule", "workflow_dispatch"}
    merge = read("gitlab-ci.yml")["merge-request"]
    assert "tags" not in merge
    assert "secrets." not in "".join((EXAMPLES / name).read_text() for name in SCHEMAS)


def scripts() -> list[tuple[str, str, str]]:
    """Name, dialect and text of every script in the examples."""
    found = [("nightly.sh", "bash", (EXAMPLES / "nightly.sh").read_text())]
    found += [
        (f"{name}: {step['name']}", "bash", step["run"]) for name in GITHUB for step in steps(name) if "run" in step
    ]
    document = read("gitlab-ci.yml")
    # an image without bash gets sh
    return found + [(name, "sh", gitlab_script(gitlab_job(document, name))) for name in ("nightly", "merge-request")]


@pytest.mark.parametrize(("name", "dialect", "text"), scripts(), ids=[name for name, _, _ in scripts()])
def test_shellcheck_has_nothing_to_say(name: str, dialect: str, text: str) -> None:
    done = subprocess.run(
        [BIN / "shellcheck", f"--shell={dialect}", "-"], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{name}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", GITHUB)
def test_names_in_a_log_are_no_commands_to_github(name: str) -> None:
    texts = [step["run"] for step in steps(name) if re.search(r"^ *gpuctl ", step.get("run", ""), re.MULTILINE)]
    assert len(texts) == 3
    for text in texts:
        before = re.split(r"^ *gpuctl ", text, maxsplit=1, flags=re.MULTILINE)[0]
        assert re.search(r'^echo "::stop-commands::\$\(', before, re.MULTILINE), text


# ---- run


def nightly_of_github(place: Service) -> tuple[int, str, str]:
    for left in place.place.iterdir():  # as a checkout does
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    wheel = place.place / read("github-nightly.yml")["env"]["GPUCTL_WHEEL"]
    wheel.parent.mkdir()
    wheel.touch()
    return github(place, read("github-nightly.yml"), run_id=len(list(place.cache.iterdir())) + 1)


@pytest.mark.slow
def test_github_nights_of_a_live_slurm(place: Service) -> None:
    put_sacct(place.stand_ins)
    code, said, summary = nightly_of_github(place)
    assert code == 0, said
    assert place.installed == ["vendor/gpuctl_toolkit-0.2.0-py3-none-any.whl"]
    check_report(place.artifacts / "gpuctl-report", set())
    assert "All 3 checks passed" in summary
    (kept,) = place.cache.iterdir()

    put_sacct(place.stand_ins, late_h=LATE_H)
    code, said, summary = nightly_of_github(place)
    assert code == 1, said
    check_report(place.artifacts / "gpuctl-report", {"queueing.p95_wait_h > baseline + 1"})
    assert "1 of 4 checks failed" in summary, "the steps after a failed check are run"
    assert list(place.cache.iterdir()) == [kept], "a bad night is no baseline"


@pytest.mark.slow
def test_github_night_without_accounting_is_a_fault(place: Service) -> None:
    put(place.stand_ins / "sacct", "#!/bin/sh\necho 'sacct: error: slurmdbd is away' >&2\nexit 1\n")
    code, said, summary = nightly_of_github(place)
    assert code == 3, said
    assert "slurmdbd is away" in said
    assert summary == ""


def configured(folder: Path, nodes: str) -> None:
    """A slurm.conf of some of the sample's eight nodes."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "sample_data" / "failures" / "slurm.conf").read_text()
    assert "gpu[01-08]" in text
    (folder / "slurm.conf").write_text(text.replace("gpu[01-08]", nodes))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "failed"), [("gpu[01-07]", set()), ("gpu[01-02]", {"replay.mean_wait_h{policy=slurm} > baseline + 0.25"})]
)
def test_github_pull_request(place: Service, nodes: str, failed: set[str]) -> None:
    for half, of_half in (("base", "gpu[01-08]"), ("head", nodes)):
        configured(place.place / half / "slurm", of_half)
        (place.place / half / "accounting").mkdir()
        accounting(place.place / half / "accounting" / "sacct.txt")
    wheel = place.place / read("github-pull-request.yml")["env"]["GPUCTL_WHEEL"]
    wheel.parent.mkdir()
    wheel.touch()
    code, said, summary = github(place, read("github-pull-request.yml"))
    assert code == (1 if failed else 0), said
    assert "checks failed" in summary if failed else "All 2 checks passed" in summary
    check_report(place.artifacts / "gpuctl-report", failed)


def test_results_are_kept_after_failed_checks() -> None:
    for name in GITHUB:
        after = steps(name)
        checked = next(at for at, step in enumerate(after) if "--fail-if" in step.get("run", ""))
        for step in after[checked + 1 :]:
            assert (step.get("if") == ALWAYS) != ("baseline" in step["name"]), step["name"]
    assert gitlab_job(read("gitlab-ci.yml"), "nightly")["artifacts"]["when"] == "always"


def with_wheel(place: Service, name: str) -> dict[str, Any]:
    job = gitlab_job(read("gitlab-ci.yml"), name)
    wheel = place.place / job["variables"]["GPUCTL_WHEEL"]
    wheel.parent.mkdir(parents=True, exist_ok=True)
    wheel.touch()
    return job


@pytest.mark.slow
def test_gitlab_nights_of_files(place: Service) -> None:
    for late_h, failed in ((0.0, set[str]()), (LATE_H, {"queueing.p95_wait_h > baseline + 1"})):
        shutil.rmtree(place.place)
        (place.place / "accounting").mkdir(parents=True)
        accounting(place.place / "accounting" / "sacct.txt", late_h=late_h)
        job = with_wheel(place, "nightly")
        code, said = gitlab(place, job)
        assert code == (1 if failed else 0), said
        check_report(place.artifacts / "report", failed)
        assert (place.artifacts / job["artifacts"]["reports"]["junit"]).is_file()
    kept = (place.cache / "gpuctl-baseline" / "baseline" / "results.json").read_bytes()
    assert kept != (place.artifacts / "report" / "results.json").read_bytes(), "a bad night is no baseline"


@pytest.mark.slow
def test_gitlab_merge_request(place: Service) -> None:
    job = with_wheel(place, "merge-request")
    configured(place.place / "slurm", "gpu[01-08]")
    (place.place / "accounting").mkdir()
    accounting(place.place / "accounting" / "sacct.txt")
    git = "git -c user.name=t -c user.email=t@example.org"
    done = shell(place, f"git init -q . && git add -A && {git} commit -qm base && git rev-parse HEAD")
    assert done.returncode == 0, done.stderr
    configured(place.place / "slurm", "gpu[01-02]")
    code, said = gitlab(place, job, CI_MERGE_REQUEST_DIFF_BASE_SHA=done.stdout.strip())
    assert code == 1, said
    check_report(place.artifacts / "report", {"replay.mean_wait_h{policy=slurm} > baseline + 0.25"})


# ---- cron and systemd


@pytest.mark.slow
def test_nightly_script(place: Service, tmp_path: Path) -> None:
    shutil.copy(place.environment["STAND_IN"], place.stand_ins / "gpuctl")
    state = tmp_path / "state"
    old = state / "reports" / "2026-01-01"
    old.mkdir(parents=True)
    (old / "index.html").touch()
    said = state / "site.sacct" / "slurm" / "sacct-2026-01-01.txt.zst"
    said.parent.mkdir(parents=True)
    shell(place, f"touch -d '99 days ago' '{old}' '{said}'")
    put_sacct(place.stand_ins)
    script = str(EXAMPLES / "nightly.sh")
    told = {"GPUCTL_STATE": str(state), "GPUCTL_DAYS": "12"}
    done = shell(place, script, **told)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "", "cron would mail it"
    assert not old.exists(), "old reports go"
    assert not said.exists(), "and so does what they rest on"
    assert len(list((state / "site.sacct").rglob("sacct-*.txt.zst"))) == 13, "12 days and today"
    check_report(state / "reports" / "latest", set())
    assert (state / "reports" / "latest").resolve().stat().st_mode & 0o007 == 0, "reports name users"
    baseline = (state / "baseline.json").read_bytes()

    # what was asked for already would not be asked for again: as on another day, when the cluster was worse
    shutil.rmtree(state / "site.sacct")
    (state / "reports" / "latest").unlink()
    put_sacct(place.stand_ins, late_h=LATE_H)
    done = shell(place, script, **told)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "queueing.p95_wait_h" in done.stderr
    check_report(state / "reports" / "latest", {"queueing.p95_wait_h > baseline + 1"})
    assert (state / "baseline.json").read_bytes() == baseline, "a bad night is no baseline"


@pytest.mark.slow
def test_two_nightly_scripts_do_not_meet(place: Service, tmp_path: Path) -> None:
    held = f'mkdir -p "{tmp_path}/state"; exec 8>"{tmp_path}/state/nightly.lock"; flock 8; "{EXAMPLES}/nightly.sh"'
    done = shell(place, held, GPUCTL_STATE=f"{tmp_path}/state")
    assert done.returncode == 4
    assert "another run holds" in done.stderr


def test_cron_line_is_one() -> None:
    lines = [line for line in (EXAMPLES / "nightly.cron").read_text().splitlines() if not line.startswith("#")]
    assert [line.partition("=")[0] for line in lines[:-1]] == ["PATH", "GPUCTL_STATE", "MAILTO"]
    assert re.fullmatch(r"\d+ \d+ \* \* \* gpuctl (/\S+)+/nightly\.sh", lines[-1])


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((EXAMPLES / name).read_text())
    return parser


def test_units_run_the_script_as_nobody_special() -> None:
    service_unit, timer = unit("gpuctl-nightly.service"), unit("gpuctl-nightly.timer")
    assert service_unit["Service"]["ExecStart"].endswith("/nightly.sh")
    assert service_unit["Service"]["User"] == "gpuctl"
    assert service_unit["Service"]["StateDirectory"] == "gpuctl", "/var/lib/gpuctl, the script's own default"
    assert timer["Timer"]["Persistent"] == "true"
    assert "Install" not in service_unit, "the timer starts it, not the boot"


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine")
    for name in ("gpuctl-nightly.service", "gpuctl-nightly.timer"):
        text = (EXAMPLES / name).read_text().replace("/opt/gpuctl/nightly.sh", str(EXAMPLES / "nightly.sh"))
        (tmp_path / name).write_text(text)
    paths = [tmp_path / "gpuctl-nightly.service", tmp_path / "gpuctl-nightly.timer"]
    done = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
