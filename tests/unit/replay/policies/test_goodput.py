"""Goodput, options, choices and places of Sia and Pollux, worked out by hand and by trying everything."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.compiled.bundles import records
from gpuctl.compiled.jit import compiled
from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies.goodput import goodput_kernel, options_kernel
from gpuctl.replay.policies.goodput.choice_kernel import Choice, exactly, join, narrow
from gpuctl.replay.policies.goodput.model import counts, read_apps, reference
from gpuctl.replay.policies.goodput.search_kernel import POPULATION, SEARCH, Search, search
from gpuctl.replay.run import replay
from tests.unit.replay.policies.test_scores import simulation

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "job_id,submit_time,duration,num_gpus,job_class"
GOODPUTS = {
    ("cifar10", "aws", 1, 1, 0): 1203.839118, ("cifar10", "aws", 4, 1, 0): 3519.641626,
    ("cifar10", "aws", 8, 2, 0): 3645.409153, ("cifar10", "aws", 8, 2, 9): 9704.837554,
    ("bert", "rtx", 8, 1, 0): 147.164625, ("bert", "dgx-ext", 16, 2, 9): 1407.804659,
    ("yolov3", "aws", 2, 1, 0): 35.188598,
}  # fmt: skip


@pytest.mark.parametrize("key", GOODPUTS, ids=str)
def test_goodput(key: tuple[str, str, int, int, int]) -> None:
    name, kind, gpus, nodes, tenth = key
    app = read_apps()[name]
    assert app.on[kind].goodput(gpus, nodes, app.noise)[tenth] == pytest.approx(GOODPUTS[key], abs=1e-6)


def test_a_job_alone_on_its_gang_takes_its_run_time() -> None:
    found = reference(read_apps()["cifar10"], "aws", 4, 4, 16)
    assert 3600 / (0.1 / found).sum() == pytest.approx(16886760.533, abs=1e-3)


def test_counts_divide_the_next_one() -> None:
    assert counts(4, 3) == [1, 2, 4, 8, 12]
    assert counts(8, 2) == [1, 2, 4, 8, 16]
    assert counts(6, 3) == [1, 2, 6, 12, 18]
    assert counts(8, 40)[-1] == 128


# ---- the exact choice

Options = list[list[tuple[int, int, int]]]


def chosen(options: Options, room: list[int]) -> list[int]:
    """Which of each job's options, as (group, GPUs, cost), is chosen."""
    lists = [each for k, each in enumerate(options) if each not in options[:k]]
    flat = [option for each in lists for option in each]
    jobs, size = len(options), len(flat)
    choice = Choice(
        first=np.cumsum([0, *map(len, lists)]), jobs_of=np.array([options.count(each) for each in lists]), best=jobs,
        most=jobs, sure=jobs, take=jobs, twin=jobs, group=np.array([o[0] for o in flat], "i4"),
        gpus=np.array([o[1] for o in flat], "i4"), cost=np.array([o[2] for o in flat]), open=size, many=size,
        room=np.array(room), used=len(room), price=len(room), slope=size, weight=size, core=jobs, pick=jobs,
    )  # fmt: skip
    narrow(choice, len(lists))
    # lists without GPUs as their last option are not of jobs that wait together
    lists_of = [lists.index(own) for own in options]
    alone = next((e for e, own in enumerate(lists) if all(each[-1][0] < 0 for each in lists[e:])), len(lists))
    join(choice, alone, len(lists))
    picks, core, seen = [], [], [0] * len(lists)
    for k, e in enumerate(lists_of):
        best, twin = int(choice.best[e]), int(choice.twin[e])
        picks.append(best if best >= 0 else int(choice.first[e + 1]) - 1)
        if best < 0:
            if seen[twin] < choice.sure[twin]:
                picks[k] = int(choice.take[e])
            elif seen[twin] < choice.most[twin]:
                choice.core[len(core)] = e
                core.append(k)
            seen[twin] += 1
    exactly(choice, len(core))
    for at, k in enumerate(core):
        picks[k] = int(choice.pick[at])
    return [pick - int(choice.first[e]) for pick, e in zip(picks, lists_of, strict=True)]


