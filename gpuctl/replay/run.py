"""Replays a workload under several policies, and keeps finished outcomes after a Ctrl-C."""

from __future__ import annotations

import dataclasses
import gc
import os
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.compiled.jit import is_compiled
from gpuctl.compiled.loading import UNCOMPILED
from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import literal, note
from gpuctl.core.numbers import lasting
from gpuctl.replay.contract import view_kernel
from gpuctl.replay.contract.policy import SHARED_MODELS
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.engine.never import never_note
from gpuctl.replay.engine.setup import SLICE_S, SWITCH_S, Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.engine.state import D_REJECT, LOG
from gpuctl.replay.inputs.check import check, unplaceable
from gpuctl.replay.inputs.estimates import own_limits
from gpuctl.replay.inputs.transforms import take
from gpuctl.replay.models.node_failures import node_failures
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.resources import GPUS_ONLY
from gpuctl.replay.models.speed import SpreadSpeeds, rates
from gpuctl.replay.order import list_kernel
from gpuctl.replay.policies import find, label, make
from gpuctl.replay.processes import CtrlC, in_turn, side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from gpuctl.core.notes import Note
    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.models.node_failures import FailureOptions
    from gpuctl.replay.models.records import Cluster, Ints, Outcome, Workload
    from gpuctl.replay.models.speed import PairTable, SpeedTable
    from gpuctl.replay.processes import Progress


def standalone_models(
    policy: Policy, given: Collection[str], models: Collection[str], workload: Workload, cluster: Cluster
) -> tuple[Note, ...]:
    """Notes on a policy's own models that a comparison with other policies overrides.

    Args:
        policy: one of the comparison.
        given: its parameters that the user has set.
        models: ``overhead`` and ``rates``, those that no option sets.
        workload: the jobs.
        cluster: the nodes.
    """
    own, here = policy.assumes(), policy.shared(given)
    notes = []
    if own and "overhead" in models:
        text, common = (overhead(each["overhead"], workload, cluster).text for each in (own, here))
        if text != common:
            notes.append(note("charged here as all policies of the comparison; its own cost, alone: {text}", text=text))
    if own and "rates" in models and own["rates"] != here["rates"]:
        text = rates(own["rates"], workload, cluster).text
        notes.append(note("speeds are those of all policies of the comparison; its own, alone: {text}", text=text))
    return tuple(notes)


FEW_JOBS = 2000
"""Below this number of jobs, starting a process takes longer than a replay: one process by default."""

TOO_LARGE = "the nodes that it may use have fewer GPUs than it requests"
"""Reason of jobs that are not run, in the decision log."""


class ReplayInterrupted(KeyboardInterrupt):
    """Ctrl-C; finished outcomes are kept.

    Args:
        outcomes: of the finished policies, in the requested order.
        missing: the other policies.
    """

    def __init__(self, outcomes: list[Outcome], missing: list[str]) -> None:
        super().__init__("interrupted")
        self.outcomes = outcomes
        self.missing = missing


@dataclass(frozen=True)
class Models:
    """The settings shared by all policies of a comparison, as names: see `gpuctl.replay.engine.setup.Settings`."""

    rates: str | SpeedTable | SpreadSpeeds = "recorded"
    overhead: str | None = None
    placement: str | None = None
    limits: bool = False
    seed: int = 0
    mode: str | None = None
    resources: tuple[str, ...] = GPUS_ONLY
    pairs: PairTable | None = None
    time_slice: tuple[float, float] = (SLICE_S, SWITCH_S)
    own_speeds: bool = False
    compared: bool = False
    failures: FailureOptions | None = None

    def settings(self, workload: Workload, cluster: Cluster, assumed: Mapping[str, str] | None = None) -> Settings:
        """The models with the numbers of each job; policies' own assumptions apply unless the user sets others."""
        assumed = assumed or {}
        speeds = assumed.get("rates", self.rates) if self.own_speeds else self.rates
        cost = self.overhead or assumed.get("overhead", "none")
        return Settings(
            rates=rates(speeds, workload, cluster, self.pairs),
            overhead=overhead(cost, workload, cluster),
            placement=self.placement,
            limits=self.limits,
            seed=self.seed,
            mode=self.mode,
            resources=self.resources,
            slice_s=self.time_slice[0],
            switch_s=self.time_slice[1],
            failures=None if self.failures is None else node_failures(self.failures, workload, cluster, self.seed),
        )


