"""``gpuctl accel``: requests drawn and simulated, each option and its default, other tables of costs, wrong wishes."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.core.errors import ExitCode

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

TINY = """model,idx,kind,compute_us,dram_bytes,energy_uj
m,0,fast,4,100,1
m,0,slow,6,200,2
m,1,fast,10,800,3
m,1,slow,5,0,2
"""
ASKED = "request,tenant,model,arrival_us,deadline_us\nb,t,m,3,21\na,t,m,0,14\n"


@pytest.fixture
def tiny(tmp_path: Path) -> list[object]:
    """Arguments of a simulation with costs and kinds of one's own; requests in no order, without a quality."""
    (tmp_path / "layers.csv").write_text(TINY)
    (tmp_path / "requests.csv").write_text(ASKED)
    return [tmp_path / "requests.csv", "--system", "fast:1,slow:1@100", "--tables", tmp_path / "layers.csv"]


def test_requests_are_drawn_and_simulated(gpuctl: Gpuctl, tmp_path: Path) -> None:
    made = gpuctl("accel", "generate").stdout
    given = ("--system", "six", "--models", "all", "--n", "100", "--load", "0.9", "--seed", "1")
    gpuctl("accel", "generate", *given, "-o", tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == made
    assert gpuctl("accel", "generate", "--burst").stdout != made
    rows = json.loads(gpuctl("--json", "accel", "generate", "--n", "3").stdout)["tables"]["accel_stream"]["rows"]
    assert [f"{row['request']},{row['tenant']},{row['model']}" for row in rows] == [
        line.rsplit(",", 3)[0] for line in made.splitlines()[1:4]
    ]
    (tmp_path / "few.csv").write_text("\n".join(made.splitlines()[:31]) + "\n")
    csv = tmp_path / "out"
    done = gpuctl("accel", "simulate", tmp_path / "few.csv", "--policy", "sjf-eft,edf-eft+h", "--json", "--csv", csv)
    tables = json.loads(done.stdout)["tables"]
    summary, requests = pl.read_csv(csv / "summary.csv"), pl.read_csv(csv / "requests.csv")
    assert requests.columns == ["policy", "request", "start_us", "end_us", "met"]
    assert requests["policy"].to_list() == ["sjf-eft"] * 30 + ["edf-eft+h"] * 30
    assert summary["met"].to_list() == [row["met"] for row in tables["accel"]["rows"]] == [
        requests.filter(pl.col("policy") == name)["met"].sum() for name in ("sjf-eft", "edf-eft+h")
    ]  # fmt: skip
    groups = pl.read_csv(csv / "groups.csv").group_by("policy", "by", maintain_order=True).agg(pl.col("met").sum())
    assert groups["met"].to_list() == [met for met in summary["met"].to_list() for _ in range(3)]


def test_requests_come_when_those_of_a_trace_came(gpuctl: Gpuctl, tmp_path: Path) -> None:
    log = tmp_path / "AzureLLMInferenceTrace_code.csv"
    times = ("00:00.0000000", "00:01.0000000", "00:04.0000000", "00:10.0000000")
    log.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"2023-11-16 18:{t},9,9\n" for t in times))
    gpuctl("accel", "generate", "--from", log, "--load", "2", "--n", "3", "-o", tmp_path / "r.csv")
    at, deadline = (pl.read_csv(tmp_path / "r.csv")[name].to_list() for name in ("arrival_us", "deadline_us"))
    assert at[0] == 0
    assert at[2] == pytest.approx(4 * at[1], abs=0.01)
    assert all(end > begin for begin, end in zip(at, deadline, strict=True))
    done = gpuctl("accel", "generate", "--from", log, "--burst", check=False)
    assert done.returncode == ExitCode.USAGE
    assert "4 requests, not 100" in gpuctl("accel", "generate", "--from", log).stderr


def test_costs_of_ones_own(gpuctl: Gpuctl, tiny: list[object], tmp_path: Path) -> None:
    gpuctl("accel", "simulate", *tiny, "--policy", "edf-eft", "--log", tmp_path / "log.csv", "--csv", tmp_path / "out")
    # a on fast 0-4, for which b waits; from 4 a on slow until 9, b on fast until 8; b waits for slow, and is there 9-14
    assert (tmp_path / "out" / "requests.csv").read_text().splitlines() == [
        "policy,request,start_us,end_us,met", "edf-eft,b,4.0,14.0,1", "edf-eft,a,0.0,9.0,1",
    ]  # fmt: skip
    log = pl.read_csv(tmp_path / "log.csv")
    assert log.columns == ["policy", "request", "layer", "sub_accelerator", "start_us", "end_us"]
    assert log.height == 4
    summary = pl.read_csv(tmp_path / "out" / "summary.csv").row(0, named=True)
    assert (summary["static_mj"], summary["jain"], summary["energy_mj"]) == (None, 1.0, 0.006)
    (tmp_path / "kinds.csv").write_text("kind,static_mw\nfast,50\nslow,10\n")
    done = gpuctl("accel", "simulate", *tiny, "--kinds", tmp_path / "kinds.csv", "--json")
    first = json.loads(done.stdout)["tables"]["accel"]["rows"][0]
    assert first["static_mj"] == pytest.approx(60 * first["makespan_us"] / 1e6)


