"""Lesson 2: dedicated nodes for jobs, and migration of jobs to make room for gangs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import note
from gpuctl.lessons.finding import Finding, Input
from gpuctl.lessons.lesson_input import Jobs, jobs_of
from gpuctl.lessons.locality import spread_speeds
from gpuctl.lessons.rules import BASE, Rule, answer
from gpuctl.lessons.sharing_tables import SharingReplay, interference, migration, rules
from gpuctl.lessons.slowdowns import measure, shared_ends
from gpuctl.lessons.utilization import read
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.results.metrics import use as use_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.lessons.finding import Answer
    from gpuctl.lessons.lesson_input import Case
    from gpuctl.lessons.slowdowns import Slowdowns
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Outcome, Workload
    from gpuctl.replay.models.speed import SpreadSpeeds


KEY = "sharing"
TABLES = ("sharing_interference", "sharing_rules", "sharing_migration")
RULES = (
    BASE,
    Rule("small", note("1-GPU jobs apart from gangs"), {"dedicate": "small"}),
    Rule("server", note("a node for each job"), {"dedicate": "server"}),
    Rule("defragment", note("move jobs for gangs"), {"defragment": "true"}),
)
COSTS_S = (0, 60, 300, 900, 3600)
"""Costs of a migration that are tried in addition to the cost model's."""


def learn(case: Case) -> Finding:
    """Measure the cost of neighbours, and replay rules that separate or move jobs."""
    found = read(case)
    measured = None if found is None else measure(found)
    done = _replay(case, RULES, spread_speeds(measured, "value"))
    costs = [_with_cost(case, seconds, measured) for seconds in COSTS_S]
    answers: tuple[Answer, ...] = ()
    warnings: list[Note] = []
    if measured is None or measured.shared.estimate.low is None:
        warnings.append(_UNKNOWN)
    else:
        answers = _answers(case, measured, done)
    tables = (
        *(() if measured is None else (interference(measured),)),
        rules(case, done, None if measured is None else measured.shared.estimate.value),
        migration(case, done, costs),
    )  # fmt: skip
    return Finding(answers, () if measured is None else _inputs(measured), tables, tuple(warnings))


_UNKNOWN = note(
    "What neighbours on a node cost is not known: no telemetry, or too few jobs ran both alone and next to another. "
    "No saving of GPU-hours from separating jobs is claimed."
)


def _replay(
    case: Case, rules: Sequence[Rule], rates: SpreadSpeeds | str, cost_s: float | None = None
) -> list[SharingReplay]:
    spec = case.overhead if cost_s is None else f"resize:{cost_s:g}"
    move = overhead(spec, case.workload, case.nodes).move
    outcomes = case.replays([rule.params for rule in rules], rates=rates, overhead=spec)
    return [_of(case, rule, outcome, move, cost_s) for rule, outcome in zip(rules, outcomes, strict=True)]


def _of(case: Case, rule: Rule, outcome: Outcome, move: Floats, cost_s: float | None) -> SharingReplay:
    moved = outcome.attempts.filter(outcome.attempts["end"] == "migrated")
    job, gpus = moved["job"].to_numpy().astype(np.int64), moved["gpus"].to_numpy().astype(np.float64)
    begin = float(case.workload.submit.min()) if case.workload.size else 0.0
    return SharingReplay(
        rule,
        jobs_of(outcome),
        shared_s(outcome, case.workload.size),
        locality_wait_s(outcome, case.workload, case.nodes),
        use_of(outcome, case.nodes)["utilization_pct"],
        moved.height,
        float((move[job] * gpus).sum()),
        float(gpus.sum()),
        max(outcome.end_s - begin, 1.0) / 86400,
        cost_s,
    )


def _with_cost(case: Case, seconds: float, measured: Slowdowns | None) -> SharingReplay:
    [found] = _replay(case, RULES[-1:], spread_speeds(measured, "value"), seconds)
    return found


def _answers(case: Case, measured: Slowdowns, done: Sequence[SharingReplay]) -> tuple[Answer, ...]:
    """Return each rule's answer against the baseline, without the cost of neighbours, to first order: equal starts."""
    block, _ = case.blocks()
    ends = [_replay(case, RULES, spread_speeds(measured, end)) for end in ("low", "high")]
    middle = measured.shared.estimate.value or 1.0
    made = []
    for at, one in enumerate(done[1:], 1):
        pairs = [(done[0].jobs, _spared(done[0], one, middle))]
        # combine every end of one with every end of the other: both may be wrong at once
        pairs += [(end[0].jobs, _spared(end[0], end[at], speed)) for end in ends for speed in shared_ends(measured)]
        made.append(answer(KEY, one.rule.text, pairs, block, _BECAUSE))
    return tuple(made)


_BECAUSE = note(
    "speed with a neighbour, measured on the same attempts, for the GPU-hours with one in each replay; queues do "
    "not get shorter by that"
)


def _spared(base: SharingReplay, other: SharingReplay, speed: float) -> Jobs:
    """Return the rule's jobs, with GPU time reduced for each GPU-second less with a neighbour."""
    less = (base.shared_s - other.shared_s) * (1 - speed)
    return replace(other.jobs, gpu_s=other.jobs.gpu_s - less)


