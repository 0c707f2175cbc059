"""``gpuctl deferrable`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
ORACLES = ROOT.parent / "shared" / "oracles" / "osdec"
SAMPLE = ROOT / "sample_data" / "jobs.csv"
HAND = "job,earliest,latest,gpus,slots\na,0,3,2,3\nb,0,4,2,2\nc,1,5,4,2\nd,2,6,1,2\n"
LEFT = "slot,on_demand,leftover\n0,,4\n1,,4\n2,,1\n3,,4\n4,,4\n5,,4\n6,,4\n7,,4\n"


def test_a_trace_becomes_slots_and_policies_stand_side_by_side(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    folder, out = tmp_path / "slots", tmp_path / "out"
    done = gpuctl("deferrable", "convert", SAMPLE, "-o", folder)
    assert "300 jobs: " in done.stderr
    jobs = pl.read_csv(folder / "jobs.csv")
    capacity = pl.read_csv(folder / "capacity.csv")
    assert (jobs.columns, capacity.columns) == (
        ["job", "earliest", "latest", "gpus", "slots"], ["slot", "on_demand", "leftover"],
    )  # fmt: skip
    # without --gpus the cluster is as large as the peak of on-demand jobs
    assert capacity["leftover"].min() == 0
    assert (capacity["on_demand"] + capacity["leftover"]).unique().to_list() == [capacity["on_demand"].max()]
    done = gpuctl("deferrable", "simulate", folder, "--json", "--csv", out)
    table = json.loads(done.stdout)["tables"]["deferrable"]
    names = ["asap", "latest", "quantile:10", "quantile:50", "quantile:90", "clairvoyant"]
    assert [row["policy"] for row in table["rows"]] == names
    assert [row["policy"] for row in table["rows"] if row["oracle"]] == ["clairvoyant"]
    rows = pl.read_csv(out / "jobs.csv")
    assert rows.columns == ["policy", "job", "start", "end", "evictions", "state"]
    assert rows["job"].to_list() == jobs["job"].to_list() * len(names)
    for row in table["rows"]:
        own = rows.filter(policy=row["policy"])
        ended = own.filter(state="done")
        assert (row["jobs"], row["done"]) == (own.height, ended.height)
        assert ended.select(pl.col("end") - pl.col("start")).to_series().to_list() == (
            jobs.filter(pl.col("job").is_in(ended["job"].implode()))["slots"].to_list()
        )
        assert row["evictions"] == own["evictions"].sum()
    shown = gpuctl("deferrable", "simulate", folder, "--format", "table").stdout
    assert "run to their end" in shown
    assert "evictions lose" in shown
    # slots of another length: a day has fewer of them
    gpuctl("deferrable", "convert", SAMPLE, "--slot", "1h", "--share", "100", "--gpus", "99", "-o", folder)
    about = json.loads((folder / "about.json").read_text())
    assert (about["slot_s"], about["gpus"], about["share_pct"]) == (3600, 99, 100)
    told = gpuctl("deferrable", "simulate", folder, "--json", "--policy", "asap").stdout
    assert json.loads(told)["settings"]["slots of a day"] == "24"


def test_hand_made_files_and_each_option(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    jobs, left, out = tmp_path / "j.csv", tmp_path / "left.csv", tmp_path / "out"
    jobs.write_text(HAND)
    left.write_text(LEFT)

    def ran(*words: str) -> list[list[Any]]:
        gpuctl("deferrable", "simulate", left, "--jobs", jobs, "--csv", out, *words)
        return [list(row) for row in pl.read_csv(out / "jobs.csv").rows()]

    assert ran("--policy", "asap", "--season", "4") == [
        ["asap", "a", 3, 6, 1, "done"], ["asap", "b", 0, 2, 0, "done"], ["asap", "c", None, None, 0, "missed"],
        ["asap", "d", 2, 4, 0, "done"],
    ]  # fmt: skip
    optimum = ran("--policy", "optimum", "--time-limit", "5")
    assert [row[2] for row in optimum] == [None, 0, 3, 5]
    assert ran("--policy", "asap,optimum")[4:] == optimum
    # of two that lose the same the later row goes; by loss c (its first slot) goes before a
    left.write_text("slot,leftover\n0,4\n1,8\n2,5\n3,8\n4,8\n5,8\n6,8\n7,8\n")
    jobs.write_text("job,gpus,slots,earliest,latest\na,1,5,1,1\nb,3,4,0,4\nc,4,2,1,4\n")
    assert [row[4] for row in ran("--policy", "asap")] == [0, 0, 1]
    assert [row[4] for row in ran("--policy", "asap", "--evict", "smallest-loss")] == [1, 0, 1]


@pytest.mark.parametrize(
    ("left", "jobs", "words", "code", "told"),
    [
        (LEFT, None, (), 3, "--jobs JOBS.csv"),
        (LEFT, HAND, ("--policy", "best"), 2, "there is no policy 'best'"),
        (LEFT, HAND, ("--policy", "quantile:101"), 2, "P from 0 to 100"),
        (LEFT, HAND, ("--policy", "asap,asap"), 2, "twice"),
        (LEFT, HAND, ("--policy", "osdec"), 2, "the model is missing"),
        (LEFT, HAND.replace("d,2,6", "d,2,7"), (), 3, "j.csv:5: latest is 7"),
        (LEFT, HAND.replace("b,0", "a,0"), (), 3, "j.csv:3: the name of a job repeats the name in line 2"),
        (LEFT, HAND.replace("c,1,5", "c,1,0"), (), 3, "j.csv:4: latest is '0'"),
        (LEFT, HAND.replace("gpus", "GPUs"), (), 3, "j.csv:1: lacks the columns gpus"),
        (LEFT.replace("3,,4", "5,,4"), HAND, (), 3, "left.csv:5: slot is '5', expected 3"),
        (LEFT.replace("2,,1", "2,,-1"), HAND, (), 3, "left.csv:4: leftover is '-1'"),
        ("", HAND, (), 3, "left.csv:1: lacks the columns slot, leftover"),
        ("slot,leftover\n", HAND, (), 3, "has 0 slots"),
    ],
)
def test_errors_are_reported(
    gpuctl: Callable[..., Any],
    tmp_path: Path,
    left: str,
    jobs: str | None,
    words: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    (tmp_path / "left.csv").write_text(left)
    more: tuple[Any, ...] = ()
    if jobs is not None:
        (tmp_path / "j.csv").write_text(jobs)
        more = ("--jobs", tmp_path / "j.csv")
    done = gpuctl("deferrable", "simulate", tmp_path / "left.csv", *more, *words, check=False)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_the_conversion_of_the_oracle(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    if not ORACLES.is_dir():
        pytest.skip("no oracles beside the checkout")
    gpuctl(
        "deferrable", "convert", ORACLES / "philly7_trace.csv", "--slot", "30m", "--share", "50", "--gpus", "110", "-o",
        tmp_path,
    )  # fmt: skip
    for name in ("capacity", "jobs"):
        ours, theirs = (tmp_path / f"{name}.csv", ORACLES / f"philly7_{name}.csv")
        assert ours.read_text().splitlines() == theirs.read_text().splitlines()
    gpuctl("deferrable", "simulate", tmp_path, "--policy", "quantile:10,asap", "--csv", tmp_path / "out")
    found = pl.read_csv(tmp_path / "out" / "jobs.csv").filter(policy="quantile:10").drop("policy")
    assert found.equals(pl.read_csv(ORACLES / "philly7_quantile10_expected.csv"))


def test_a_store_with_a_queue_of_jobs_that_can_wait(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    log = tmp_path / "jobs.csv"
    log.write_text(
        "job_id,submit_time,duration,num_gpus,vc\nx,0,7200,2,now\ny,100,3600,4,later\nz,200,100,1,now\nw,9000,60,1,now\n"
    )
    gpuctl("deferrable", "convert", log, "--queue", "later", "-o", tmp_path / "out")
    assert (tmp_path / "out" / "jobs.csv").read_text().splitlines()[1:] == []
    assert json.loads((tmp_path / "out" / "about.json").read_text())["left_out_too_large"] == 1
    gpuctl("deferrable", "convert", log, "--queue", "later", "--gpus", "6", "-o", tmp_path / "out")
    assert (tmp_path / "out" / "jobs.csv").read_text().splitlines()[1:] == ["y,1,4,4,2"]
    assert (tmp_path / "out" / "capacity.csv").read_text().splitlines()[1:] == [
        "0,3,3", "1,2,4", "2,2,4", "3,2,4", "4,0,6", "5,1,5",
    ]  # fmt: skip
    done = gpuctl("deferrable", "convert", log, "--queue", "latr", "-o", tmp_path / "out", check=False)
    assert done.returncode == 3
    assert "did you mean later" in done.stderr


def test_a_rule_is_learned_scored_and_replayed(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    folder, rule = tmp_path / "slots", tmp_path / "rule"
    gpuctl("deferrable", "convert", SAMPLE, "--gpus", "32", "-o", folder)
    done = gpuctl("deferrable", "train", folder, "--minutes", "0.01", "--seed", "4", "-o", rule)
    assert "score on held-out cases" in done.stderr
    about = json.loads((rule / "card.json").read_text())
    assert about["budget"]["generations"] == 2
    assert about["trained_on"]["cases"] == "a trace's own"
    told = gpuctl("deferrable", "simulate", folder, "--policy", f"osdec:{rule}", "--json").stdout
    assert json.loads(told)["tables"]["deferrable"]["rows"][0]["policy"] == f"osdec:{rule}"
    told = gpuctl("deferrable", "evaluate", rule, "--loads", "0.3", "--seeds", "1..2", "--json").stdout
    rows = json.loads(told)["tables"]["deferrable_scores"]["rows"]
    assert [row["train_minutes"] for row in rows] == [None] * 7 + [0.01]
    done = gpuctl(
        "replay", SAMPLE, "--cluster", "4x8", "--policy", "osdec", "--model", rule, "--table", "replay_summary"
    )
    assert "deferrable jobs ran to their end in leftover capacity" in done.stderr
    for words, code, said in (
        (("deferrable", "train", "-o", rule, "--aux", "all"), 2, "--aux is for --algo ppo"),
        (("deferrable", "train", "-o", rule, "--loads", "0"), 2, "--loads 0"),
        (("deferrable", "train", tmp_path / "none", "-o", tmp_path / "r"), 3, "no such folder"),
        (("deferrable", "evaluate", "--seeds", "1000"), 2, "trained on"),
        (("replay", SAMPLE, "--cluster", "4x8", "--policy", "fifo", "--model", rule), 2, "add --policy osdec"),
        (("replay", SAMPLE, "--cluster", "4x8", "--policy", "osdec", "--model", folder), 3, "card.json"),
        (("replay", SAMPLE, "--cluster", "4x8", "--policy", "osdec", "--param", "queue=x"), 2, "queue=x"),
        (("deferrable", "convert", SAMPLE), 2, "the output file is missing"),
        (("deferrable", "convert", SAMPLE, "--slot", "5s", "-o", folder), 2, "--slot 5s"),
    ):
        done = gpuctl(*words, check=False)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        done = gpuctl("deferrable", "train", "--algo", "ppo", "-o", tmp_path / "ppo", check=False)
        assert done.returncode == 5
        assert "gpuctl-toolkit[learn]" in done.stderr
