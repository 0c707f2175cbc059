"""``gpuctl dag``: each command as scripts call it, options left out, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import ExitCode
from tests.cli_runner import run_command

ORACLES = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "dag"
STAGES = (
    "job,arrival_ms,stage,tasks,task_ms,parents\na,0,0,2,3000,\na,0,1,1,2000,0\nb,1000,0,1,1000,\nb,1000,1,2,1000,0\n"
)
LEAVES = '{"pos": %d, "neg": %d, "n": 9}'
TREE = '{"features": ["held", "job_rank"], "tree": {"f": 1, "t": 0, "lo": %s, "hi": %s}}'

if TYPE_CHECKING:
    from subprocess import CompletedProcess


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stages.csv").write_text(STAGES)
    (tmp_path / "last.json").write_text(TREE % (LEAVES % (1, 9), LEAVES % (9, 1)))
    return tmp_path


def run(*words: object, code: int = 0) -> CompletedProcess[str]:
    ended = run_command("--quiet", *map(str, words))
    assert ended.returncode == code, ended
    return ended


def rows(path: Path) -> list[list[str]]:
    with path.open() as file:
        return list(csv.reader(file))


def test_simulate_writes_jobs_of_each_policy(stages: Path) -> None:
    run(
        "dag", "simulate", "stages.csv", "--executors", 2, "--policy", "fifo,tree:last.json", "--csv", "o", "--log", "l"
    )
    jobs = rows(stages / "o" / "jobs.csv")
    assert jobs[:3] == [
        ["policy", "job", "arrival", "start", "end"], ["fifo", "a", "0", "2000", "7000"],
        ["fifo", "b", "1000", "7000", "11000"],
    ]  # fmt: skip
    assert [row[:2] for row in jobs[3:]] == [["tree:last.json", "a"], ["tree:last.json", "b"]]
    assert rows(stages / "o" / "summary.csv")[1] == ["fifo", "2", "8500.0", "10000", "11000", "4", "11000", "4"]
    assert rows(stages / "l")[1] == ["fifo", "2000", "5000", "a", "0", "0"]
    # 12 executors and 2000 ms where nothing is said, all simple rules, as JSON
    told = json.loads(run("dag", "simulate", "stages.csv", "--json").stdout)
    named = run("dag", "simulate", "stages.csv", "--executors", 12, "--delay", 2000, "--json", "--policy",
                "fifo,fair,wfair,cp,srpt").stdout  # fmt: skip
    assert told["tables"] == json.loads(named)["tables"]
    assert [row["policy"] for row in told["tables"]["summary"]["rows"]] == ["fifo", "fair", "wfair", "cp", "srpt"]


def test_a_tree_goes_from_the_teacher_to_text_and_back(stages: Path) -> None:
    distil = ["dag", "distil", "--train", 2, "--rounds", 2, "--jobs", 12, "--load", "0.9", "--leaf", 10, "--leaves", 5]
    first = json.loads(run(*distil, "-o", "m", "--limit", "all", "--test", 1, "--json").stdout)["tables"]
    run(*distil, "-o", "again", "--limit", "all", "--test", 1)
    assert {f.name: f.read_bytes() for f in (stages / "m").iterdir()} == {
        f.name: f.read_bytes() for f in (stages / "again").iterdir()
    }
    assert [row["player"] for row in first["dag_rounds"]["rows"]] == ["rollout", "tree"]
    assert {row["policy"] for row in first["dag_fidelity"]["rows"]} == {"tree", "srpt", "fair", "chance"}
    assert 2 <= len(first["rules"]["rows"]) <= 5
    text = run("dag", "rules", "m").stdout
    run("dag", "rules", "m", "-o", "r.txt")
    assert (stages / "r.txt").read_text() == text == (stages / "m" / "rules.txt").read_text()
    table = json.loads(run("dag", "rules", "m", "--json").stdout)["tables"]["rules"]["rows"]
    assert table == first["rules"]["rows"]
    run("dag", "generate", "--jobs", 9, "--seed", 4, "-o", "s.csv")
    # the folder's own limit is all; a file's is fair unless told
    names = ["tree:m", "tree:r.txt", "tree:m/tree.json"]
    own = rows_of("s.csv", ",".join(names))
    told = rows_of("s.csv", ",".join(names), "--limit", "all")
    fair = rows_of("s.csv", "tree:m", "--limit", "fair")
    assert own["tree:m"] == told["tree:m"] == told["tree:r.txt"] == told["tree:m/tree.json"]
    assert own["tree:r.txt"] == own["tree:m/tree.json"] == fair["tree:m"] != own["tree:m"]
    (stages / "patch.txt").write_text("# the largest first\njob_rank > 0 -> prefer\n")
    patched = rows_of("s.csv", "tree:m", "--patch", "patch.txt")
    assert patched["tree:m"] != own["tree:m"]
    assert run("dag", "rules", "m", "--patch", "patch.txt").stdout.splitlines()[4] == "job_rank > 0 -> prefer"
    held = json.loads(run("dag", "evaluate", "--policy", "srpt,tree:m", "--load", "0.9", "--seed", "1..3", "--jobs", 12,
                          "--json").stdout)["tables"]  # fmt: skip
    assert [row["best_simple"] for row in held["dag_policies"]["rows"]] == ["srpt", "srpt"]
    assert any("the best simple rule" in note for note in held["dag_gains"]["notes"])
    asked = sum(row["decisions"] for row in first["dag_rounds"]["rows"])
    assert [row["taught"] for row in held["dag_gains"]["rows"]] == [asked]
    assert held["dag_fidelity"]["rows"][0]["policy"] == "tree:m"
    seen = run("dag", "evaluate", "--policy", "tree:m", "--seed", "200000..200001", code=ExitCode.USAGE)
    assert "trained on sets of the seeds 200000 to 200003" in seen.stderr


def rows_of(path: str, policies: str, *options: str) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    done = json.loads(run("dag", "simulate", path, "--policy", policies, *options, "--json").stdout)
    for row in done["tables"]["jobs"]["rows"]:
        found.setdefault(row["policy"], []).append([row["job"], row["start"], row["end"]])
    return found


def test_a_tree_learns_from_files_and_may_choose_amounts(stages: Path) -> None:
    run("dag", "generate", "--jobs", 20, "--load", 0.9, "-o", "s.csv")
    done = run("dag", "distil", "s.csv", "--teacher", "srpt", "--rounds", 1, "--limit", "tree", "--leaf", 5, "-o", "m",
               "--json")  # fmt: skip
    assert json.loads(done.stdout)["tables"]["dag_rounds"]["rows"][0]["sets"] == 1
    assert json.loads((stages / "m" / "card.json").read_text())["limit"] == "tree"
    rows_of("s.csv", "tree:m")
    staked = ["dag", "distil", "s.csv", "--rounds", 1, "--leaf", 5, "-o"]
    run(*staked, "even")
    run(*staked, "staked", "--weigh", "stake")
    even, weighed = (json.loads((stages / name / "tree.json").read_text())["tree"] for name in ("even", "staked"))
    assert total(even) < total(weighed)
    refused = run(*staked, "no", "--weigh", "stake", "--teacher", "srpt", code=ExitCode.USAGE)
    assert "--weigh stake: srpt" in refused.stderr
    wrong = run("dag", "simulate", "s.csv", "--policy", "tree:m", "--limit", "all", code=ExitCode.USAGE)
    assert "--limit" in wrong.stderr


def total(tree: dict[str, Any]) -> int:
    """The weight of all rows."""
    return int(tree["pos"] + tree["neg"]) if "pos" in tree else total(tree["lo"]) + total(tree["hi"])


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("--policy fast", ExitCode.USAGE, "there is no policy 'fast'"),
        ("--policy fifo,fifo", ExitCode.USAGE, "names fifo twice"),
        ("--policy fifo --limit all", ExitCode.USAGE, "--limit and --patch are for trees"),
        ("--policy tree:absent", ExitCode.BAD_INPUT, "absent"),
        ("--policy tree:last.json --limit tree", ExitCode.USAGE, "does not ask for the amount"),
        ("--policy tree:last.json --patch stages.csv", ExitCode.BAD_INPUT, "stages.csv:1"),
        ("--executors 0", ExitCode.USAGE, "--executors"),
        ("--csv stages.csv", ExitCode.USAGE, "stages.csv"),
        ("--table rules", ExitCode.USAGE, "no such table"),
    ],
)
@pytest.mark.usefixtures("stages")
def test_wrong_wishes_are_refused(words: str, code: int, told: str) -> None:
    assert told in run("dag", "simulate", "stages.csv", *words.split(), code=code).stderr


@pytest.mark.skipif(not ORACLES.is_dir(), reason="../shared is not there")
@pytest.mark.usefixtures("stages")
def test_recorded_cases_come_out_of_the_command() -> None:
    tree = f"tree:{ORACLES / 'distilled_tree.json'}"
    for limit in ("fair", "all"):
        run("dag", "simulate", ORACLES / "gen20_stages.csv", "--executors", 10, "--policy", tree, "--limit", limit,
            "--csv", "o")  # fmt: skip
        expected = rows(ORACLES / f"gen20_distilled-{limit}_expected.csv")[1:]
        assert [row[1:] for row in rows(Path("o/jobs.csv"))[1:]] == expected