def tried(options: Options, room: list[int]) -> list[int]:
    """The same by trying everything, in lexicographic order."""
    best: tuple[int, list[int]] | None = None
    for picks in product(*(range(len(job)) for job in options)):
        used, cost = [0] * len(room), 0
        for job, pick in zip(options, picks, strict=True):
            group, gpus, price = job[pick]
            cost += price
            if group >= 0:
                used[group] += gpus
        if all(a <= b for a, b in zip(used, room, strict=True)) and (best is None or cost < best[0]):
            best = cost, list(picks)
    assert best is not None
    return best[1]


@pytest.mark.parametrize("seed", range(150))
def test_the_choice_is_the_first_best_one(seed: int) -> None:
    draw = np.random.default_rng(seed)
    groups = int(draw.integers(1, 4))
    room = draw.integers(0, 9, groups).tolist()
    options: Options = []
    for _ in range(int(draw.integers(1, 4))):
        # few costs, so that many choices are equally good
        own = [(int(draw.integers(groups)), int(draw.integers(1, 7)), int(draw.integers(40, 46))) for _ in range(4)]
        own.insert(int(draw.choice([4, draw.integers(5)])), (-1, 0, int(draw.integers(44, 52))))
        options += [own] * int(draw.choice([1, 1, 2, 3]))
    options = options[:5]
    assert chosen(options, room) == tried(options, room)


@pytest.mark.parametrize("seed", range(150))
def test_jobs_that_wait_for_the_same_get_it_in_order(seed: int) -> None:
    draw = np.random.default_rng(seed)
    room = [int(draw.integers(2, 7))]
    # what two lists hold beside one GPU or nothing is too dear, so that their jobs differ in nothing that matters
    some = [[(0, 1, 100), (0, 2, 100 + int(draw.integers(9))), (-1, 0, 110)], [(0, 1, 60), (-1, 0, 70)]]
    options: Options = [[(0, g, int(draw.integers(50, 90))) for g in (1, 2)] + [(-1, 0, 120)] for _ in range(2)]
    options += [some[k] for k in draw.integers(2, size=6)]
    assert chosen(options, room) == tried(options, room)


def test_choices_by_hand() -> None:
    two, one = [(0, 1, 100), (0, 2, 84), (-1, 0, 110)], [(0, 1, 100), (-1, 0, 110)]
    assert chosen([two, two, one], [4]) == [1, 1, 1]
    assert chosen([two, two, one], [3]) == [0, 1, 1]
    either = [(0, 1, 100), (1, 1, 100), (-1, 0, 110)]
    assert chosen([either, either], [1, 1]) == [0, 1]


# ---- the genetic search


