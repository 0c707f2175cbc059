from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.experiments import cells as cells_of
from gpuctl.replay.experiments import run as run_of
from gpuctl.replay.experiments.cells import STRETCHES, Base, Cell, plan
from gpuctl.replay.experiments.run import CellFolder, run
from gpuctl.replay.experiments.table import interval, tables
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.transforms import bootstrap, scale_load
from gpuctl.replay.models.resources import GPUS_ONLY
from gpuctl.replay.results.intervals import of_draws, stretches
from gpuctl.replay.results.metrics import summary
from gpuctl.replay.run import replay
from gpuctl.spread.engine import Engine

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """120 jobs of six days on two nodes, more than they can hold at times."""
    random = np.random.default_rng(3)
    submit = np.sort(random.uniform(0, 6 * 86_400, 120)).round()
    rows = zip(submit, random.lognormal(8.5, 1.2, 120).round() + 1, random.choice([1, 2, 4], 120), strict=True)
    path = tmp_path_factory.mktemp("jobs") / "jobs.csv"
    path.write_text(
        "job_id,submit_time,duration,num_gpus\n"
        + "".join(f"j{k},{at:.0f},{lasts:.0f},{gpus}\n" for k, (at, lasts, gpus) in enumerate(rows))
    )
    workload = read_jobs(path, GPUS_ONLY)
    return Base(workload, parse_cluster("2x4", workload), {"rates": "recorded", "overhead": "none"}, "days")


@pytest.fixture(scope="module")
def alone(base: Base) -> list[dict[str, Any]]:
    """The figures of `CELLS`, made one after the other."""
    return run(base, CELLS, engine=Engine(processes=1))


CELLS = plan([("fifo", {}), ("las", {})], {"scale_load": ("1", "1.5"), "add_nodes": ("0", "1")}, (1, 2, 3))


def test_a_cell_is_a_replay_of_its_own_jobs(base: Base) -> None:
    cell = Cell("las", (), (("scale_load", "1.5"), ("add_nodes", "1")), 2)
    workload = scale_load(bootstrap(base.workload, base.workload.size, 2), 1.5)
    nodes = parse_cluster("3x4", workload)
    [outcome] = replay(workload, nodes, [("las", {})], seed=2, **base.models)
    assert cells_of.run(base, cell) == summary(outcome, workload, nodes) | {"stretches": stretches([outcome])}


def test_every_combination_once_and_parameters_of_their_policy_alone() -> None:
    made = plan([("fifo", {}), ("x=las", {"a": "1"})], {"scale_load": ("1", "2"), "x.b": ("3", "4")}, (0, 1))
    assert [(cell.policy, dict(cell.factors), cell.seed) for cell in made[:3]] == [
        ("fifo", {"scale_load": "1"}, 0),
        ("x=las", {"scale_load": "1", "x.b": "3"}, 0),
        ("x=las", {"scale_load": "1", "x.b": "4"}, 0),
    ]
    assert dict(made[1].params) == {"a": "1", "b": "3"}
    assert len(made) == len(set(made)) == 2 * 2 * 3