def one_speed_model(policies: Sequence[tuple[str, dict[str, str]]]) -> bool:
    """Whether the compared policies assume the same; otherwise all use that of `SHARED_MODELS`."""
    assumed = (make(name, params).assumes().get("rates", SHARED_MODELS["rates"]) for name, params in policies)
    return len(set(assumed)) <= 1


_AS_PYTHON_S: list[float] = []
"""CPU seconds of each replay that this process has interpreted; Numba is imported once for all."""


@dataclass(frozen=True)
class Task:
    """The common input of all processes."""

    workload: Workload
    cluster: Cluster
    models: Models
    policies: tuple[tuple[str, dict[str, str]], ...]

    @cached_property
    def mixed(self) -> bool:
        """Whether policies with models of their own are compared with others."""
        return self.models.compared or len({find(name).traits for name, _ in self.policies}) > 1

    @cached_property
    def _one_speed_model(self) -> bool:
        return one_speed_model(self.policies)

    def own_models(self, number: int) -> tuple[Note, ...]:
        """Notes on models that a policy would use alone, if this comparison uses others."""
        name, params = self.policies[number]
        if not self.mixed:
            return ()
        which = {"overhead"} if self.models.overhead is None else set()
        which |= {"rates"} if self.models.own_speeds else set()
        return standalone_models(make(name, params), params, which, self.workload, self.cluster)

    def simulation(self, number: int, *, interpreted: bool = False) -> Simulation:
        """The simulation of one of the policies, before its first instant."""
        name, params = self.policies[number]
        policy = make(name, params)
        assumed = policy.shared(params) if self.mixed else policy.assumes()
        if assumed and not self._one_speed_model:
            assumed = {**assumed, "rates": SHARED_MODELS["rates"]}
        cluster = policy.extended(self.cluster)
        models = self.models.settings(self.workload, cluster, assumed)
        return Simulation(self.workload, cluster, policy, models, label(name), interpreted=interpreted)

    def run(self, number: int, progress: Callable[[int, int, float], None]) -> Simulation:
        """Replay one of the policies to its end: interpreted if that is faster."""
        kind, jobs = find(self.policies[number][0]), self.workload.size
        simulation = self.simulation(number, interpreted=_interpreted(kind, jobs))
        begin = time.process_time()

        def at(ended: int, size: int, second: float) -> None:
            # the estimate was wrong: continue compiled from here
            spent = time.process_time() - begin
            if simulation.interpreted and spent > LOADING_S and not UNCOMPILED:
                compiled = all(map(is_compiled, entries(kind)))
                most = LOADING_S if compiled else COMPILING_S
                simulation.interpreted = spent <= most
            progress(ended, size, second)

        simulation.run(at)
        if simulation.interpreted:
            _AS_PYTHON_S.append(time.process_time() - begin)
        return simulation


