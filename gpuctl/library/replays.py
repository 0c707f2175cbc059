"""Replays: the same jobs under other policies, loads or nodes, at once or step by step."""

from __future__ import annotations

import inspect
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from dataclasses import replace as replaced_in
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from gpuctl.core.errors import UsageError
from gpuctl.library.analysis import job_filter
from gpuctl.library.traces import PathOrText, Trace, input_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    import polars as pl

    from gpuctl.cli.experiment import ExperimentOptions
    from gpuctl.cli.replay_inputs import Source
    from gpuctl.library.result import Result
    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.engine.simulation import Simulation as Running
    from gpuctl.replay.inputs.calibration import Calibration
    from gpuctl.replay.models.records import Outcome

Parameter = str | float | int
Chosen = list[tuple[str, dict[str, str]]]


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
    """

    failures: PathOrText | float
    checkpoint: str | float
    checkpoint_write: float
    restart: float
    detect: float
    repair: PathOrText | float
    spares: int
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
    from gpuctl.cli import unchanged
    from gpuctl.cli.replay import result_of
    from gpuctl.library.result import Result

    with _prepared(
        jobs, cluster, policies, [f"{key}={value}" for key, value in (params or {}).items()], options,
        where=where, scale_load=scale_load, add_nodes=add_nodes, seed=str(seed), baseline=baseline,
        against_recorded=against_recorded, processes=processes,
    ) as ready:  # fmt: skip
        source, models, chosen = ready.source, {**ready.models, "seed": seed}, ready.options
        outcomes, _ = _run(source, chosen.names, models, processes=ready.processes)
        before = unchanged.before(
            source, chosen.names, models, outcomes, known=ready.calibration, wanted=chosen.compared.unchanged,
            run=lambda *given: _run(*given, processes=ready.processes),
        )  # fmt: skip
        found = result_of(outcomes, source, ready.baseline, chosen.compared, None, was=before, seed=seed, tables=None)
        return Result(replaced_in(found, command="gpuctl.replay"), "replay")


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
    from gpuctl.cli import experiment, unchanged
    from gpuctl.library.progress import NotebookProgress
    from gpuctl.library.result import Result
    from gpuctl.replay.experiments.run import run as replay_all
    from gpuctl.spread.engine import parse

    if any(isinstance(each, type) for each in policies):
        raise UsageError("a sweep takes policies by name", hint="put the class into a file: FILE.py:CLASS")
    listed = {
        key: ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        for key, value in (params or {}).items()
    }
    with _prepared(
        jobs, cluster, policies, [f"{key}={value}" for key, value in listed.items()], options,
        where=where, scale_load=",".join(map(str, scale_load)) or None, add_nodes=",".join(map(str, add_nodes)) or None,
        seed=",".join(map(str, seeds)), baseline=baseline, resample=resample, processes=processes,
    ) as ready, NotebookProgress() as progress:  # fmt: skip
        chosen = ready.options
        if not chosen.varied.several:
            raise UsageError("nothing varies", hint="several seeds, loads, nodes or values of a parameter")
        was = unchanged.for_cells(
            ready.source, chosen.names, ready.models, known=ready.calibration, wanted=chosen.compared.unchanged,
            run=lambda *given: _run(*given, processes=processes),
        )  # fmt: skip
        found = experiment.replayed(
            ready.source, chosen.names, ready.models, chosen.varied, was, chosen.rules, chosen.compared, ready.baseline,
            run=lambda base, plan: replay_all(
                base, plan, None, engine=parse("local", processes),
                progress=lambda count, size: progress.at("replaying", count, size), notify=lambda _text: None,
            ),
            command="gpuctl.sweep",
        )  # fmt: skip
        return Result(found, "experiments")


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
        >>> simulation.now <= 3600
        True
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

        with _prepared(
            jobs, cluster, [policy], [f"{key}={value}" for key, value in (params or {}).items()], options,
            seed=str(seed),
        ) as ready:  # fmt: skip
            models = {key: value for key, value in ready.models.items() if key != "skip_unplaceable"}
            self._simulation: Running = start_simulation(
                ready.source.workload, ready.source.cluster, ready.options.names[0],
                Models(rates=ready.source.rates, seed=seed, **models),
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
        """Advance to a second, by a number of instants at which something happens, or to the end."""
        left = instants
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


@dataclass(frozen=True)
class _Prepared:
    """Jobs, nodes, policies and rules, ready to be replayed."""

    source: Source
    models: dict[str, Any]
    options: ExperimentOptions
    calibration: Calibration | None
    baseline: str | None
    processes: int | None


@contextmanager
def _prepared(
    jobs: object, cluster: PathOrText | None, policies: Sequence[str | type[Policy]], params: list[str],
    options: ReplayOptions, *, seed: str, where: Mapping[str, str | Sequence[str]] | None = None,
    scale_load: float | str | None = None, add_nodes: str | int | None = None, baseline: str | None = None,
    against_recorded: bool = False, resample: str = "days", processes: int | None = None,
) -> Iterator[_Prepared]:  # fmt: skip
    """Read jobs and nodes as the command line does; temporary files live until the end of the context."""
    from gpuctl.cli.common import Settings
    from gpuctl.cli.experiment import failures_of
    from gpuctl.cli.policy_choice import checked_baseline
    from gpuctl.cli.replay import configured, models_of
    from gpuctl.cli.replay_inputs import by_traits, read
    from gpuctl.cli.replay_options import (
        Against,
        Comparison,
        Failing,
        Inputs,
        Mode,
        Placement,
        Policies,
        Resample,
        Rules,
        Work,
    )

    enums = {"placement": Placement, "mode": Mode, "work": Work}
    plain: dict[str, Any] = {key: _choice(enums[key], key, str(value)) if key in enums else value
                             for key, value in options.items()}  # fmt: skip
    unknown = sorted(set(plain) - set(ReplayOptions.__annotations__))
    if unknown:
        raise TypeError(f"unexpected option {unknown[0]!r}")
    for key in ("inference_load", "quotas", "racks", "speeds", "pair_speeds", "calibrated"):
        if key in plain:
            plain[key] = Path(plain[key])
    for key in ("failures", "checkpoint", "repair"):
        if key in plain:
            plain[key] = str(plain[key])
    for key in ("yarn_conf", "slurm_conf"):
        if key in plain:
            plain[key] = [Path(each) for each in plain[key]]

    def of(kind: type, **more: object) -> Any:
        names = {field.name for field in fields(kind)}
        return kind(**{key: value for key, value in plain.items() if key in names}, **more)

    with ExitStack() as stack:
        paths = input_paths(jobs, stack)
        names, local = _named(policies)
        chosen = of(Policies, policy=names, param=params)
        inputs = of(
            Inputs, cluster=None if cluster is None else str(cluster), scale_load=_text(scale_load),
            add_nodes=_text(add_nodes),
        )  # fmt: skip
        if isinstance(jobs, Trace) and inputs.trace_cluster is None:
            inputs = replaced_in(inputs, trace_cluster=jobs.cluster)
        rules = of(Rules, seed=seed, resample=_choice(Resample, "resample", resample))
        compared = of(Comparison, baseline=baseline, against=Against.RECORDED if against_recorded else None)
        failing = of(Failing)
        calibration, found = configured(chosen, inputs, rules, compared, paths, failing=failing)
        failures = failures_of(failing, found.varied)
        varying = replaced_in(found.inputs, scale_load=None, add_nodes=None)
        source = read(
            paths, varying if found.varied.several else found.inputs, job_filter(where), found.rules,
            tuple(chosen.slurm_conf or ()), Settings(quiet=True), names=found.names,
            quotas=None if calibration is None else calibration.quotas, failing=failures is not None,
        )  # fmt: skip
        source, models = by_traits(source, {**models_of(found.rules), "failures": failures}, found.names)
        yield _Prepared(
            source, models, found, calibration, checked_baseline(baseline, found.names), 1 if local else processes
        )


def _run(
    source: Source, names: Chosen, models: dict[str, Any], *, processes: int | None
) -> tuple[list[Outcome], list[str]]:
    from gpuctl.library.progress import NotebookProgress
    from gpuctl.replay.run import replay as run

    with NotebookProgress() as progress:
        outcomes = run(
            source.workload, source.cluster, names,
            rates=source.rates, processes=processes, progress=progress.replayed, **models,
        )  # fmt: skip
    return outcomes, []


def _named(policies: Sequence[str | type[Policy]]) -> tuple[list[str], bool]:
    """Names of the policies, and whether some are classes, which no other process can import."""
    from gpuctl.replay.policies import register

    if isinstance(policies, str):
        raise UsageError(f"policies={policies!r}: expected a list", hint=f"policies=[{policies!r}]")
    names = [register(each) if inspect.isclass(each) else str(each) for each in policies]
    return names, any(map(inspect.isclass, policies))


def _choice(kind: Any, name: str, value: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise UsageError(f"{name}={value!r}", hint=f"one of {', '.join(each.value for each in kind)}") from None


def _text(value: object) -> str | None:
    return None if value is None else str(value)