@pytest.mark.parametrize("seed", range(6))
def test_the_genetic_search_fits_and_is_no_better_than_the_exact_choice(seed: int) -> None:
    draw = np.random.default_rng(seed)
    room = [int(draw.integers(6, 14)), int(draw.integers(2, 8))]
    options: Options = []
    for _ in range(8):
        some = [(t, g, int(draw.integers(20, 60) * 10 // g)) for t in range(2) for g in (1, 2, 4)]
        options.append([some[0], (-1, 0, 900), *some[1:]])
    exact = chosen(options, room)
    picks = [searched(options, room, other) for other in (seed, seed, seed + 100)]
    assert picks[0] == picks[1]
    best = sum(own[k][2] for own, k in zip(options, exact, strict=True))
    for found in picks:
        used, cost = [0, 0], 0
        for own, k in zip(options, found, strict=True):
            group, gpus, price = own[k]
            cost += price
            if group >= 0:
                used[group] += gpus
        assert all(a <= b for a, b in zip(used, room, strict=True))
        # over so few jobs a hundred generations find it or come near
        assert best <= cost <= 1.05 * best


def searched(options: Options, room: list[int], seed: int) -> list[int]:
    """Which of each job's options the genetic search chooses."""
    flat = [option for each in options for option in each]
    jobs, size = len(options), len(flat)
    choice = Choice(
        first=np.cumsum([0, *map(len, options)]), jobs_of=np.ones(jobs, np.int64), best=jobs, most=jobs, sure=jobs,
        take=jobs, twin=jobs, group=np.array([o[0] for o in flat], "i4"), gpus=np.array([o[1] for o in flat], "i4"),
        cost=np.array([o[2] for o in flat]), open=size, many=size, room=np.array(room), used=len(room),
        price=len(room), slope=size, weight=size, core=jobs, pick=jobs,
    )  # fmt: skip
    p = records(1, SEARCH)
    p.on, p.draw = 1, seed + 1
    shape = (2 * POPULATION, jobs)
    memory = Search(
        p=p, kept=shape, option=shape, cost=shape[0], order=shape[0], now=np.full(jobs, -1, "i4"), nothing=jobs,
        free=len(room),
    )  # fmt: skip
    find(memory, choice, jobs, np.arange(jobs))
    return [int(choice.best[e]) - int(choice.first[e]) for e in range(jobs)]


@compiled
def find(memory: Search, choice: Choice, lists: int, owner: Any) -> None:
    """Run the search, compiled."""
    search(memory, choice, lists, owner)


def test_the_genetic_search_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    rows = [HEAD, *(f"j{k},{40 * k},{600 + 90 * k},{1 + k % 3},cifar10" for k in range(8))]
    (tmp_path / "jobs.csv").write_text("\n".join(rows))
    workload = read_jobs(tmp_path / "jobs.csv")
    nodes = parse_cluster("2x4", workload)
    ga = [("pollux", {"search": "ga"})]
    ends = [replay(workload, nodes, ga, seed=seed, processes=1)[0].jobs["end_s"].to_list() for seed in (1, 1)]
    assert ends[0] == ends[1]
    assert all(end is not None for end in ends[0])


# ---- rounds


def nodes(path: Path, *parts: tuple[str, int, int]) -> str:
    path.write_text(
        "\n".join(f'[[nodes]]\nname = "{kind}-"\ncount = {count}\ngpus = {gpus}\ngpu_type = "{kind}"\n'
                  for kind, count, gpus in parts)
    )  # fmt: skip
    return str(path)


@pytest.mark.parametrize(
    ("cap", "wanted"),
    [
        (1, [100, 78]),
        (2, [100, 75, 78, 57]),
        (8, [100, 75, 58, 78, 57, 47, 42]),
    ],
)
def test_costs_of_sia(cap: int, wanted: list[int], tmp_path: Path) -> None:
    cluster = nodes(tmp_path / "nodes.toml", ("aws", 1, 4), ("rtx", 1, 8))
    one = simulation(tmp_path / "jobs.csv", "sia", cluster, [HEAD, "a,0,3600,1,cifar10"], explore="false")
    memory, choice, _ = one.program.memory
    memory.about[0].cap = cap
    end = options_kernel.options(one.state, memory, choice, 0, 1, 0)
    found = [int(choice.cost[k]) for k in range(end)]
    assert found[-1] == 110
    assert found[:-1] == wanted


def test_what_a_change_leaves_of_sias_goodput(tmp_path: Path) -> None:
    one = simulation(tmp_path / "jobs.csv", "sia", "1x4", [HEAD, "a,0,3600,1,cifar10"])
    memory, _, _ = one.program.memory
    memory.about[0].penalty = 30
    factors = []
    for age, restarts in ((20, 0), (60, 1)):
        one.state.g[0].now, memory.about[0].restarts = age, restarts
        factors.append(float(options_kernel.factor_of(one.state, memory, 0)))
    assert factors == [1, 30 / 90]
    # 4 times the least goodput as it is, or 6 times after a change: (6 / 3)^-0.5 = 0.71 is dearer, so it stays
    assert [int(options_kernel.cost_of(memory, gain)) for gain in (4, 6 * factors[1])] == [50, 71]


@pytest.mark.parametrize(
    ("penalty", "wanted"),
    [
        (0, [10**9, 7220217, 3984064, 2358063]),
        (30, [10**9, 10791367, 5964215, 3532929]),
    ],
)
def test_costs_of_pollux(penalty: int, wanted: list[int], tmp_path: Path) -> None:
    # for 2 GPUs, by hand: the speedup is 1, 10^6 / (1 / 4 + 10^-3) = 3984063.7
    one = simulation(tmp_path / "jobs.csv", "pollux", "1x4", [HEAD, "a,0,3600,1,cifar10"], explore="false")
    memory, choice, _ = one.program.memory
    about = memory.about[0]
    for k, gpus in enumerate((1, 2, 4)):
        memory.goodput[about.app, 0, k, 0] = gpus / (1 + 0.1 * (gpus - 1))
    memory.fair[about.app, 2, 0] = memory.goodput[about.app, 0, 1, 0]
    one.state.g[0].now, about.penalty = 60, penalty
    end = options_kernel.options(one.state, memory, choice, 0, 2, 0)
    assert choice.cost[:end].tolist() == wanted


def placed(path: Path, free: list[int], moving: dict[int, int]) -> list[tuple[int, int]] | None:
    """The (node, GPUs) of each of these jobs, by the GPUs that it wants, on nodes of 4; None: one finds no place."""
    one = simulation(path, "pollux", "2x4", [HEAD, *(f"{name},0,3600,1,cifar10" for name in "abc")])
    memory, _, _ = one.program.memory
    one.state.nodes.free = free
    memory.about.to_group = -1
    for k, (job, gpus) in enumerate(moving.items()):
        memory.about[job].to_group, memory.about[job].to_gpus, memory.line[k] = 0, gpus, job
    memory.p[0].line = len(moving)
    jobs = goodput_kernel._list(one.state, memory, 0, True)
    if goodput_kernel._find(one.state, memory, 0, jobs, 0) < 0:
        return None
    found = [memory.about[job] for job in moving]
    return [(int(memory.at_node[about.first]), int(about.to_gpus)) for about in found]


def test_who_finds_no_place_has_all_placed_anew(tmp_path: Path) -> None:
    a, b, c = range(3)
    # a keeps 2 GPUs of node 1: b, the larger one, has node 0, and c goes beside a
    assert placed(tmp_path / "jobs.csv", [4, 2], {b: 4, c: 1}) == [(0, 4), (1, 1)]
    # a on node 0 and b on node 1 leave no node for c; anew, a comes to lie beside b
    assert placed(tmp_path / "jobs.csv", [2, 2], {c: 4}) is None
    assert placed(tmp_path / "jobs.csv", [4, 4], {a: 2, b: 2, c: 4}) == [(1, 2), (1, 2), (0, 4)]


def test_tables_of_the_users_own(tmp_path: Path) -> None:
    apps = tmp_path / "apps.csv"
    apps.write_text("app,gpu_type,alpha_c\nx,aws,1\n")
    rows = [HEAD, "a,0,3600,1,cifar10"]
    with pytest.raises(InputError, match="lacks the columns beta_c, alpha_n"):
        simulation(tmp_path / "jobs.csv", "sia", "2x4", rows, apps=str(apps))


def test_a_cluster_too_large_for_an_exact_choice(tmp_path: Path) -> None:
    cluster = nodes(tmp_path / "nodes.toml", ("aws", 40, 4), ("rtx", 40, 4), ("dgx-ext", 40, 4))
    with pytest.raises(UsageError, match="at most 2,000,000 ways"):
        simulation(tmp_path / "jobs.csv", "sia", cluster, [HEAD, "a,0,3600,1,cifar10"])