def replay(
    workload: Workload,
    cluster: Cluster,
    names: Sequence[tuple[str, dict[str, str]]],
    *,
    rates: str | SpeedTable | SpreadSpeeds = "recorded",
    overhead: str | None = None,
    placement: str | None = None,
    limits: bool = False,
    seed: int = 0,
    mode: str | None = None,
    resources: tuple[str, ...] = GPUS_ONLY,
    pairs: PairTable | None = None,
    time_slice: tuple[float, float] = (SLICE_S, SWITCH_S),
    own_speeds: bool = False,
    compared: bool = False,
    failures: FailureOptions | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
    skip_unplaceable: bool = False,
    notify: Callable[[str], None] | None = None,
) -> list[Outcome]:
    """Replay a workload under some policies. The result does not depend on the number of processes.

    Args:
        workload: the jobs.
        cluster: the nodes.
        names: policies, each with its parameters as texts; ``LABEL=POLICY`` is called LABEL in its outcome.
        rates: speed model, by name, as a table, or by size and nodes: see `gpuctl.replay.models.speed`.
        overhead: overhead model, see `gpuctl.replay.models.preemption_cost`; None: what policies assume, else none.
        placement: any | consolidate | spread for every policy; None: each policy's own.
        limits: end jobs at their time limits.
        seed: random seed for stochastic policies.
        mode: how every policy preempts: now | epoch | abort; None: each policy's own way.
        resources: those that count, see `gpuctl.replay.models.resources`.
        pairs: speeds of packed jobs by the classes of both; None: one speed for all, see `gpuctl.replay.models.speed`.
        time_slice: seconds of a turn of jobs that share GPUs by turns, and of the switch between two.
        own_speeds: a speed model that a policy assumes replaces `rates`.
        compared: policies with their own models are compared with others, some of them outside this call.
        failures: how nodes fail, and what jobs keep; None: nodes go down as the cluster says.
        processes: most at a time; None: one per policy, up to the number of processors, and a single one for fewer than
            `FEW_JOBS` jobs. With one everything runs in this process.
        progress: called from time to time.
        skip_unplaceable: do not run jobs that fit on no permitted nodes; outcomes list them as ``unplaceable``.
            Otherwise they are an error.
        notify: called with a line for the user: that code is being compiled, that a policy is done.

    Returns:
        one outcome per policy, in the order of `names`.

    Raises:
        InputError: jobs or nodes cannot be replayed; nothing was run.
        UsageError: no such policy, parameter or model; nothing was run.
        ReplayInterrupted: Ctrl-C.
    """
    models = Models(
        rates, overhead, placement, limits, seed, mode, resources, pairs, time_slice, own_speeds, compared, failures
    )
    speeds = None if isinstance(rates, (str, SpreadSpeeds)) else rates
    placeable = _placeable(workload, cluster, resources, speeds) if skip_unplaceable else None
    run = workload if placeable is None else take(workload, placeable)
    check(run, cluster, resources, speeds)
    task = Task(run, cluster, models, tuple((name, dict(params)) for name, params in names))
    # errors in names and parameters, and in jobs for a policy, are found before the first one runs
    models.settings(run, cluster)
    unlimited = _check_limits(run, task.policies)
    one = _one_job(task)
    for number, (name, params) in enumerate(task.policies):
        if not isinstance(make(name, params), PythonPolicy):
            one.simulation(number, interpreted=True)
    say = notify or (lambda _text: None)
    _report_never(task, say)
    count = min(len(task.policies), processes or (_processors() if run.size >= FEW_JOBS else 1))
    done: dict[int, Outcome] = {}
    with CtrlC() as ctrl_c:
        try:
            _compile(one, run.size, say)
            for number, outcome in in_turn(task, progress) if count <= 1 else side_by_side(task, count, progress):
                whole = outcome if placeable is None else _whole(outcome, workload, placeable)
                notes = (*whole.notes, *unlimited[number], *task.own_models(number))
                done[number] = dataclasses.replace(whole, notes=notes)
                say(f"{outcome.policy}: {run.size:,} jobs replayed in {lasting(outcome.wall_s)}")
        except KeyboardInterrupt:
            ctrl_c.over = True
            missing = [name for number, (name, _) in enumerate(task.policies) if number not in done]
            raise ReplayInterrupted([done[number] for number in sorted(done)], missing) from None
    return [done[number] for number in range(len(task.policies))]


def start_simulation(
    workload: Workload, cluster: Cluster, policy: tuple[str, dict[str, str]], models: Models, *,
    skip_unplaceable: bool = False,
) -> Simulation:  # fmt: skip
    """Return a simulation before its first instant, to advance it step by step.

    Args:
        workload: the jobs.
        cluster: the nodes.
        policy: name and parameters.
        models: see `replay`.
        skip_unplaceable: leave out jobs that fit on no permitted nodes; otherwise they are an error.

    Raises:
        InputError: jobs or nodes cannot be replayed.
        UsageError: no such policy, parameter or model.
    """
    speeds = None if isinstance(models.rates, (str, SpreadSpeeds)) else models.rates
    placeable = _placeable(workload, cluster, models.resources, speeds) if skip_unplaceable else None
    run = workload if placeable is None else take(workload, placeable)
    check(run, cluster, models.resources, speeds)
    _check_limits(run, (policy,))
    task = Task(run, cluster, models, (policy,))
    return task.simulation(0, interpreted=_interpreted(find(policy[0]), run.size))


def _check_limits(workload: Workload, policies: Sequence[tuple[str, dict[str, str]]]) -> list[tuple[Note, ...]]:
    """Check that policies that plan with time limits have some; returns a note per policy if some jobs have none."""
    notes: list[tuple[Note, ...]] = []
    for name, params in policies:
        left = int(np.isnan(own_limits(workload, params).planned_time).sum()) if find(name).plans else 0
        if left and left == workload.size:
            raise UsageError(
                f"{name} plans with time limits, and no job of {workload.name} has one",
                hint="choose an assumption: --limits-from steps (guesses from true run times), true, or a CSV of "
                "gpuctl predict runtime",
            )
        text = note(
            "{left:,} of {size:,} job{size||s} {left|has|have} no time limit; the parameter unlimited says how they "
            "are planned",
            left=left,
            size=workload.size,
        )
        notes.append((text,) if left else ())
    return notes