def _inputs(measured: Slowdowns) -> tuple[Input, ...]:
    shared = measured.shared
    rows = []
    if shared.estimate.value is not None:
        basis = note(
            "GPU utilization of {units:,} attempt{units||s}, while they had a neighbour and while they had none; "
            "taken for "
            "speed",
            units=shared.units,
        )
        rows.append(Input(KEY, note("speed with another job on the node, relative to alone"), "-", shared.estimate,
                          "measured", basis))  # fmt: skip
    from gpuctl.core.suspension_cost import CHECKPOINT_BYTES_PER_GPU
    from gpuctl.lessons.finding import Estimate

    rows.append(
        Input(KEY, note("checkpoint of a job, a GPU"), "GB", Estimate(CHECKPOINT_BYTES_PER_GPU / 1e9), "assumed",
              note("what a migration moves; other costs with --overhead"))
    )  # fmt: skip
    return tuple(rows)


def shared_s(outcome: Outcome, jobs: int) -> Floats:
    """GPU-seconds that each job held while another one had GPUs on the same node.

    For a gang on several nodes, the node on which it had neighbours for longest counts.
    """
    start, end, job, gpus = _attempts(outcome)
    row, node = (outcome.pieces[name].to_numpy().astype(np.int64) for name in ("row", "node"))
    most = np.zeros(start.size)
    order = np.argsort(node, kind="stable")
    cuts = np.flatnonzero(np.diff(node[order])) + 1
    for some in np.split(order, cuts):
        rows = row[some]
        times, count = _level(start[rows], end[rows], np.ones(rows.size))
        two = _integral(times, (count >= 2).astype(np.float64))
        np.maximum.at(most, rows, _at(times, two, end[rows]) - _at(times, two, start[rows]))
    return np.bincount(job, weights=most * gpus, minlength=jobs).astype(np.float64)


def locality_wait_s(outcome: Outcome, workload: Workload, cluster: Cluster) -> Floats:
    """Seconds that each job waited while as many GPUs as it asks for were free, and its queue within its quota.

    GPUs reserved while a gang is gathered count as free.
    """
    start, end, job, gpus = _attempts(outcome)
    first, last, owner = _waits(outcome, start, end, job)
    times, used = _level(start, end, gpus)
    free = cluster.total_gpus - used
    queue = np.where(workload.queue < 0, -1, workload.queue)
    quota = np.append(cluster.quota, np.inf)[queue] if cluster.quota.size else np.full(workload.size, np.inf)
    bound = np.where(np.isfinite(quota), queue, -1)
    waited = np.zeros(workload.size)
    kinds, kind = np.unique(np.stack([bound, workload.gpus]), axis=1, return_inverse=True)
    kind = kind.reshape(-1)[owner]
    for number, (of, size) in enumerate(kinds.T.tolist()):
        here = kind == number
        if not here.any():
            continue
        room = free >= size
        if of >= 0:
            mine = queue[job] == of
            own = _level_at(times, start[mine], end[mine], gpus[mine])
            room &= own + size <= cluster.quota[of]
        for_it = _integral(times, room.astype(np.float64))
        spent = _at(times, for_it, last[here]) - _at(times, for_it, first[here])
        np.add.at(waited, owner[here], spent)
    return waited


def _attempts(outcome: Outcome) -> tuple[Floats, Floats, Ints, Floats]:
    frame = outcome.attempts
    start = frame["start_s"].to_numpy().astype(np.float64)
    end = frame["end_s"].fill_null(outcome.end_s).to_numpy().astype(np.float64)
    return start, end, frame["job"].to_numpy().astype(np.int64), frame["gpus"].to_numpy().astype(np.float64)


def _waits(outcome: Outcome, start: Floats, end: Floats, job: Ints) -> tuple[Floats, Floats, Ints]:
    """The spells in which jobs waited: from eligibility or the end of an attempt to the start of the next one."""
    order = np.lexsort((start, job))
    owner = job[order]
    last = start[order]
    before = np.concatenate([[0.0], end[order][:-1]])
    eligible = outcome.jobs["eligible_s"].to_numpy().astype(np.float64)
    new = np.concatenate([[True], owner[1:] != owner[:-1]]) if owner.size else np.zeros(0, bool)
    first = np.where(new, eligible[owner], before)
    return first, np.maximum(last, first), owner


def _level(start: Floats, end: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Instants, and what is held from each of them to the next."""
    at = np.concatenate([start, end])
    change = np.concatenate([weight, -weight])
    times, place = np.unique(at, return_inverse=True)
    return times, np.cumsum(np.bincount(place.reshape(-1), weights=change, minlength=times.size))


def _level_at(times: Floats, start: Floats, end: Floats, weight: Floats) -> Floats:
    """Values at instants that include all of their own."""
    change = np.zeros(times.size)
    np.add.at(change, np.searchsorted(times, start), weight)
    np.add.at(change, np.searchsorted(times, end), -weight)
    return np.cumsum(change)


def _integral(times: Floats, so: Floats) -> Floats:
    """Cumulative seconds, up to each instant, in which a condition held."""
    if not times.size:
        return np.zeros(0)
    return np.concatenate([[0.0], np.cumsum(np.diff(times) * so[:-1])])


def _at(times: Floats, integral: Floats, when: Floats) -> Floats:
    return np.interp(when, times, integral) if times.size else np.zeros(when.size)
