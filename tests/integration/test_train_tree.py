"""``gpuctl train tree`` and the policy ``tree``: from a teacher to rules, edited, and back into a replay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpuctl.core.errors import ExitCode
from tests.cli_runner import run_command

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def run(*words: object, code: int = 0) -> str:
    ended = run_command("--quiet", *map(str, words))
    assert ended.returncode == code, ended
    return ended.stderr if code else ended.stdout


def mean_jct(*words: object) -> dict[str, float]:
    done = run("replay", *words, "--table", "replay_summary", "--json")
    return {row["policy"]: row["jct_mean_s"] for row in json.loads(done)["tables"]["replay_summary"]["rows"]}


def test_srtf_becomes_rules_that_replays_run(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = root / "sample_data" / "jobs.csv"
    some = [jobs, "--cluster", "4x8", "--window", "0..100000"]
    train = ["train", "tree", *some, "--teacher", "srtf", "--leaf", 20]
    found = json.loads(run(*train, "-o", "rules", "--json"))
    assert found["settings"]["run it with"] == "--policy tree --param tree.file=rules --param tree.preempt=true"
    scores = {row["policy"]: row["same_pct"] for row in found["tables"]["tree_fidelity"]["rows"]}
    assert scores["tree"] > max(scores["chance"], scores["oldest first"])
    assert len(found["tables"]["rules"]["rows"]) <= 31
    run(*train, "-o", "again")
    assert {f.name: f.read_bytes() for f in (tmp_path / "rules").iterdir()} == {
        f.name: f.read_bytes() for f in (tmp_path / "again").iterdir()
    }
    mine = [*some, "--param", "tree.file=rules", "--param", "tree.preempt=true"]
    means = mean_jct(*mine, "--policy", "fifo-skip,tree,srtf,json=tree", "--param", "json.file=rules/tree.json")
    assert means["srtf"] <= means["tree"] < 0.9 * means["fifo-skip"]
    assert means["json"] == means["tree"]
    # by hand: the newest first; without a file: fifo-skip
    (tmp_path / "mine.txt").write_text("place <= 0 and jobs > 1 -> avoid\notherwise -> 50 %\n")
    means = mean_jct(*some, "--policy", "fifo-skip,tree,mine=tree", "--param", "mine.file=mine.txt")
    assert means["tree"] == means["fifo-skip"] != means["mine"]


def test_policies_that_cannot_be_distilled_are_rejected(root: Path, tmp_path: Path) -> None:
    jobs = root / "sample_data" / "jobs.csv"
    out = tmp_path / "m"
    assert "no policy 'fast'" in run(
        "train", "tree", jobs, "--cluster", "4x8", "--teacher", "fast", "-o", out, code=ExitCode.USAGE
    )
    assert "without nodes" in run("train", "tree", jobs, "-o", out, code=ExitCode.USAGE)
    assert "never had a choice" in run("train", "tree", jobs, "--cluster", "400x8", "-o", out, code=ExitCode.BAD_INPUT)
    assert not out.exists()
    assert "no such file" in run(
        "replay", jobs, "--cluster", "4x8", "--policy", "tree", "--param", f"tree.file={out}", code=ExitCode.USAGE
    )
