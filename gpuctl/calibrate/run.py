"""Fits a policy's rules to the first part of a trace and scores them on the rest."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.calibrate.hints import Hints, hints
from gpuctl.calibrate.search import Search
from gpuctl.calibrate.spaces import CONFIGURED, HELD, LOCALITY, NONE, QUOTA, QUOTAS, WEIGHT, Rules, crossed, space
from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.inputs.calibration import Calibration
from gpuctl.replay.inputs.transforms import take
from gpuctl.replay.models.resources import GPUS_ONLY
from gpuctl.replay.policies import find
from gpuctl.replay.run import compile_for, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpuctl.replay.models.records import Cluster, Floats, Outcome, Workload

FITTED = 0.6
"""Share of the jobs, in order of submission, that rules are fitted to."""
TRIALS = 1000
LEAST_JOBS = 10
"""Fewest jobs with a recorded start for a fit."""
MINUTE_S = 60.0
STAGES = (0.1, 0.2, 0.4, 0.7)
"""Shares of the waiting jobs to which the rules of slurm are fitted first, before all of them."""
SIMPLE = ("fifo", "fifo-skip")
"""Policies that any fit should beat."""


@dataclass(frozen=True)
class Candidate:
    """One set of rules, replayed on the whole trace.

    Attributes:
        name: its name in tables.
        policy: its policy.
        rules: parameters that differ from the policy's defaults.
        outcome: of the replay.
    """

    name: str
    policy: str
    rules: Rules
    outcome: Outcome


@dataclass(frozen=True)
class Fit:
    """Result of a calibration.

    Attributes:
        calibration: the rules, as saved.
        candidates: the rules found, first, and the rules to compare them with.
        workload: all jobs.
        scored: numbers of the jobs that rules are scored on.
        trials: number of replayed sets of rules.
        distance: of the rules, on the training jobs; see `distance`.
        racks: whether the nodes stand in several racks.
    """

    calibration: Calibration
    candidates: tuple[Candidate, ...]
    workload: Workload
    scored: np.ndarray
    trials: int
    distance: float
    racks: bool


def distance(replayed: Floats, recorded: Floats) -> float:
    """Return the mean of ln(1 + minutes between replayed and recorded start).

    An error of a minute among exact starts weighs as much as a day among starts an hour off: rules that are right for
    most jobs win over rules slightly wrong for all.

    Args:
        replayed: seconds, NaN where a job never started.
        recorded: seconds.
    """
    apart = np.abs(replayed - recorded)
    worst = np.nanmax(apart, initial=0.0)
    return float(np.log1p(np.nan_to_num(apart, nan=max(worst, 86_400.0)) / MINUTE_S).mean())


def calibrate(
    workload: Workload,
    cluster: Cluster,
    policy: str,
    *,
    fixed: Mapping[str, str] | None = None,
    fitted: float = FITTED,
    trials: int = TRIALS,
    resources: tuple[str, ...] = GPUS_ONLY,
    progress: Callable[[int, float], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> Fit:
    """Find the rules of a policy with which a replay starts jobs as recorded.

    Args:
        workload: jobs with recorded starts, of a trace.
        cluster: its nodes.
        policy: the policy's name.
        fixed: known parameters, as texts: they are not searched.
        fitted: share of the jobs, in order of submission, that the rules are fitted to; they are scored on the others.
        trials: most sets of rules to replay.
        resources: resources of jobs and nodes, see `gpuctl.replay.models.resources`.
        progress: called with the number of replays and the least distance so far.
        notify: called with a line for the user if something is compiled.

    Raises:
        InputError: too few jobs have a recorded start, or they cannot be replayed.
        UsageError: no such policy or parameter.
    """
    first = workload.recorded_start[workload.segment_start[:-1]]
    if np.isfinite(first).sum() < LEAST_JOBS:
        raise InputError(
            f"{workload.name}: {np.isfinite(first).sum():,} jobs have a recorded start; expected at least {LEAST_JOBS}",
            hint="calibrate a trace: a store, or logs that say when jobs started",
        )
    fixed = dict(fixed or {})
    count = max(1, int(fitted * workload.size))
    part = take(workload, np.arange(count))
    known = hints(part, cluster)
    choices = tuple(choice for choice in space(policy, known) if choice.name not in fixed)
    replays = _Replays(cluster, policy, fixed, known, resources, progress)
    # each replay is small enough to run as Python; all of them together are not
    compile_for(part, cluster, [(policy, fixed)], part.size * trials, notify=notify, resources=resources)
    starts, across = _starts(policy, known), [each for each in crossed(policy, known) if each[0] not in fixed]
    stages = _stages(policy, part)
    for number, jobs in enumerate(stages):
        # replays of few jobs are cheaper, so more of them are allowed
        left = (trials - replays.work / part.size) / (len(stages) - number) * part.size / jobs
        few = [choice for choice in choices if jobs == part.size or choice.name.startswith(WEIGHT)]
        search = Search(few, replays.cost(take(workload, np.arange(jobs))), max(int(left), 1))
        best = search.best(starts, across)
        starts, across = [best, {}], []
    return _compare_rules(
        workload,
        cluster,
        policy,
        best,
        fixed=fixed,
        known=known,
        trials=replays.done,
        found=search.cost(best),
        fitted=fitted,
        count=count,
        resources=resources,
    )


def _stages(policy: str, part: Workload) -> list[int]:
    """Return the number of first jobs to which rules are fitted, stage by stage.

    A queue ordered by priority diverges permanently from the recorded one once two jobs swap: over a long time, nearly
    correct weights score as badly as any; over a short time they do not.
    """
    if find(policy).name != "slurm":
        return [part.size]
    first = part.recorded_start[part.segment_start[:-1]]
    waited = np.cumsum(first - part.eligible > MINUTE_S)
    at = [int(np.searchsorted(waited, share * waited[-1])) + 1 for share in STAGES]
    return sorted({*(jobs for jobs in at if waited[-1] and LEAST_JOBS <= jobs < part.size), part.size})


@dataclass
class _Replays:
    """Replays of some of the jobs under candidate rules.

    Attributes:
        done: number of replays.
        work: jobs of all of them.
        least: the least distance so far, of the present jobs.
    """

    cluster: Cluster
    policy: str
    fixed: Rules
    known: Hints
    resources: tuple[str, ...]
    progress: Callable[[int, float], None] | None
    done: int = 0
    work: int = 0
    least: float = float("inf")

    def cost(self, part: Workload) -> Callable[[Rules], float]:
        """Return the distance of rules on some jobs as a function of the rules."""
        truth = part.recorded_start[part.segment_start[:-1]]
        # jobs submitted later may have preceded those that started later
        here = truth <= float(part.submit[-1])
        self.least = float("inf")

        def cost(rules: Rules) -> float:
            try:
                outcome = _replayed(
                    part, self.cluster, self.policy, {**rules, **self.fixed}, self.known, self.resources
                )
                found = distance(outcome.jobs["start_s"].to_numpy().astype(np.float64)[here], truth[here])
            except (InputError, UsageError) as error:
                # some values exclude each other, and under some rules a job never ends
                if isinstance(error, UsageError) and not self.done:
                    raise
                found = float("inf")
            self.done += 1
            self.work += part.size
            self.least = min(self.least, found)
            if self.progress is not None:
                self.progress(self.done, self.least)
            return found

        return cost


def _starts(policy: str, known: Hints) -> list[Rules]:
    """Return starting points of the search: the defaults and, for philly, rules of clusters that do not gather GPUs."""
    if find(policy).name != "philly":
        return [{}]
    timed = {"relax": "time", "order": "queued", "take_back": "false"}
    for name, values in (
        ("relax_after", known.relaxed), ("rack_after", known.rack_relaxed), ("lend", known.lent),
        ("requeue", known.requeued),
    ):  # fmt: skip
        if values:
            timed[name] = f"{values[0]:g}"
    return [timed, {}]


def _replayed(  # noqa: PLR0917
    workload: Workload, cluster: Cluster, policy: str, rules: Rules, known: Hints, resources: tuple[str, ...]
) -> Outcome:
    params = {name: value for name, value in rules.items() if not name.startswith("@")}
    rates = "locality" if rules.get(LOCALITY) == "true" else "recorded"
    nodes = dataclasses.replace(cluster, quota=_quota(workload.queues, cluster, rules, known))
    [outcome] = replay(workload, nodes, [(policy, params)], rates=rates, resources=resources, processes=1,
                       skip_unplaceable=True)  # fmt: skip
    return outcome


def _quota(queues: tuple[str, ...], cluster: Cluster, rules: Rules, known: Hints) -> Floats:
    name = rules.get(QUOTAS, CONFIGURED)
    if name == NONE:
        return np.full(cluster.quota.size, np.inf)
    quota = (known.quotas.get(name, cluster.quota) if name not in {CONFIGURED, HELD} else cluster.quota).copy()
    for at, queue in enumerate(queues):
        own = rules.get(QUOTA + queue, "")
        if own and at < quota.size:
            quota[at] = round(float(own))
    return np.maximum(quota, known.largest)


def _compare_rules(
    workload: Workload, cluster: Cluster, policy: str, best: Rules, *, fixed: Rules, known: Hints, trials: int,
    found: float, fitted: float, count: int, resources: tuple[str, ...],
) -> Fit:  # fmt: skip
    """Replay the whole trace under the rules found and the rules to compare them with."""
    kind = find(policy).name
    comparisons = [("calibrated", policy, {**best, **fixed}), (f"{kind}, defaults", policy, dict(fixed))]
    comparisons += [(name, name, {}) for name in SIMPLE if name != kind]
    comparisons += [("recorded", "recorded", {})]
    done: list[Candidate] = []
    for name, which, rules in comparisons:
        try:
            outcome = _replayed(workload, cluster, which, rules, known, resources)
        except UsageError:
            # resources that other policies cannot count, such as CPUs, are left out of the comparison
            if not done:
                raise
            continue
        done.append(Candidate(name, which, rules, outcome))
    first = workload.recorded_start[workload.segment_start[:-1]]
    scored = np.flatnonzero(np.isfinite(first) & (np.arange(workload.size) >= count))
    quota = _quota(workload.queues, cluster, best, known)
    scores: dict[str, str | float] = {"trace": workload.name, "jobs": workload.size, "trials": trials}
    scores |= _scores(done[0].outcome, workload, first, scored)
    calibration = Calibration(
        kind,
        {name: value for name, value in {**best, **fixed}.items() if not name.startswith("@") and name != "conf"},
        {name: float(gpus) for name, gpus in zip(workload.queues, quota, strict=False) if np.isfinite(gpus)},
        locality=best.get(LOCALITY) == "true",
        fitted=fitted,
        scores=scores,
    )
    several = np.unique(cluster.rack).size > 1
    return Fit(calibration, tuple(done), workload, scored, trials, found, racks=several)


def _scores(outcome: Outcome, workload: Workload, first: Floats, scored: np.ndarray) -> dict[str, float]:
    """Return the table of scores on the jobs to which the rules were not fitted."""
    start = outcome.jobs["start_s"].to_numpy().astype(np.float64)
    scored = scored[np.isfinite(start[scored])]
    if not scored.size:
        return {}
    apart, submit = np.abs(start - first)[scored], workload.submit[scored]
    return {
        "scored_jobs": scored.size,
        "within_1min_pct": round(100 * float((apart <= MINUTE_S).mean()), 1),
        "within_10min_pct": round(100 * float((apart <= 10 * MINUTE_S).mean()), 1),
        "delay_mean_s": round(float((start[scored] - submit).mean()), 1),
        "recorded_delay_mean_s": round(float((first[scored] - submit).mean()), 1),
    }
