"""Replays: the same jobs under other policies, loads or nodes, at once or step by step."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypedDict

from gpuctl.core.errors import UsageError
from gpuctl.library.arguments import PathOrText, check_names, job_filter, listed, mapping, number, path_of
from gpuctl.library.traces import Trace, input_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    import polars as pl

    from gpuctl.library.result import Result
    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.engine.simulation import Simulation as Running
    from gpuctl.services.replays import Prepared

Parameter = str | float | int


class ReplayOptions(TypedDict, total=False):
    """What holds for every policy; each as the option of the same name of ``gpuctl replay``.

    Attributes:
        per_rack: nodes of `cluster` per rack.
        inference: nodes of an inference cluster.
        inference_load: its load, a CSV or a trace store.
        trace_cluster: the cluster of a store with several.
        timezone: zone of log times that name none.
        log_format: format of files given by name.
        quotas: CSV of GPUs per queue.
        racks: CSV of racks of the trace's own nodes.
        window: only jobs submitted in ``"A..B"``.
        work: a job's run time: sum, last or span.
        placement: any, consolidate or spread.
        overhead: cost of a preemption.
        mode: how jobs are preempted: now, epoch or abort.
        run_times: run times that policies are given.
        locality: slow down scattered jobs.
        speeds: CSV of speeds by class of jobs and GPU type.
        pair_speeds: CSV of speeds of jobs that share GPUs.
        time_slice: seconds of a turn, and of a switch.
        resources: ``"gpu"``, or with cpu and mem.
        per_gpu: CPUs and memory assumed per GPU.
        limits: end jobs at their time limits.
        limits_from: time limits for policies that plan ahead.
        skip_unplaceable: leave out jobs that fit on no nodes.
        warmup: share of the first jobs left out of job figures.
        unchanged: compare changes of jobs, nodes and rules with a replay without them.
        yarn_conf: YARN's configuration.
        slurm_conf: Slurm's configuration.
        calibrated: rules found by ``gpuctl calibrate``.
        failures: nodes fail: failures a node-day, or as ``gpuctl replay --failures`` has it. Other options of failures:
        checkpoint: seconds of work between checkpoints, ``young`` or ``none``.
        checkpoint_write: seconds that writing one blocks its job.
        restart: seconds without progress at a start after a failure.
        detect: seconds until a failure is noticed.
        repair: how long a node is away: mean seconds, ``lognormal:MEDIAN:SIGMA`` or a CSV.
        spares: spare nodes.
        requeue: interrupted jobs queue again with their first submission (head) or as new arrivals (tail).
        lemon_share: share of the nodes that fail 8 times as often, or ``"SHARE:TIMES"``.
    """

    failures: PathOrText | float
    checkpoint: str | float
    checkpoint_write: float
    restart: float
    detect: float
    repair: PathOrText | float
    spares: int
    requeue: str
    lemon_share: str | float
    per_rack: int
    inference: str
    inference_load: PathOrText
    trace_cluster: str
    timezone: str
    log_format: str
    quotas: PathOrText
    racks: PathOrText
    window: str
    work: str
    placement: str
    overhead: str
    mode: str
    run_times: str
    locality: bool
    speeds: PathOrText
    pair_speeds: PathOrText
    time_slice: str
    resources: str
    per_gpu: str
    limits: bool
    limits_from: str
    skip_unplaceable: bool
    warmup: float
    unchanged: bool
    yarn_conf: Sequence[PathOrText]
    slurm_conf: Sequence[PathOrText]
    calibrated: PathOrText


def replay(
    jobs: object,
    cluster: PathOrText | None = None,
    policies: Sequence[str | type[Policy]] = ("fifo",),
    *,
    params: Mapping[str, Parameter] | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    baseline: str | None = None,
    scale_load: float | None = None,
    add_nodes: str | int | None = None,
    seed: int = 0,
    against_recorded: bool = False,
    processes: int | None = None,
    **options: Unpack[ReplayOptions],
) -> Result:
    """Replay jobs under other policies, with more load or on other nodes, and compare waits and completion times.

    Args:
        jobs: a data frame of jobs, a CSV of jobs, a `Trace`, a trace store, or logs.
        cluster: nodes: ``"64x8"`` (nodes x GPUs), ``"pool:512"`` or a TOML file. Default: those of the trace.
        policies: names as ``gpuctl policies`` lists them, ``LABEL=POLICY``, ``FILE.py:CLASS``, or classes defined in
            the notebook (`gpuctl.plugins.PythonPolicy` and its kin), which run in this process.
        params: parameters by ``NAME``, ``POLICY.NAME`` or ``LABEL.NAME``.
        where: only jobs that match, as for `gpuctl.analyze`; the others count as never submitted.
        baseline: label of the policy to compare with. Default: the first.
        scale_load: submit jobs this many times as fast.
        add_nodes: nodes to add: ``4``, or ``"4x8"``.
        seed: for stochastic policies.
        against_recorded: also compare with what the trace recorded.
        processes: policies to replay at a time. Default: as many as there are processors.
        options: what holds for every policy.

    Returns:
        ``replay_summary`` has a row per policy, ``replay_jobs`` a row per policy and job.

    Raises:
        UsageError: no such policy or parameter, or options that contradict each other.
        InputError: jobs or nodes cannot be replayed.
        KeyboardInterrupt: interrupted; finished policies are in its attribute ``outcomes``.

    Example:
        >>> import gpuctl
        >>> result = gpuctl.replay("sample_data/jobs.csv", "4x8", ["fifo", "srtf"])
        >>> result.table("replay_summary")["policy"].to_list()
        ['fifo', 'srtf']
    """
    from gpuctl.library.progress import NOTEBOOK
    from gpuctl.library.result import Result
    from gpuctl.replay.run import ReplayInterrupted
    from gpuctl.reports.screens.replay import screen
    from gpuctl.services import replays

    with _prepared(
        jobs, cluster, policies, params, options, where=where, scale_load=scale_load, add_nodes=add_nodes, seed=seed,
        baseline=baseline, against="recorded" if against_recorded else None, processes=processes,
    ) as ready:  # fmt: skip
        outcomes = replays.run(ready, NOTEBOOK)
        before = replays.compare(ready, outcomes, NOTEBOOK)
        if before.missing:
            raise ReplayInterrupted(outcomes, before.missing)
        return Result(
            replays.result(ready, outcomes, before, command="gpuctl.replay"),
            lambda found: screen(found, found.warnings),
        )


def sweep(
    jobs: object,
    cluster: PathOrText | None = None,
    policies: Sequence[str | type[Policy]] = ("fifo",),
    *,
    params: Mapping[str, Parameter | Sequence[Parameter]] | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    baseline: str | None = None,
    scale_load: Sequence[float] = (),
    add_nodes: Sequence[str | int] = (),
    seeds: Sequence[int] = (0,),
    resample: str = "days",
    processes: int | None = None,
    **options: Unpack[ReplayOptions],
) -> Result:
    """Replay every combination of policies, parameters, loads, nodes and seeds, and compare them with intervals.

    Args:
        jobs: as for `replay`.
        cluster: as for `replay`.
        policies: as for `replay`; only by name.
        params: parameters, each with one value or a list of values.
        where: as for `replay`.
        baseline: as for `replay`.
        scale_load: factors of the load.
        add_nodes: numbers of nodes to add.
        seeds: with several, each also resamples the jobs, and results have intervals over the seeds.
        resample: what a seed draws: days, weeks, users, or none.
        processes: replays to run at a time.
        options: what holds for every policy.

    Returns:
        ``experiments_summary`` has a row per combination, ``experiments`` a row per combination and seed.

    Raises:
        UsageError: as for `replay`; or nothing varies.
        InputError: as for `replay`.

    Example:
        >>> import gpuctl
        >>> result = gpuctl.sweep("sample_data/jobs.csv", "4x8", ["fifo", "srtf"], scale_load=[1, 1.2])
        >>> result.table("experiments_summary").height
        4
    """
    from gpuctl.library.progress import NOTEBOOK
    from gpuctl.library.result import Result
    from gpuctl.reports.screens.experiments import screen
    from gpuctl.services import sweeps
    from gpuctl.spread.engine import parse

    if any(map(inspect.isclass, listed("policies", policies))):
        raise UsageError("a sweep takes policies by name", hint="put the class into a file: FILE.py:CLASS")
    scale_load, add_nodes = listed("scale_load", scale_load), listed("add_nodes", add_nodes)
    seeds = listed("seeds", seeds)
    with _prepared(
        jobs, cluster, policies, params, options, where=where, scale_load=scale_load, add_nodes=add_nodes, seed=seeds,
        baseline=baseline, resample=resample, processes=processes, several=True,
    ) as ready:  # fmt: skip
        found = sweeps.sweep(ready, NOTEBOOK, engine=parse("local", processes), command="gpuctl.sweep")
        return Result(found, screen)


class Simulation:
    """One policy on some jobs and nodes, advanced step by step.

    Args:
        jobs: as for `replay`.
        cluster: as for `replay`.
        policy: a name, or a class.
        params: its parameters by ``NAME``.
        seed: for stochastic policies.
        options: as for `replay`.

    Raises:
        UsageError: as for `replay`.
        InputError: as for `replay`.

    Example:
        >>> import gpuctl
        >>> simulation = gpuctl.Simulation("sample_data/jobs.csv", "4x8", "srtf")
        >>> simulation.advance(until=3600)
        >>> simulation.now <= 3600, simulation.unfinished > 0
        (True, True)
        >>> other = simulation.fork()
        >>> other.advance(instants=5)
        >>> other.jobs().height
        300
    """

    def __init__(
        self,
        jobs: object,
        cluster: PathOrText | None = None,
        policy: str | type[Policy] = "fifo",
        *,
        params: Mapping[str, Parameter] | None = None,
        seed: int = 0,
        **options: Unpack[ReplayOptions],
    ) -> None:
        from gpuctl.replay.run import Models, start_simulation

        with _prepared(jobs, cluster, [policy], params, options, seed=seed) as ready:
            models = {key: value for key, value in ready.models.items() if key != "skip_unplaceable"}
            self._simulation: Running = start_simulation(
                ready.source.workload, ready.source.cluster, ready.plan.names[0],
                Models(rates=ready.source.rates, **models),
                skip_unplaceable=options.get("skip_unplaceable", False),
            )  # fmt: skip

    @property
    def now(self) -> float:
        """The present second of the simulation, counted from its start."""
        return self._simulation.now

    @property
    def unfinished(self) -> int:
        """Jobs that have neither ended nor been rejected."""
        return self._simulation.left

    def advance(self, until: float | None = None, instants: int | None = None) -> None:
        """Advance to a second, by a number of instants at which something happens, or to the end.

        Args:
            until: second of the simulation's clock. Default: the end.
            instants: number of instants; if both are given, the earlier end counts.

        Raises:
            UsageError: `until` is not a number, or `instants` is not a whole number of at least 0.
        """
        if until is not None:
            until = number("until", until)
        if instants is not None and number("instants", instants, 0, 2**53) != int(instants):
            raise UsageError(f"instants={instants!r}: expected a whole number", hint="instants=1")
        left = None if instants is None else int(instants)
        while left is None or left > 0:
            before = self._instants()
            going = self._simulation.advance(float("inf") if until is None else until, left or 20_000)
            done = self._instants() - before
            if left is not None:
                left -= done
            if not going or done == 0:
                return

    def jobs(self) -> pl.DataFrame:
        """Return the jobs as they are now: state, and times in seconds from the start of the simulation."""
        return self._simulation.fork().outcome().jobs

    def fork(self) -> Simulation:
        """Return an independent copy at the same instant."""
        twin = object.__new__(Simulation)
        twin._simulation = self._simulation.fork()
        return twin

    def _instants(self) -> int:
        return int(self._simulation.state.g[0].instants)


@contextmanager
def _prepared(
    jobs: object, cluster: PathOrText | None, policies: Sequence[str | type[Policy]],
    params: Mapping[str, Parameter | Sequence[Parameter]] | None, options: ReplayOptions, *,
    where: Mapping[str, str | Sequence[str]] | None = None, processes: int | None = None,
    several: bool = False, **more: object,
) -> Iterator[Prepared]:  # fmt: skip
    """Read jobs and nodes as the command line does; temporary files live until the end of the context."""
    from gpuctl.library.progress import NOTEBOOK
    from gpuctl.services import replays
    from gpuctl.services.options import Comparison, Failing, Inputs, Policies, Rules, record_of
    from gpuctl.services.replay_plan import plan

    check_names(options, ReplayOptions.__annotations__)
    if processes is not None:
        number("processes", processes, 1)
    names, local = _named(policies)
    values: dict[str, Any] = {
        "cluster": None if cluster is None else path_of(cluster, "cluster"), "policy": names,
        "jobs": 1 if local else processes,
        "param": [f"{key}={_listed(value)}" for key, value in mapping("params", params).items()],
        **{key: text for key, value in more.items() if (text := _listed(value))}, **options,
    }  # fmt: skip
    with ExitStack() as stack:
        paths = input_paths(jobs, stack)
        if isinstance(jobs, Trace):
            values.setdefault("trace_cluster", jobs.cluster)
        planned = plan(
            paths, record_of(Policies, values), record_of(Inputs, values), record_of(Rules, values),
            record_of(Comparison, values), failing=record_of(Failing, values),
        )  # fmt: skip
        if several and not planned.varied.several:
            raise UsageError("nothing varies", hint="several seeds, loads, nodes or values of a parameter")
        if planned.varied.several and not several:
            raise UsageError("several values of an option", hint="gpuctl.sweep replays each of them")
        yield replays.prepare(planned, job_filter(where), NOTEBOOK)


def _listed(value: object) -> str:
    """One value or several as a text, as options have them; empty for none."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return "" if value is None else str(value)
    return ",".join(map(str, value))


def _named(policies: Sequence[str | type[Policy]]) -> tuple[list[str], bool]:
    """Names of the policies, and whether some are classes, which no other process can import."""
    from gpuctl.replay.policies import register

    given = listed("policies", policies)
    if not given:
        raise UsageError("no policy to replay", hint='policies=["fifo", "srtf"]')
    names = [register(each) if isinstance(each, type) else str(each) for each in given]
    return names, any(map(inspect.isclass, given))
