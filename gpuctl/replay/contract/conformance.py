"""Checks that any policy must pass: invariants of every replay, whatever the policy decides.

`violations` checks one replay; `random_case` makes small workloads full of rare events: ties, gangs as large as the
cluster, failures, dependencies, nodes that go down, quotas, GPU types. ``gpuctl policies NAME --check`` runs both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.replay.contract.foresight import differs, other_future, some_instant, unfinished_at, with_record
from gpuctl.replay.contract.gpu_type_cases import with_bounds, with_pairs, with_types
from gpuctl.replay.contract.shared_work import in_company
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.records import Cluster, Workload
from gpuctl.replay.models.speed import rates
from gpuctl.replay.results.timelines import levels, of_pieces, paced_seconds, portions, spans

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.models.records import Outcome

SLACK = 1e-6
"""Tolerance of sums of times, in seconds."""

OVERHEADS = ("none", "const:3", "charge:2", "pickyman")
WAYS = (None, None, "now", "epoch", "abort")


def random_case(seed: int, *, plain: bool = False, resources: bool = False) -> tuple[Workload, Cluster, Settings]:
    """A small workload, a cluster that can run all of it, and settings, from a seed.

    Args:
        seed: the same seed gives the same case, on any machine.
        plain: one segment per job, no dependencies, no nodes that go down, speeds as recorded, free preemption.
        resources: CPUs and memory also count, and some jobs and nodes have no GPUs.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    pool = bool(draw.random() < 0.3)
    nodes = 1 if pool else int(draw.integers(1, 6))
    gpus = np.full(1, int(draw.integers(1, 9))) if pool else draw.choice([2, 4, 8], nodes)
    n = int(draw.integers(1, 25))
    most = int(gpus.max()) if draw.random() < 0.5 else int(gpus.sum())
    size = np.minimum(draw.choice([1, 1, 1, 2, 4, 8, 16], n), most)
    if int(gpus.max()) < most and not pool and len(set(gpus.tolist())) > 1:
        # whole nodes and a remainder: on unequal nodes a gang may fit nowhere
        size = np.minimum(size, int(gpus.max()))
    size = np.where(size > gpus.max(), size // int(gpus.max()) * int(gpus.max()), size)
    submit = np.sort(draw.integers(0, 40, n)).astype(np.float64)
    segments = np.ones(n, np.int64) if plain else draw.choice([1, 1, 1, 2, 3], n)
    first = np.concatenate([[0], np.cumsum(segments)])
    seconds = draw.integers(1, 30, int(first[-1])).astype(np.float64)
    fails = np.ones(seconds.size, bool) if not plain else np.zeros(seconds.size, bool)
    fails[first[1:] - 1] = False
    pairs = [] if plain else [(j, int(draw.integers(0, j))) for j in range(1, n) if draw.random() < 0.15]
    queues = int(draw.integers(1, 4))
    down = None
    if not plain and not pool and draw.random() < 0.4:
        begin = draw.integers(0, 60, nodes).astype(np.float64)
        down = np.stack([np.arange(nodes), begin, begin + draw.integers(1, 50, nodes)], axis=1).astype(np.float64)
    workload = Workload(
        name=f"random case {seed}",
        ids=tuple(f"j{k}" for k in range(n)),
        submit=submit,
        eligible=submit.copy(),
        gpus=size.astype(np.int64),
        queue=draw.integers(0, queues, n),
        user=draw.integers(0, 3, n),
        time_limit=np.where(draw.random(n) < 0.5, 40.0, np.nan),
        gpu_type=np.full(n, -1),
        app=np.arange(n),
        depends=np.array(pairs, np.int64).reshape(-1, 2),
        segment_start=first,
        segment_s=seconds,
        segment_fails=fails,
        recorded_start=np.full(seconds.size, np.nan),
        piece_start=np.zeros(seconds.size + 1, np.int64),
        piece_node=np.zeros(0, np.int64),
        piece_gpus=np.zeros(0, np.int64),
        state=("",) * n,
        queues=tuple(f"q{k}" for k in range(queues)),
        users=("a", "b", "c"),
        gpu_types=(),
        think=np.where(np.arange(n) % 2, 7.0, 0.0) if pairs else None,
    )
    racks = 1 if pool else int(draw.integers(1, 3))
    quota = np.full(queues, np.inf)
    if draw.random() < 0.5:
        # the largest gang of a queue must fit into its quota, or no policy with hard quotas can run it
        largest = np.array([size[workload.queue == k].max(initial=1) for k in range(queues)])
        quota = np.maximum(largest, int(gpus.sum()) // queues).astype(np.float64)
    cluster = Cluster(
        name=f"random cluster {seed}",
        nodes=tuple(f"s{k}" for k in range(nodes)),
        gpus=gpus.astype(np.int64),
        rack=np.arange(nodes) % racks,
        gpu_type=np.full(nodes, -1),
        racks=tuple(f"r{k}" for k in range(racks)),
        pool=pool,
        quota=quota,
        quota_source="configured",
        down=down,
    )
    speed = "recorded" if plain else str(draw.choice(["recorded", "locality"]))
    cost = "none" if plain else str(draw.choice(OVERHEADS))
    mode = WAYS[int(draw.integers(len(WAYS)))]
    if not plain and draw.random() < 0.5:
        workload = replace(workload, epochs=draw.integers(1, 6, workload.size).astype(np.float64))
        workload = replace(workload, predicted=workload.true_run_time * draw.uniform(0.3, 3.0, workload.size))
    settings = Settings(rates(speed, workload, cluster), overhead(cost, workload, cluster), seed=seed, mode=mode)
    return _with_resources(draw, workload, cluster, settings) if resources else (workload, cluster, settings)


def _with_resources(
    draw: np.random.Generator, workload: Workload, cluster: Cluster, settings: Settings
) -> tuple[Workload, Cluster, Settings]:
    """The same case with CPUs and memory, which are scarce at times; each job fits on one node."""
    n, nodes = workload.size, len(cluster.nodes)
    gpus, has = workload.gpus.copy(), cluster.gpus.copy()
    small = gpus <= int(has.max())
    gpus[draw.random(n) < 0.3] = 0
    if nodes > 1 and draw.random() < 0.3:
        # not the largest one, which some gang may need, nor any that a gang over several nodes counts on
        spare = int(np.argmin(has))
        has[spare] = 0 if small.all() and has[spare] < has.max() else has[spare]
    per_gpu = draw.choice([0.0, 0.5, 1.0, 2.0], n)
    cpus = np.where(gpus > 0, gpus * per_gpu, draw.integers(0, 5, n).astype(np.float64))
    mem = np.where(gpus > 0, gpus * draw.choice([0, 7, 100], n), draw.integers(0, 200, n)).astype(np.float64)
    there, memory = np.maximum(has * 2.0, 4.0), np.maximum(has * 100.0, 200.0)
    cpus[draw.random(n) < 0.1] = np.nan
    counted = (("gpu", "cpu"), ("gpu", "mem"), ("gpu", "cpu", "mem"))[int(draw.integers(3))]
    return (
        replace(workload, gpus=gpus, cpus=cpus, mem_mb=mem),
        replace(cluster, gpus=has, cpus=there, mem_mb=memory),
        replace(settings, resources=counted),
    )


def run(policy: Policy, workload: Workload, cluster: Cluster, settings: Settings) -> Outcome:
    """Replay a workload to its end."""
    simulation = Simulation(workload, cluster, policy, settings)
    simulation.run()
    return simulation.outcome()


def check(make: Callable[[], Policy], cases: int, seed: int = 0) -> list[str]:
    """Replay random cases under a policy, each twice and once with another future.

    Args:
        make: returns a new policy.
        cases: how many.
        seed: of the first case; the others follow it.

    Returns:
        Violations with the seed of the case; empty if there are none.
    """
    found = []
    for number in range(seed, seed + cases):
        case = random_case(number, resources=make().resources and number % 2 == 1)
        if number % 3 == 2:
            case = with_types(number, case)
        if number % 4 == 3:
            case = with_bounds(number, case)
        if number % 5 == 4 and case[2].rates.types is None:
            case = with_pairs(number, case)
        if make().name != "recorded":
            # this policy only follows the record, and no random record is one that a cluster could have had
            case = with_record(number, case)
        workload, cluster, settings = case
        outcome = run(make(), workload, cluster, settings)
        found += [f"case {number}: {line}" for line in violations(outcome, workload, cluster, settings)]
        again = run(make(), workload, cluster, settings)
        if not outcome.decisions.equals(again.decisions):
            found.append(f"case {number}: other decisions the second time")
        found += [f"case {number}: {line}" for line in foresight(make, (workload, cluster, settings), outcome, number)]
    return found


def foresight(
    make: Callable[[], Policy],
    case: tuple[Workload, Cluster, Settings],
    outcome: Outcome,
    seed: int,
    *,
    record: bool = True,
) -> list[str]:
    """Decisions of a policy that change if everything after some instant is changed.

    Other jobs are submitted after it, with other gangs, users, limits and run times; jobs submitted before take longer,
    unless the policy may read true run times.

    Args:
        make: returns a new policy.
        case: workload, cluster and settings.
        outcome: of the policy on the case.
        seed: of the instant and of what is changed.
        record: whether the log's record of unfinished jobs also changes; not for a policy simulated with a failure
            classifier, whose correctness is drawn from how jobs ended.

    Returns:
        a line if a decision up to the instant differs; else nothing.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    policy = make()
    instant = some_instant(draw, outcome)
    # at the end of its epoch a job loses its GPUs unless it ended, independent of the policy's knowledge
    run_times_known = policy.oracle or case[2].mode == "epoch"
    other = other_future(
        draw,
        case,
        instant,
        unfinished_at(outcome, instant),
        run_times_known=run_times_known,
        oracle=policy.oracle,
        record=record,
    )
    found = differs(outcome, run(policy, *other), instant)
    return [f"knows what comes after second {instant:g}: with another future not the same {found}"] if found else []


def violations(outcome: Outcome, workload: Workload, cluster: Cluster, settings: Settings) -> list[str]:
    """Violations of the invariants by a replay; one line each, empty if there are none.

    The invariants: no node provides more GPUs than it has (nor CPUs and memory, if they count), or any while down; a
    GPU counts once, however many jobs are on it; a job runs on its gang, or between its least and most GPUs, once at a
    time, and not before it is eligible; its progress on each number of GPUs, alone and with others, adds up to its
    work; no job is on a node that it may not use, unless that is lent to those which it may; GPU-seconds held are work
    done, overhead and lost work; no job is faster than its best speed; every job ends, except rejected jobs and their
    dependents.
    """
    cluster = outcome.used(cluster)
    found = _capacity(outcome, cluster) + _attempts(outcome, workload, cluster) + _times(outcome, settings)
    found += _needs(outcome, workload, settings) + _counted_once(outcome, cluster)
    found += _elastic(outcome, workload, settings) + _places(outcome, workload, cluster)
    found += in_company(outcome, workload, settings, lambda job, gpus: _scale(workload, settings, job, gpus))
    states = outcome.jobs["state"].to_list()
    late = _after_rejected(states, workload)
    for number, state in enumerate(states):
        if state not in {"finished", "cut", "rejected"} and not (state == "held" and late[number]):
            found.append(f"{workload.ids[number]} has not ended: {state}")
    return found


def _after_rejected(states: list[str], workload: Workload) -> NDArray[np.bool_]:
    """Jobs that depend, directly or not, on a rejected job: they never start."""
    late = np.array([state == "rejected" for state in states], bool)
    after, before = workload.depends.T if workload.depends.size else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    for _ in states:
        known = int(late.sum())
        late[after[late[before]]] = True
        if int(late.sum()) == known:
            break
    return late


def _capacity(outcome: Outcome, cluster: Cluster) -> list[str]:
    """Nodes used beyond their capacity or while down."""
    found = []
    held = outcome.pieces.join(
        outcome.attempts.with_row_index("row").with_columns(pl.col("row").cast(pl.Int32)), on="row"
    ).filter(pl.col("own_s").is_not_null())
    held = held.with_columns(pl.col("end_s").fill_null(outcome.end_s))
    if outcome.turns is not None:
        found_spans = spans(outcome)
        span, piece, gpus = of_pieces(outcome, found_spans)
        held = pl.DataFrame(
            {
                "node": outcome.pieces["node"].to_numpy()[piece], "own_s": found_spans.start[span],
                "start_s": found_spans.start[span], "end_s": found_spans.end[span], "gpus": gpus,
            }
        )  # fmt: skip
    has = {"gpus": (cluster.gpus, "GPUs"), "cpus": (cluster.cpus, "CPUs"), "mem_mb": (cluster.mem_mb, "MB")}
    for what, (there, word) in has.items():
        if what not in held.columns or there is None:
            continue
        changes = pl.concat(
            [
                held.select("node", t=pl.col("own_s"), change=pl.col(what)),
                held.select("node", t=pl.col("end_s"), change=-pl.col(what)),
            ]
        )
        used = (
            changes.group_by("node", "t")
            .agg(pl.col("change").sum())
            .sort("node", "t")
            .with_columns(used=pl.col("change").cum_sum().over("node"))
        )
        for node, t, amount in used.select("node", "t", "used").rows():
            if amount > there[node] + SLACK:
                found.append(f"{cluster.nodes[node]} gives {amount:g} {word} at {t:g}, it has {there[node]:g}")
    if cluster.down is not None:
        for node, begin, until in cluster.down.tolist():
            on = held.filter((pl.col("node") == int(node)) & (pl.col("start_s") < until) & (pl.col("end_s") > begin))
            if on.height:
                found.append(f"{cluster.nodes[int(node)]} has jobs while it is down from {begin:g} to {until:g}")
    return found


def _places(outcome: Outcome, workload: Workload, cluster: Cluster) -> list[str]:
    """Jobs on nodes that their queue or required GPU type excludes and that were not lent then."""
    lent = {
        name: changes.select("t_s", "decision").rows()
        for (name,), changes in outcome.decisions.filter(pl.col("decision").is_in(["loan", "return"])).group_by(
            "node", maintain_order=True
        )
    }
    found = []
    rows = outcome.attempts.select("job", "start_s", pl.col("end_s").fill_null(outcome.end_s)).rows()
    for row, node in outcome.pieces.select("row", "node").rows():
        job, start, end = rows[row]
        own = cluster.queue_nodes[workload.queue[job]] if cluster.queue_nodes else None
        there, needed = int(cluster.gpu_type[node]), int(workload.gpu_type[job])
        if (own is None or node in own) and (needed < 0 or there in {needed, -1}):
            continue
        # from its first loan to its return; a node that the policy returns early counts as lent
        away, since = False, -np.inf
        for t, what in [*lent.get(cluster.nodes[node], []), (np.inf, "return")]:
            if not away and max(since, start) < min(t, end):
                found.append(f"{workload.ids[job]} is on {cluster.nodes[node]} at {max(since, start):g}, not its own")
            away, since = what == "loan", t
    return found


def _counted_once(outcome: Outcome, cluster: Cluster) -> list[str]:
    """GPU-seconds counted twice or not at all, recomputed from placements over time."""
    counted, pieces = portions(outcome), outcome.pieces
    owner, node = pieces["row"].to_numpy(), pieces["node"].to_numpy()
    end = outcome.attempts["end_s"].fill_null(outcome.end_s)
    own = (end - outcome.attempts["own_s"].fill_null(end)).to_numpy()[owner]
    count = len(cluster.nodes)
    somebodys = np.bincount(node, weights=pieces["gpus"].to_numpy() * own, minlength=count)
    if outcome.turns is not None:
        # on crowded nodes no job owns a GPU
        somebodys = np.bincount(node, weights=counted, minlength=count)
    there = np.bincount(node, weights=counted, minlength=count)
    found = [
        f"{cluster.nodes[k]}: {somebodys[k]:g} GPU-seconds are somebody's own, {there[k]:g} had jobs on them"
        for k in np.flatnonzero(~np.isclose(somebodys, there, rtol=SLACK, atol=SLACK)).tolist()
    ]
    jobs = outcome.jobs["gpu_s"].to_numpy()
    got = np.bincount(outcome.attempts["job"].to_numpy()[owner], weights=counted, minlength=jobs.size)
    found += [
        f"{outcome.jobs['job'][k]} is charged for {jobs[k]:g} GPU-seconds, its part of its GPUs is {got[k]:g}"
        for k in np.flatnonzero(~np.isclose(jobs, got, rtol=SLACK, atol=SLACK)).tolist()
    ]
    over = levels(outcome, cluster).filter(pl.col("gpus_busy") > pl.col("gpus_available") + SLACK)
    for t, busy, up in over.select("t_s", "gpus_busy", "gpus_available").rows():
        found.append(f"{busy:g} GPUs are busy at {t:g}, {up} are there")
    return found


def _attempts(outcome: Outcome, workload: Workload, cluster: Cluster) -> list[str]:
    """Gangs that ran partially, twice at a time, too early, or before their dependencies."""
    del cluster
    found = []
    attempts = outcome.attempts.with_columns(pl.col("end_s").fill_null(np.inf))
    sums = outcome.pieces.group_by("row").agg(pl.col("gpus").sum()).sort("row")["gpus"].to_list()
    last: dict[int, float] = {}
    # some policies use other bounds than the input's
    least, most = outcome.jobs["least_gpus"], outcome.jobs["most_gpus"]
    for row, (job, start, end, gpus) in enumerate(attempts.select("job", "start_s", "end_s", "gpus").iter_rows()):
        name = workload.ids[job]
        if sums[row] != gpus:
            found.append(f"{name} holds {gpus} GPUs, its places have {sums[row]}")
        if not least[job] <= gpus <= most[job]:
            found.append(f"{name} runs on {gpus} GPUs, it can run on {least[job]} to {most[job]}")
        if start < last.get(job, -np.inf):
            found.append(f"{name} starts at {start:g}, while it still holds GPUs to {last[job]:g}")
        if start < workload.eligible[job]:
            found.append(f"{name} starts at {start:g}, it is eligible from {workload.eligible[job]:g}")
        if end < start:
            found.append(f"{name} ends at {end:g}, it starts at {start:g}")
        last[job] = end
    first = dict(zip(outcome.jobs["job"], outcome.jobs["start_s"], strict=True))
    ends = dict(zip(outcome.jobs["job"], outcome.jobs["end_s"], strict=True))
    for job, before in workload.depends.tolist():
        start, end = first[workload.ids[job]], ends[workload.ids[before]]
        think = 0.0 if workload.think is None else workload.think[job]
        if start is not None and (end is None or start < end + think):
            found.append(f"{workload.ids[job]} starts less than {think:g} s after {workload.ids[before]} has ended")
    return found


def _needs(outcome: Outcome, workload: Workload, settings: Settings) -> list[str]:
    """Gangs that ran with fewer CPUs or less memory than requested, or with more than rounding adds."""
    found: list[str] = []
    for what, name, requested, unit in (("cpus", "cpu", workload.cpus, 0.001), ("mem_mb", "mem", workload.mem_mb, 1.0)):
        if name not in settings.resources or requested is None:
            continue
        sums = outcome.pieces.group_by("row").agg(pl.col(what).sum(), pl.len()).sort("row")
        owner = outcome.attempts["job"].to_numpy()
        # on another number of GPUs than its gang a job requests as much per GPU
        part = outcome.attempts["gpus"].to_numpy() / np.maximum(workload.gpus[owner], 1)
        wanted = np.nan_to_num(requested)[owner] * np.where(workload.gpus[owner] > 0, part, 1.0)
        over = sums[what].to_numpy() - wanted
        bad = (over < -unit) | (over > unit * (sums["len"].to_numpy() + 1))
        for row in np.flatnonzero(bad).tolist():
            job = workload.ids[int(outcome.attempts["job"][row])]
            found.append(f"{job} holds {sums[what][row]:g} {what}, it asks for {wanted[row]:g}")
    return found


def _elastic(outcome: Outcome, workload: Workload, settings: Settings) -> list[str]:
    """Jobs whose work is not what their GPUs did by their speed curve; not those with overhead, loss or shared GPUs."""
    attempts = outcome.attempts.with_columns(pl.col("end_s").fill_null(outcome.end_s))
    job, gpus = attempts["job"].to_numpy(), attempts["gpus"].to_numpy()
    if outcome.decisions["decision"].is_in(["share", "gather"]).any() or not (gpus != workload.gpus[job]).any():
        return []
    speed = [_scale(workload, settings, *pair) for pair in zip(job.tolist(), gpus.tolist(), strict=True)]
    seconds = paced_seconds(outcome)
    done = np.bincount(job, weights=seconds * np.array(speed), minlength=workload.size)
    rates, rows = settings.rates, outcome.jobs
    plain = ((rows["overhead_gpu_s"] == 0) & (rows["lost_gpu_s"] == 0) & (rows["state"] == "finished")).to_numpy()
    plain &= rates.alike & (settings.overhead.charge == 0) & (workload.gpus > 0)
    plain &= True if workload.phase is None else workload.phase < 0
    wrong = plain & ~np.isclose(done, workload.true_run_time, rtol=SLACK, atol=SLACK)
    return [
        f"{workload.ids[k]}: its GPUs did {done[k]:g} s of work, it has {workload.true_run_time[k]:g} s"
        for k in np.flatnonzero(wrong).tolist()
    ]


def _scale(workload: Workload, settings: Settings, job: int, gpus: int) -> float:
    """Speed of a job on a number of GPUs, relative to its gang."""
    if gpus == workload.gpus[job]:
        return 1.0
    number = -1 if workload.curve is None else int(workload.curve[job])
    if number >= 0:
        curve = workload.curves[number]
        on, full = (curve[min(n, curve.size) - 1] for n in (gpus, int(workload.gpus[job])))
        return float(on / full)
    alpha = settings.rates.alpha[job]
    on, full = (n / (1 + alpha * (n - 1)) for n in (gpus, int(workload.gpus[job])))
    return float(on / full)


def _times(outcome: Outcome, settings: Settings) -> list[str]:
    """Jobs whose GPU-seconds are not the sum of work, overhead and loss, or that were faster than possible."""
    found = []
    best, alike = settings.rates.best, settings.rates.alike
    fast = np.ones(outcome.jobs.height)
    groups = outcome.attempts.filter(pl.col("shared"))["group"]
    shared = set(outcome.attempts.filter(pl.col("group").is_in(groups.to_list()))["job"].to_list())
    if outcome.turns is not None:
        turned = outcome.attempts["job"].gather(outcome.turns["row"]).to_numpy()
        shared |= set(turned.tolist())
        # a policy that sets speeds itself may let a job be faster than the models have it
        np.maximum.at(fast, turned, outcome.turns["pace"].to_numpy())
    gang = outcome.jobs["gpus"].to_numpy()[outcome.attempts["job"].to_numpy()]
    resized = set(outcome.attempts.filter(pl.Series(gang) != pl.col("gpus"))["job"].to_list())
    for k, row in enumerate(outcome.jobs.iter_rows(named=True)):
        if row["state"] != "finished":
            continue
        name, most = row["job"], best[k] * fast[k]
        if row["jct_s"] < row["work_s"] / most - SLACK and k not in resized:
            found.append(
                f"{name} has ended after {row['jct_s']:g} s, its work takes {row['work_s'] / most:g} s at best"
            )
        if abs(row["jct_s"] - row["run_s"] - row["wait_s"]) > SLACK:
            found.append(f"{name}: {row['jct_s']:g} s are not {row['run_s']:g} on GPUs and {row['wait_s']:g} waiting")
        if alike[k] and k not in resized | shared and row["gpu_s"] > 0 and settings.overhead.charge[k] == 0:
            useful = row["gpu_s"] - row["overhead_gpu_s"] - row["lost_gpu_s"]
            gathered = "gather" in outcome.decisions["decision"]
            if not gathered and abs(useful - row["work_s"] * row["gpus"]) > SLACK * max(1.0, row["gpu_s"]):
                found.append(f"{name}: {useful:g} useful GPU-seconds, its work is {row['work_s'] * row['gpus']:g}")
    return found