def _one_job(task: Task) -> Task:
    """The task with a single job, to check policies, and to compile them."""
    jobs = task.workload
    known = np.flatnonzero(np.isfinite(jobs.recorded_start[jobs.segment_start[:-1]]))
    # a file of limits may lack this one job
    policies = [
        (name, {key: value for key, value in params.items() if key != "limits_from"}) for name, params in task.policies
    ]
    return dataclasses.replace(
        task, workload=take(jobs, known[:1] if known.size else np.zeros(1, np.int64)), policies=tuple(policies)
    )


def _report_never(task: Task, say: Callable[[str], None]) -> None:
    """Report jobs that can never start under a policy, for its placement or a quota, before anything runs."""
    jobs, cluster = task.workload, task.cluster
    quota = np.full(len(jobs.queues) + 1, np.inf)
    quota[: cluster.quota.size] = cluster.quota[: len(jobs.queues)]
    # a gang that fits on one of its permitted nodes can be placed
    kinds = [cluster.gpu_type == kind for kind in np.unique(cluster.gpu_type)]
    kinds += [nodes for nodes in cluster.queue_nodes if nodes is not None and len(nodes)]
    one = min(int(cluster.gpus[nodes].max()) for nodes in kinds)
    large = np.flatnonzero((jobs.gpus > one) | (jobs.gpus > quota[jobs.queue]))
    for number, (name, params) in enumerate(task.policies if large.size else ()):
        if not isinstance(make(name, params), PythonPolicy):
            # a file of limits may lack these
            plain = (*task.policies[:number], (name, {k: v for k, v in params.items() if k != "limits_from"}))
            some = dataclasses.replace(task, workload=take(jobs, large), policies=plain)
            simulation = some.simulation(number, interpreted=True)
            for reason in never_note(simulation.never, simulation.workload):
                say(f"{simulation.label}: {reason}")


def _placeable(
    workload: Workload, cluster: Cluster, resources: tuple[str, ...], speeds: SpeedTable | None
) -> Ints | None:
    """The jobs that can be placed; None if all can."""
    large = unplaceable(workload, cluster, resources, speeds)
    if not large.size:
        return None
    if large.size == workload.size:
        raise InputError(f"{workload.name}: no job fits on the nodes of {cluster.name} that it may use")
    return np.setdiff1d(np.arange(workload.size), large)


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _interpreted(kind: type[Policy], jobs: int) -> bool:
    """Whether to start a replay interpreted; checks for compiled code only if it matters."""
    if not UNCOMPILED and "numba" in sys.modules and all(loop.fast.signatures for loop in entries(kind)):
        # an earlier replay in this process has already loaded it
        return False
    small = may_interpret(jobs, compiled=None)
    if small and (UNCOMPILED or sum(_AS_PYTHON_S) <= LOADING_S):
        return True
    # one small replay finishes before Numba is loaded, many do not
    return not all(map(is_compiled, entries(kind))) and may_interpret(jobs, compiled=False)


def _compile(task: Task, jobs: int, notify: Callable[[str], None]) -> None:
    """Compile once before the processes start, unless an earlier run has left compiled code.

    Args:
        task: one job.
        jobs: their number; few are interpreted.
        notify: called if compiling is necessary.
    """
    kinds = [find(name) for name, _ in task.policies]
    new = [
        number
        for number, kind in enumerate(kinds)
        if not _interpreted(kind, jobs) and not all(map(is_compiled, entries(kind)))
    ]
    if not new:
        return
    notify("compiling the simulator (once; 5 to 15 s per policy)")
    # a compiler makes millions of small objects, none of them garbage: collecting takes a fifth of its time
    gc.disable()
    try:
        for number in new:
            # a user's own code does not run twice
            if not issubclass(kinds[number], PythonPolicy):
                task.simulation(number).run()
    finally:
        gc.enable()