def test_any_number_of_processes_gives_the_same_bytes_and_what_is_kept_is_not_done_again(
    base: Base, alone: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = CellFolder(tmp_path / "cells")
    assert run(base, CELLS, kept, engine=Engine(processes=2)) == alone
    files = sorted((tmp_path / "cells").iterdir())
    assert len(files) == len(CELLS)
    # one is torn, one is gone: these two alone are done again
    files[0].write_bytes(files[0].read_bytes()[:-7])
    files[1].unlink()
    done: list[Cell] = []
    real = cells_of.run
    monkeypatch.setattr(run_of.cells_of, "run", lambda base, cell: done.append(cell) or real(base, cell))
    assert run(base, CELLS, kept, engine=Engine(processes=1)) == alone
    assert len(done) == 2
    # other jobs, nodes, models or versions are another experiment
    done.clear()
    run(dataclasses.replace(base, warmup=0.1), CELLS[:1], kept, engine=Engine(processes=1))
    assert len(done) == 1


def test_policies_of_a_seed_replay_the_same_jobs(alone: list[dict[str, Any]]) -> None:
    work = {
        (cell.seed, dict(cell.factors)["scale_load"], row["work_finished_gpu_h"])
        for cell, row in zip(CELLS, alone, strict=True)
    }
    assert len({(seed, load) for seed, load, _ in work}) == 6
    assert len({hours for _, _, hours in work}) == 3, "a seed's jobs differ from another one's"


def test_intervals_are_students(alone: list[dict[str, Any]]) -> None:
    # worked out by hand: mean 4, standard deviation 2, t(2; 0.975) = 4.302653
    assert interval([2.0, 4.0, 6.0, None]) == pytest.approx(
        (4, 4 - 4.302653 * 2 / math.sqrt(3), 4 + 4.302653 * 2 / math.sqrt(3), 2), rel=1e-6
    )
    assert interval([5.0]) == (5, None, None, None)
    assert interval([]) == (None,) * 4
    short, whole = (table.frame for table in tables(CELLS, alone, "fifo"))
    assert whole.height == len(CELLS)
    [one] = short.filter(policy="las", scale_load=1.5, add_nodes=0).to_dicts()
    mine = whole.filter(policy="las", scale_load=1.5, add_nodes=0)
    theirs = whole.filter(policy="fifo", scale_load=1.5, add_nodes=0)
    assert (one["seeds"], mine["lower"].unique().to_list()) == (3, [one["wait_mean_s_low"]])
    change = interval((mine["wait_mean_s"] - theirs["wait_mean_s"]).to_list())
    assert (one["change_s"], one["change_low_s"], one["change_high_s"]) == pytest.approx(change[:3])
    assert short.filter(policy="fifo")["change_s"].null_count() == 4


def test_draws_of_a_trace_are_no_draws_of_the_cluster() -> None:
    waits = {"fifo": [100.0, 140.0, 90.0, 120.0], "sjf": [60.0, 70.0, 50.0, 65.0]}
    cells = [Cell(name, (), (), seed) for name in waits for seed in range(4)]
    row = dict.fromkeys(("wait_p95_s", "jct_mean_s", "jct_p95_s", "makespan_s"), 1.0) | {
        "preemptions": 0,
        "oracle": False,
    }
    figures = [
        row | {"policy": name, "wait_mean_s": wait, "utilization_pct": 50.0 + wait / 10, "stretches": 40.0}
        for name, every in waits.items()
        for wait in every
    ]
    short = tables(cells, figures, "fifo", resample="days")[0].frame
    [one] = short.filter(policy="sjf").to_dicts()
    fifo, sjf = (np.array(every) for every in waits.values())
    change = of_draws(sjf - fifo, (sjf + fifo) / 2, stretches=40.0)
    assert (one["change_s"], one["change_low_s"], one["change_high_s"]) == (np.mean(sjf - fifo), *change[:2])
    own = of_draws(sjf, stretches=40.0)
    assert (one["wait_mean_s_low"], one["wait_mean_s_high"]) == own[:2]
    # GPUs held and the like: draws do not show what a long run holds, benchmarks/coverage.py
    assert one["utilization_pct_low"] is one["utilization_pct_high"] is one["makespan_s_low"] is None
    narrow = tables(cells, figures, "fifo")[0].frame.filter(policy="sjf").to_dicts()[0]
    assert one["change_low_s"] < narrow["change_low_s"]
    assert narrow["change_high_s"] < one["change_high_s"]
    few = [each | {"stretches": 3.0} for each in figures]
    none = tables(cells, few, "fifo", resample="days")[0].frame.filter(policy="sjf").to_dicts()[0]
    assert [none[name] for name in none if name.endswith(("_low", "_high", "_low_s", "_high_s"))] == [None] * 16
    # draws of users differ in their load, and their mean is not that of the trace
    users = tables(cells, figures, "fifo", resample="users")[0].frame.filter(policy="sjf").to_dicts()[0]
    assert users["change_s"] == one["change_s"]
    assert [users[name] for name in users if name.endswith(("_low", "_high", "_low_s", "_high_s"))] == [None] * 16
    # where one job of twenty hardly waits, draws do not show how long it does
    assert one["wait_p95_s_low"] is one["wait_p95_s_high"] is None
    long = [each | {"wait_p95_s": 3 * each["wait_mean_s"]} for each in figures]
    p95 = tables(cells, long, "fifo", resample="days")[0].frame.filter(policy="sjf").to_dicts()[0]
    assert p95["wait_p95_s_low"] < 180 < p95["wait_p95_s_high"]


def test_every_column_states_what_it_is(base: Base) -> None:
    made = plan([("fifo", {}), ("tiresias", {})], {"tiresias.promote": ("4", "8")}, (1, 2))
    for table in tables(made, run(base, made, engine=Engine(processes=1)), "fifo"):
        assert [column.name for column in table.columns] == table.frame.columns
        assert all(column.description and column.unit for column in table.columns)
        assert table.frame["tiresias.promote"].dtype == pl.Float64


def test_a_load_that_is_none_is_refused(base: Base) -> None:
    with pytest.raises(UsageError, match="scale-load fast"):
        cells_of.run(base, Cell("fifo", (), (("scale_load", "fast"),), 1))


def test_a_worker_that_is_killed_is_reported_and_loses_no_cell_that_is_done(base: Base, tmp_path: Path) -> None:
    kept = CellFolder(tmp_path)
    run(base, CELLS[:3], kept, engine=Engine(processes=1))
    broken = Cell("tests/unit/replay/experiments/killed.py:Killed", (), (), 1)
    with pytest.raises(Exception, match="a worker was killed"):
        run(base, [*CELLS[:4], broken], kept, engine=Engine(processes=2))
    assert len(list(tmp_path.iterdir())) >= 3


def test_references_of_a_cell_may_change(tmp_path: Path) -> None:
    policy, folder = tmp_path / "own.py", tmp_path / "conf"
    folder.mkdir()
    for path in (policy, folder / "a.conf"):
        path.write_text("1")
    cells = [
        Cell(f"x={policy}:Own", (), (), 1),
        Cell("slurm", (("conf", str(folder)),), (), 1),
        Cell("easy", (("limits_from", f"asked,{policy}:upper_s"),), (), 1),
    ]
    before = [cells_of.key("base", cell) for cell in cells]
    assert [cells_of.key("base", cell) for cell in cells] == before
    for path in (policy, folder / "a.conf"):
        path.write_text("23")
    assert all(cells_of.key("base", cell) != old for cell, old in zip(cells, before, strict=True))


def test_a_folder_that_is_called_like_a_policy_or_a_value_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell("fifo", (("order", "list"),), (), 1)
    before = cells_of.key("base", cell)
    for name in ("fifo", "list"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log").write_text("1")
    monkeypatch.chdir(tmp_path)
    assert cells_of.key("base", cell) == before


def test_slurm_treats_who_is_drawn_again_as_another_user(tmp_path: Path) -> None:
    """Its fair share goes by user and account: the same jobs, written out with users of their own, end the same."""
    random = np.random.default_rng(11)
    rows = [
        (f"j{k}", 40.0 * k, random.integers(60, 4000), random.choice([1, 2, 4]), user, f"team{user % 2}")
        for k, user in enumerate(random.integers(0, 6, 150))
    ]
    drawn = np.bincount(np.random.default_rng(2).integers(0, 6, 6), minlength=6)
    assert drawn.max() > 1
    again = [
        (f"{name}~{n}", at, lasts, gpus, f"u{user}~{n}" if n else f"u{user}", team)
        for name, at, lasts, gpus, user, team in rows
        for n in range(drawn[user])
    ]
    plain = [(name, at, lasts, gpus, f"u{user}", team) for name, at, lasts, gpus, user, team in rows]
    found = []
    for name, jobs in (("trace", plain), ("drawn", again)):
        path = tmp_path / f"{name}.csv"
        lines = [
            "job_id,submit_time,duration,num_gpus,user,account,requested_time",
            *(",".join(map(str, (*job, 2 * job[2]))) for job in jobs),
        ]
        path.write_text("\n".join(lines) + "\n")
        found.append(read_jobs(path, GPUS_ONLY))
    models = {"rates": "recorded", "overhead": "none"}
    nodes = parse_cluster("2x4", found[0])
    base, fifo = Base(found[0], nodes, models, "users", 0.0), Cell("fifo", (), (), 2)
    for shares in ("user", "account"):
        [outcome] = replay(found[1], nodes, [("slurm", {"shares": shares})], seed=2, **models)
        there = cells_of.run(base, Cell("slurm", (("shares", shares),), (), 2))
        assert there == summary(outcome, found[1], nodes) | {"stretches": stretches([outcome])}
        assert there["wait_mean_s"] != cells_of.run(base, fifo)["wait_mean_s"]


CHANGED = plan([("fifo", {})], {"add_nodes": ("0", "1")}, (1, 2, 3))


def test_the_difference_from_the_unchanged_replay_is_of_the_same_jobs(base: Base) -> None:
    compared = dataclasses.replace(base, unchanged=base)
    found = run(compared, CHANGED, engine=Engine(processes=1))
    short, every = tables(CHANGED, found, "fifo", resample="days")[0].frame, found
    for seed in range(3):
        same, other = every[2 * seed], every[2 * seed + 1]
        assert same["vs_unchanged_s"] is None
        assert other["unchanged_s"] == same["wait_mean_s"]
        assert other["vs_unchanged_s"] == pytest.approx(other["wait_mean_s"] - same["wait_mean_s"])
    row = short.filter(add_nodes=1.0).row(0, named=True)
    assert row["vs_unchanged_s"] == pytest.approx(np.mean([one["vs_unchanged_s"] for one in every[1::2]]))


def test_the_order_of_cells_and_the_processes_make_no_difference_to_what_is_unchanged(base: Base) -> None:
    compared = dataclasses.replace(base, unchanged=base, replayed={})
    found = run(compared, CHANGED, engine=Engine(processes=1))
    back = run(dataclasses.replace(compared, replayed={}), CHANGED[::-1], engine=Engine(processes=2))
    assert found == back[::-1]
    assert {cell.seed for cell in compared.replayed} == {3}


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_models_own_error_is_in_intervals_of_differences(seeds: int) -> None:
    cells = plan([("fifo", {}), ("las", {})], {"add_nodes": ("1",)}, tuple(range(seeds)))
    figures = [
        {
            "policy": "", "oracle": False, **dict.fromkeys(("wait_p95_s", "jct_mean_s", "jct_p95_s"), 1.0),
            "utilization_pct": 1.0, "makespan_s": 1.0, "preemptions": 0, "wait_mean_s": 100.0 + 3 * number,
            STRETCHES: 100.0, "unchanged_s": 110.0 + number, "vs_unchanged_s": 2 * number - 10.0,
            "vs_unchanged_low_s": 2 * number - 14.0, "vs_unchanged_high_s": 2 * number - 7.0,
            "unchanged_stretches": 100.0,
        }
        for number, _ in enumerate(cells)
    ]  # fmt: skip
    known, wide = (
        tables(cells, figures, "fifo", resample="days", error=error)[0].frame.to_dicts() for error in (None, 40.0)
    )
    names = ["vs_unchanged"] + (["change"] if seeds > 1 else [])
    for before, after in zip(known, wide, strict=True):
        for name in names if before["policy"] == "las" else names[:1]:
            mean, low, high = (before[f"{name}_{end}"] for end in ("s", "low_s", "high_s"))
            assert after[f"{name}_s"] == mean
            assert after[f"{name}_low_s"] == pytest.approx(mean - math.hypot(mean - low, 40))
            assert after[f"{name}_high_s"] == pytest.approx(mean + math.hypot(high - mean, 40))