def test_tables_are_listed_and_checked(gpuctl: Gpuctl, tmp_path: Path) -> None:
    rows = json.loads(gpuctl("accel", "tables", "--json", "--check").stdout)["tables"]["accel_models"]["rows"]
    assert len(rows) == 8 * 4
    assert {row["model"]: row["giga_macs"] for row in rows}["resnet50"] == pytest.approx(4.1, rel=0.02)
    (tmp_path / "bad.csv").write_text(
        "model,idx,kind,macs,weight_bytes,in_bytes,out_bytes,compute_us,dram_bytes,energy_uj,utilisation\n"
        "m,0,simba-s,512000,10,10,10,1,29,1,1.5\n"
    )
    done = gpuctl("accel", "tables", tmp_path / "bad.csv", "--check", check=False)
    assert done.returncode == ExitCode.CHECK_FAILED
    assert done.stderr.count("wrong: m, layer 0, simba-s:") == 3


def test_a_model_is_trained_scored_and_run(gpuctl: Gpuctl, tmp_path: Path) -> None:
    model, wishes = tmp_path / "model", ("--system", "simba-s:1,eyeriss-s:1@8000", "--models", "lstm-2x512")
    gpuctl("accel", "train", "relmas", *wishes, "--generations", "1", "-o", model)
    card = json.loads((model / "card.json").read_text())
    assert (card["generations"], card["episodes"], card["models"]) == (1, 128, ["lstm-2x512"])
    scored = ("accel", "evaluate", model, "--loads", ".8,1.2", "--streams", "3", "--n", "20", "--json")
    document = json.loads(gpuctl(*scored).stdout)
    gains, loads = (document["tables"][name]["rows"] for name in ("accel_gains", "accel_loads"))
    assert [row["load"] for row in gains] == [0.8, 1.2]
    assert len(loads) == 2 * 8
    assert all(row["train_episodes"] == 128 and row["rule_sla"] >= 0 for row in gains)
    (tmp_path / "result.json").write_text(json.dumps(document))
    page = tmp_path / "page.html"
    gpuctl("report", tmp_path / "result.json", "--html", page)
    assert "What learning gains" in page.read_text()
    gpuctl("accel", "generate", *wishes, "--n", "20", "-o", tmp_path / "r.csv")
    done = gpuctl("accel", "simulate", tmp_path / "r.csv", "--system", "simba-s:1,eyeriss-s:2@8000", "--policy",
                  f"relmas:{model}", "--json")  # fmt: skip
    assert "was trained for another system" in done.stderr
    assert json.loads(done.stdout)["tables"]["accel"]["rows"][0]["overhead_uj"] > 0
    refused = gpuctl("accel", "evaluate", model, "--seed", "900000", check=False)
    assert (refused.returncode, "learnt from" in refused.stderr) == (ExitCode.USAGE, True)


@pytest.mark.skipif(find_spec("torch") is not None, reason="PyTorch is installed")
def test_policies_that_need_pytorch_report_it(gpuctl: Gpuctl, tmp_path: Path) -> None:
    done = gpuctl("accel", "train", "relmas", "--algo", "ddpg", "-o", tmp_path / "m", check=False)
    assert done.returncode == ExitCode.MISSING_DEPENDENCY
    assert "gpuctl-toolkit[learn]" in done.stderr.splitlines()[0]


WRONG = {
    "no such policy": (["--policy", "edf-fast"], ExitCode.USAGE, "edf-fast"),
    "no policy at all": (["--policy", ","], ExitCode.USAGE, "names none"),
    "no such kind": (["--system", "simba-xl:1@100"], ExitCode.USAGE, "simba-xl"),
    "no bandwidth": (["--system", "fast:1@0"], ExitCode.USAGE, "bandwidth"),
    "a period of nothing": (["--period", "0"], ExitCode.USAGE, "--period"),
    "no such model": (["--policy", "relmas:nowhere"], ExitCode.BAD_INPUT, "nowhere"),
    "not tiny": (["--policy", "exhaustive", "--period", "5"], ExitCode.USAGE, "--period"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_wishes(gpuctl: Gpuctl, tiny: list[object], case: str) -> None:
    words, code, told = WRONG[case]
    done = gpuctl("accel", "simulate", *tiny, *words, check=False)
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr


BAD = {
    "twice": ("b,t,m,3,21\nb,t,m,3,21\n", ":3: request 'b' appears twice"),
    "no number": ("b,t,m,3,soon\n", ":2: deadline_us is 'soon', expected a number"),
    "no model": ("b,t,mm,3,21\n", ":2: model 'mm' has no costs"),
    "too many cells": ("b,t,m,3,21,9\n", ":2: has more cells"),
    "nothing": ("", "no rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_requests(gpuctl: Gpuctl, tiny: list[object], tmp_path: Path, case: str) -> None:
    rows, told = BAD[case]
    (tmp_path / "requests.csv").write_text("request,tenant,model,arrival_us,deadline_us\n" + rows)
    done = gpuctl("accel", "simulate", *tiny, check=False)
    assert (done.returncode, told in done.stderr) == (ExitCode.BAD_INPUT, True), done.stderr