def compile_for(
    workload: Workload,
    cluster: Cluster,
    policies: Sequence[tuple[str, Mapping[str, str]]],
    jobs: int,
    *,
    notify: Callable[[str], None] | None = None,
    **models: Any,
) -> None:
    """Compile the policies' code, if that is faster for the total of jobs and not done yet.

    Args:
        workload: jobs of the kind that will be replayed.
        cluster: nodes, likewise.
        policies: each with its parameters.
        jobs: total number to be replayed.
        notify: called with a line for the user if something is compiled.
        models: as for `replay`.

    Raises:
        InputError: jobs or nodes cannot be replayed.
        UsageError: no such policy, parameter or model.
    """
    known = {field.name for field in dataclasses.fields(Models)}
    chosen = Models(**{name: value for name, value in models.items() if name in known})
    task = Task(workload, cluster, chosen, tuple((name, dict(params)) for name, params in policies))
    # found before anything is compiled
    _check_limits(workload, task.policies)
    _compile(_one_job(task), jobs, notify or (lambda _text: None))


def entries(kind: type[Policy]) -> list[Any]:
    """Return the compiled entry functions of a policy."""
    return [view_kernel.next_decision if issubclass(kind, PythonPolicy) else kind.run or list_kernel.run]


def _whole(outcome: Outcome, workload: Workload, placeable: Ints) -> Outcome:
    """Add the jobs that were not run to an outcome, so that it has a row for each job of the workload."""
    rest = np.setdiff1d(np.arange(workload.size), placeable)
    names, users = (np.array([*texts, ""], object) for texts in (workload.queues, workload.users))
    submit = workload.submit[rest]
    total = np.add.reduceat(workload.segment_s, workload.segment_start[:-1])
    zero, none = pl.lit(0), pl.lit(None)
    schema = outcome.jobs.schema
    given = {
        "job": [workload.ids[job] for job in rest.tolist()],
        "queue": names[workload.queue[rest]].tolist(),
        "user": users[workload.user[rest]].tolist(),
        "gpus": workload.gpus[rest],
        "submit_s": submit,
        "eligible_s": workload.eligible[rest],
        "wait_s": np.maximum(outcome.end_s - submit, 0.0),
        "work_s": total[rest],
        "state": ["unplaceable"] * rest.size,
    }
    absent = {"start_s", "end_s", "jct_s", "t10_s"}
    left = pl.DataFrame(given).select(
        (pl.col(name) if name in given else none if name in absent else zero).cast(kind).alias(name)
        for name, kind in schema.items()
    )
    order = np.argsort(np.concatenate([placeable, rest]), kind="stable")
    refused = np.zeros(rest.size, LOG)
    refused["t"], refused["job"], refused["gpus"], refused["row"] = submit, rest, workload.gpus[rest], -1
    refused["what"], refused["reason"] = D_REJECT, len(outcome.log.reasons)
    log = dataclasses.replace(outcome.log, reasons=(*outcome.log.reasons, TOO_LARGE))
    return dataclasses.replace(
        outcome,
        jobs=pl.concat([outcome.jobs, left])[order],
        attempts=outcome.attempts.with_columns(pl.Series("job", placeable, pl.Int32).gather(outcome.attempts["job"])),
        log=log.with_refused(placeable, tuple(workload.ids), refused),
        notes=(
            *outcome.notes,
            note(
                "{size:,} job{size||s} {size|was|were} not run: {TOO_LARGE}",
                size=rest.size,
                TOO_LARGE=literal(TOO_LARGE),
            ),
        ),
    )


LOADING_S = 0.4
"""CPU seconds to import Numba and load one policy's code."""

COMPILING_S = 8.0
"""CPU seconds to compile a policy: 8 for most, 11 to 14 for the largest; ``benchmarks/first_run.py`` measures it."""

SAMPLE, SAMPLE_S = 300, 0.2
"""Sample size, and its CPU seconds as Python: 0.06 to 0.3 under most policies, 1.6 under one."""


def interpreted_s(jobs: int) -> float:
    """CPU seconds of a replay as Python; more than proportional to jobs, as queues also grow with the load."""
    return SAMPLE_S * float(max(jobs / SAMPLE, 1.0) ** 1.5)


def may_interpret(jobs: int, *, compiled: bool | None) -> bool:
    """Whether to start a replay as Python.

    Args:
        jobs: how many.
        compiled: whether the cache has code for it; None: not known, as checking costs more than it may save.
    """
    if UNCOMPILED:
        return True
    if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in {"", "0"}:
        return False
    return interpreted_s(jobs) <= (LOADING_S if compiled is not False else COMPILING_S)
