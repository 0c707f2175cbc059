"""Jobs of stages under policies, and what a tree was distilled from, as results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.notes import Named, Note, named, note, ours
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.predictors.results import finite
from gpuctl.research.dag.evaluate import best_simple, change
from gpuctl.research.learn.repeated_runs import student_interval
from gpuctl.trees.tables import rules_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.research.dag.distil import Distillation, Fidelity, Round
    from gpuctl.research.dag.evaluate import Floats, Setting
    from gpuctl.research.dag.features import Limit
    from gpuctl.research.dag.jobs import Job
    from gpuctl.research.dag.policies import Policy
    from gpuctl.research.dag.simulate import Outcome
    from gpuctl.trees.rules import Rules

SECTION = "dag"
HEADING = ((SECTION, "Jobs of stages"),)
SIMULATED = ("summary", "jobs")
EVALUATED = ("dag_gains", "dag_policies", "dag_fidelity")
DISTILLED = ("dag_rounds", "dag_fidelity", "rules")
_POLICY = Column("policy", "-", "Who decides.")
_SUMMARY = (
    _POLICY,
    Column("jobs", "jobs", "Jobs of the file; all of them end."),
    Column("mean_jct_ms", "ms", "Mean completion time: from a job's arrival to the end of its last task."),
    Column("p95_ms", "ms", "The completion time that 95 % of the jobs do not exceed."),
    Column("makespan_ms", "ms", "End of the last job."),
    Column("moves", "tasks", "Tasks that began after their executor had moved from another job, or was fresh."),
    Column("busy_ms", "ms", "Time of all tasks."),
    Column("decisions", "decisions", "At which an executor was free and a stage could run."),
)
_JOBS = (
    _POLICY,
    Column("job", "-", "Name of the job."),
    Column("arrival", "ms", "When it came, in ms."),
    Column("start", "ms", "Start of its first task, in ms."),
    Column("end", "ms", "End of its last task, in ms."),
)
_POLICIES = (
    Column("load", "-", "Work that comes over what the executors can do."),
    _POLICY,
    Column("sets", "sets", "Sets of jobs, each with a seed of its own."),
    Column("mean_jct_ms", "ms", "Mean over the sets of a set's mean completion time."),
    Column("low_ms", "ms", "Lower end of its 95 % interval over the sets, by Student's t."),
    Column("high_ms", "ms", "Upper end of it."),
    Column("best_simple", "-", "The best of fifo, fair, wfair, cp and srpt at this load, of those that were run."),
    Column("change_pct", "%", "How much longer jobs take than under that one: the mean difference over the sets in % "
           "of its mean; negative: sooner done."),
    Column("change_low_pct", "%", "Lower end of its 95 % interval, paired by set."),
    Column("change_high_pct", "%", "Upper end of it."),
)  # fmt: skip
_GAINS = (
    Column("case", "-", "The search or a tree, and the load."),
    Column("best_simple", "-", "The best of fifo, fair, wfair, cp and srpt at this load, of those that were run."),
    Column(
        "change_pct", "%", "How much longer jobs take than under that one, as in dag_policies; negative: sooner done."
    ),
    Column("change_low_pct", "%", "Lower end of its 95 % interval, paired by set."),
    Column("change_high_pct", "%", "Upper end of it."),
    Column("taught", "decisions", "Decisions for which its teacher was asked in training; empty: it learned nothing."),
)
_FIDELITY = (
    Column("load", "-", "Work that comes over what the executors can do; empty: files of the user."),
    Column("player", "-", "Whose decisions led to the states."),
    Column("policy", "-", "Whose choice is compared with the teacher's; chance: any candidate alike."),
    Column("decisions", "decisions", "With at least two jobs to choose from."),
    Column("same_pct", "%", "Share of them in which the teacher chooses the same job."),
    Column("loss_ms", "ms", "Mean sum of end times, by the search, of the action less that of the teacher's action."),
)
_ROUNDS = (
    Column("round", "-", "Number of the round, from 0."),
    Column("player", "-", "Whose decisions led to the states; the teacher says what was right."),
    Column("sets", "sets", "Sets of jobs."),
    Column("decisions", "decisions", "With a choice."),
    Column("rows", "rows", "Of them: one a candidate, or an action."),
    Column("leaves", "leaves", "Of the tree that is fitted to the rows of this round and of those before."),
)


def simulated(
    jobs: Sequence[Job], outcomes: Mapping[str, Outcome], path: str, *, executors: int, delay_ms: int, command: str,
    limits: Sequence[Policy],
) -> Analysis:  # fmt: skip
    """Put what policies did together as a result."""
    population = note(
        "{jobs:,} job{jobs||s} of {stages:,} stages and {tasks:,} task{tasks||s}.", jobs=len(jobs),
        stages=sum(len(job.stages) for job in jobs), tasks=sum(s.tasks for job in jobs for s in job.stages),
    )  # fmt: skip
    summary = pl.DataFrame(
        [
            (name, len(jobs), float(o.completion.mean()), o.p95, o.makespan, o.moves, o.busy, o.decisions)
            for name, o in outcomes.items()
        ],
        schema=[column.name for column in _SUMMARY], orient="row",
    )  # fmt: skip
    each = pl.concat(
        pl.DataFrame(
            {
                "policy": [name] * len(jobs), "job": [job.name for job in jobs], "arrival": o.arrival,
                "start": o.start, "end": o.end,
            }
        )
        for name, o in outcomes.items()
    )  # fmt: skip
    tables = (
        ResultTable(
            name="summary", section=SECTION, title="Policies", columns=_SUMMARY, frame=summary, notes=(),
            question="How soon are jobs done under each policy?", population=population,
        ),
        ResultTable(
            name="jobs", section=SECTION, title="Jobs", columns=_JOBS, frame=each, notes=(), detail=True,
            question="When does each job start and end?", population=population,
        ),
    )  # fmt: skip
    given = [
        note("{policy}: {limit}", policy=Named("policy", p.name), limit=_limit(p.limit)) for p in limits if p.limit
    ]
    settings = _setting(executors, delay_ms) | {f"limit {k}": text for k, text in enumerate(given, 1)}
    return _analysis(named("path", path), tables, settings, command, (KNOWN,))


KNOWN = ours(
    "Every policy knows how long tasks take and how many a stage has, as Decima does. Where the file's times are those "
    "that were measured afterwards, all of them are oracles."
)
_LIMITS = {
    "fair": "up to its share of the executors",
    "all": "as many executors as are free",
    "tree": "as many executors as the rules say",
}


def _limit(limit: Limit | None) -> Note:
    return ours("" if limit is None else _LIMITS[limit.value])


def _setting(executors: int, delay_ms: int) -> dict[str, Note]:
    return {
        "executors": note("{n:,}", n=executors),
        "moving delay": note("{n:,} ms before an executor's first task for another job", n=delay_ms),
    }


def _analysis(
    cluster: Note, tables: tuple[ResultTable, ...], settings: dict[str, Note], command: str,
    warnings: tuple[Note, ...] = (),
) -> Analysis:  # fmt: skip
    return Analysis(cluster, tables, HEADING, (), settings, command, warnings=warnings)


def evaluated(
    setting: Setting, found: Mapping[float, Mapping[str, Floats]], fidelity: Mapping[float, Sequence[Fidelity]],
    policies: Sequence[Policy], command: str,
) -> Analysis:  # fmt: skip
    """Put means over sets together as a result, with a sentence for each policy that is not simple."""
    rows, told, gains = [], [], []
    taught = {policy.name: _taught(policy) for policy in policies}
    for load, means in found.items():
        best = best_simple(dict(means))
        for name, values in means.items():
            mean, low, high = student_interval(values)
            changes = (None,) * 3 if best in {None, name} else change(values, means[str(best)])
            rows.append((load, name, len(values), mean, finite(low), finite(high), best, *map(finite, changes)))
            if best is not None and name not in PLAIN_NAMES and changes[1] is not None:
                told.append(_verdict(load, name, best, changes))
                case = f"{name} at load {load:g}"
                gains.append((case, best, *map(finite, changes), taught[name]))
    population = note(
        "{sets:,} made-up sets of {jobs:,} job{jobs||s} at each of {loads} loads, seeds {first} to {last}; no tree "
        "whose card says so was trained on them.",
        sets=len(setting.seeds), jobs=setting.jobs, loads=len(setting.loads),
        first=setting.seeds[0], last=setting.seeds[-1],
    )  # fmt: skip
    tables = [
        ResultTable(
            name="dag_policies",
            section=SECTION,
            title="Policies by load",
            columns=_POLICIES,
            notes=(),
            frame=_frame(rows, _POLICIES),
            question="Which policy has jobs done soonest?",
            population=population,
        )
    ]
    if gains:
        first = ResultTable(
            name="dag_gains", section=SECTION, title="Against the best simple rule", columns=_GAINS, notes=tuple(told),
            frame=_frame(gains, _GAINS), question="Does the search pay, and does the tree?", population=population,
        )  # fmt: skip
        tables.insert(0, first)
    if any(fidelity.values()):
        tables.append(_fidelity(fidelity, population))
    settings = _setting(setting.executors, setting.delay_ms)
    for k, policy in enumerate((p for p in policies if p.limit), 1):
        settings[f"limit {k}"] = note(
            "{policy}: {limit}", policy=Named("policy", policy.name), limit=_limit(policy.limit)
        )
    return _analysis(ours("made-up jobs"), tuple(tables), settings, command)


PLAIN_NAMES = ("fifo", "fair", "wfair", "cp", "srpt")


def _taught(policy: Policy) -> int | None:
    """Decisions for which the teacher was asked, as the card of a tree says; None: it has none."""
    rounds = [] if policy.card is None else policy.card.get("rounds", [])
    asked = [each.get("decisions") for each in rounds if isinstance(each, dict)] if isinstance(rounds, list) else []
    return sum(each for each in asked if type(each) is int) or None


def _verdict(load: float, name: str, best: str, changes: tuple[float | None, ...]) -> Note:
    mean, low, high = (float("nan") if each is None else each for each in changes)
    who, than = Named("policy", name), ours(best)
    if high < 0:
        return note(
            "At load {load:g} jobs are done {by:.1f} % sooner ({least:.1f} to {most:.1f}) under {who} than under "
            "{than}, the best simple rule.", load=load, by=-mean, least=-high, most=-low, who=who, than=than,
        )  # fmt: skip
    if low > 0:
        return note(
            "At load {load:g} {who} does not pay: jobs take {by:.1f} % longer ({least:.1f} to {most:.1f}) than under "
            "{than}, the best simple rule.", load=load, by=mean, least=low, most=high, who=who, than=than,
        )  # fmt: skip
    return note(
        "At load {load:g} {who} does not certainly pay: jobs take {by:+.1f} % ({least:+.1f} to {most:+.1f}) longer "
            "than under {than}, the best simple rule.",
        load=load, by=mean, least=low, most=high, who=who, than=than,
    )  # fmt: skip


def _fidelity(found: Mapping[float, Sequence[Fidelity]], population: Note) -> ResultTable:
    rows = [
        (finite(load), each.player, each.policy, each.decisions, 100 * each.same, each.loss_ms)
        for load, several in found.items()
        for each in several
    ]
    return ResultTable(
        name="dag_fidelity", section=SECTION, title="Fidelity to the teacher", columns=_FIDELITY,
        frame=_frame(rows, _FIDELITY), population=population,
        question="How often does a policy choose as the teacher, where there is a choice?",
        notes=(ours("The search parts near-equal actions, too: what a choice costs says more than how often it is the "
                    "same."),),
    )  # fmt: skip


def _frame(rows: Sequence[tuple[object, ...]], columns: Sequence[Column]) -> pl.DataFrame:
    types = {"-": pl.String, "ms": pl.Float64, "%": pl.Float64}
    numbers = {"load": pl.Float64, "round": pl.Int64}
    schema = {c.name: numbers.get(c.name, types.get(c.unit, pl.Int64)) for c in columns}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def distilled(
    asked: Distillation, rounds: Sequence[tuple[int, Round]], fidelity: Mapping[float, Sequence[Fidelity]],
    rules: Rules, *, told: Mapping[str, Note], command: str, cpu_s: float,
) -> Analysis:  # fmt: skip
    """Put a distillation together as a result."""
    rows = [(k, each.player, sets, each.decisions, each.rows, each.leaves) for k, (sets, each) in enumerate(rounds)]
    population = note(
        "{sets:,} set{sets||s} of jobs in {rounds:,} round{rounds||s}.",
        sets=sum(n for n, _ in rounds),
        rounds=len(rounds),
    )
    tables = [
        ResultTable(
            name="dag_rounds", section=SECTION, title="Rounds of training", columns=_ROUNDS, notes=(),
            frame=_frame(rows, _ROUNDS), question="What was the tree fitted to?", population=population,
        )
    ]  # fmt: skip
    if any(fidelity.values()):
        unseen = note("Sets of jobs that the tree was not fitted to: {sets}.", sets=told["tested on"])
        tables.append(_fidelity(fidelity, unseen))
    tables.append(rules_table(rules, SECTION))
    leaves = ours("no limit") if asked.leaves is None else note("{n} at most", n=asked.leaves)
    settings = {
        "teacher": named("policy", asked.teacher),
        **_setting(asked.executors, asked.delay_ms),
        "tree": note("depth {depth}, {leaf:,} row{leaf||s} a leaf or more, leaves: {leaves}", depth=asked.depth,
                     leaf=asked.leaf, leaves=leaves),
        "a job gets": _limit(asked.limit),
        **told,
        "training": note("{s:.1f} CPU seconds", s=cpu_s),
    }  # fmt: skip
    return _analysis(ours("a tree"), tuple(tables), settings, command)


def rules_result(rules: Rules, path: str, limit: Limit, command: str) -> Analysis:
    """The rules of a model as a result."""
    return _analysis(named("path", path), (rules_table(rules, SECTION),), {"a job gets": _limit(limit)}, command)
