"""Results of jobs of stages under policies, and of the distillation of a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.notes import NamedValue, Note, literal, named, note
from gpuctl.core.results import Analysis
from gpuctl.research.dag.evaluate import best_simple, change
from gpuctl.research.learn.repeated_runs import student_interval
from gpuctl.research.row_tables import Row, column
from gpuctl.trees.tables import rules_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.core.results import ResultTable
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
_WHO = "Who decides."
_BEST_SIMPLE = "The best of fifo, fair, wfair, cp and srpt at this load, of those that were run."
_LOW, _HIGH = "Lower end of its 95 % interval, paired by set.", "Upper end of it."


class SummaryRow(
    Row, name="summary", section=SECTION, title="Policies", question="How soon are jobs done under each policy?"
):
    """Outcome of all jobs of a file under a policy."""

    policy: str = column("-", _WHO)
    jobs: int = column("jobs", "Jobs of the file; all of them end.")
    mean_jct_ms: float = column("ms", "Mean completion time: from a job's arrival to the end of its last task.")
    p95_ms: int = column("ms", "The completion time that 95 % of the jobs do not exceed.")
    makespan_ms: int = column("ms", "End of the last job.")
    moves: int = column("tasks", "Tasks that began after their executor had moved from another job, or was fresh.")
    busy_ms: int = column("ms", "Time of all tasks.")
    decisions: int = column("decisions", "At which an executor was free and a stage could run.")


class JobRow(
    Row, name="jobs", section=SECTION, title="Jobs", detail=True, question="When does each job start and end?"
):
    """A job under a policy."""

    policy: str = column("-", _WHO)
    job: str = column("-", "Name of the job.")
    arrival: int = column("ms", "When it came, in ms.")
    start: int = column("ms", "Start of its first task, in ms.")
    end: int = column("ms", "End of its last task, in ms.")


class PolicyRow(
    Row, name="dag_policies", section=SECTION, title="Policies by load",
    question="Which policy has jobs done soonest?",
):  # fmt: skip
    """A policy at a load."""

    load: float = column("-", "Work that comes over what the executors can do.")
    policy: str = column("-", _WHO)
    sets: int = column("sets", "Sets of jobs, each with a seed of its own.")
    mean_jct_ms: float = column("ms", "Mean over the sets of a set's mean completion time.")
    low_ms: float = column("ms", "Lower end of its 95 % interval over the sets, by Student's t.")
    high_ms: float = column("ms", _HIGH)
    best_simple: str | None = column("-", _BEST_SIMPLE)
    change_pct: float | None = column(
        "%",
        "How much longer jobs take than under that one: the mean difference over the sets in % of its mean; negative: "
        "sooner done.",
    )
    change_low_pct: float | None = column("%", _LOW)
    change_high_pct: float | None = column("%", _HIGH)


class GainRow(
    Row, name="dag_gains", section=SECTION, title="Against the best simple rule",
    question="Does the search pay, and does the tree?",
):  # fmt: skip
    """The search or a tree at a load."""

    case: str = column("-", "The search or a tree, and the load.")
    best_simple: str = column("-", _BEST_SIMPLE)
    change_pct: float = column(
        "%", "How much longer jobs take than under that one, as in dag_policies; negative: sooner done."
    )
    change_low_pct: float = column("%", _LOW)
    change_high_pct: float = column("%", _HIGH)
    taught: int | None = column(
        "decisions", "Decisions for which its teacher was asked in training; empty: it learned nothing."
    )


class FidelityRow(
    Row, name="dag_fidelity", section=SECTION, title="Fidelity to the teacher",
    question="How often does a policy choose as the teacher, where there is a choice?",
):  # fmt: skip
    """A policy compared with the teacher, at a load."""

    load: float = column("-", "Work that comes over what the executors can do; empty: files of the user.")
    player: str = column("-", "Whose decisions led to the states.")
    policy: str = column("-", "Whose choice is compared with the teacher's; chance: any candidate alike.")
    decisions: int = column("decisions", "With at least two jobs to choose from.")
    same_pct: float = column("%", "Share of them in which the teacher chooses the same job.")
    loss_ms: float | None = column(
        "ms", "Mean sum of end times, by the search, of the action less that of the teacher's action."
    )


class RoundRow(
    Row, name="dag_rounds", section=SECTION, title="Rounds of training", question="What was the tree fitted to?"
):
    """A round of the training of a tree."""

    round: int = column("-", "Number of the round, from 0.")
    player: str = column("-", "Whose decisions led to the states; the teacher says what was right.")
    sets: int = column("sets", "Sets of jobs.")
    decisions: int = column("decisions", "With a choice.")
    rows: int = column("rows", "Of them: one a candidate, or an action.")
    leaves: int = column("leaves", "Of the tree that is fitted to the rows of this round and of those before.")


def simulated(
    jobs: Sequence[Job], outcomes: Mapping[str, Outcome], path: str, *, executors: int, delay_ms: int, command: str,
    limits: Sequence[Policy],
) -> Analysis:  # fmt: skip
    """Assemble the outcomes of policies as a result."""
    population = note(
        "{jobs:,} job{jobs||s} of {stages:,} stages and {tasks:,} task{tasks||s}.", jobs=len(jobs),
        stages=sum(len(job.stages) for job in jobs), tasks=sum(s.tasks for job in jobs for s in job.stages),
    )  # fmt: skip
    summary = [
        SummaryRow(name, len(jobs), float(o.completion.mean()), o.p95, o.makespan, o.moves, o.busy, o.decisions)
        for name, o in outcomes.items()
    ]
    each = pl.concat(
        pl.DataFrame(
            {
                "policy": [name] * len(jobs), "job": [job.name for job in jobs], "arrival": o.arrival,
                "start": o.start, "end": o.end,
            }
        )
        for name, o in outcomes.items()
    )  # fmt: skip
    tables = (SummaryRow.table(summary, population), JobRow.table(each, population))
    settings = _setting(executors, delay_ms) | _limits(limits)
    return _analysis(named("path", path), tables, settings, command, (KNOWN,))


KNOWN = literal(
    "Every policy knows how long tasks take and how many a stage has, as Decima does. Where the file's times are those "
    "that were measured afterwards, all of them are oracles."
)
_LIMITS = {
    "fair": "up to its share of the executors",
    "all": "as many executors as are free",
    "tree": "as many executors as the rules say",
}


def _limit(limit: Limit | None) -> Note:
    return literal("" if limit is None else _LIMITS[limit.value])


def _limits(policies: Sequence[Policy]) -> dict[str, Note]:
    """Return the limits on executors of the trees among policies."""
    trees = [policy for policy in policies if policy.limit]
    return {
        f"limit {k}": note("{policy}: {limit}", policy=NamedValue("policy", tree.name), limit=_limit(tree.limit))
        for k, tree in enumerate(trees, 1)
    }


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
    """Assemble means over sets as a result, with a sentence for each policy that is not simple."""
    rows, gains, verdicts = [], [], []
    taught = {policy.name: _labelled_decisions(policy) for policy in policies}
    for load, means in found.items():
        best = best_simple(dict(means))
        for name, values in means.items():
            changes = (None,) * 3 if best in {None, name} else change(values, means[str(best)])
            rows.append(PolicyRow(load, name, len(values), *student_interval(values), best, *changes))
            if best is not None and name not in PLAIN_NAMES and changes[1] is not None:
                verdicts.append(_verdict(load, name, best, changes))
                gains.append(GainRow(f"{name} at load {load:g}", best, *changes, taught[name]))
    population = note(
        "{sets:,} made-up sets of {jobs:,} job{jobs||s} at each of {loads} loads, seeds {first} to {last}; no tree "
        "whose card says so was trained on them.",
        sets=len(setting.seeds), jobs=setting.jobs, loads=len(setting.loads),
        first=setting.seeds[0], last=setting.seeds[-1],
    )  # fmt: skip
    tables = [PolicyRow.table(rows, population)]
    if gains:
        tables.insert(0, GainRow.table(gains, population, tuple(verdicts)))
    if any(fidelity.values()):
        tables.append(_fidelity(fidelity, population))
    settings = _setting(setting.executors, setting.delay_ms) | _limits(policies)
    return _analysis(literal("made-up jobs"), tuple(tables), settings, command)


PLAIN_NAMES = ("fifo", "fair", "wfair", "cp", "srpt")


def _labelled_decisions(policy: Policy) -> int | None:
    """Return the number of decisions labelled by the teacher, from the card of a tree; None: it has no card."""
    rounds = [] if policy.card is None else policy.card.get("rounds", [])
    counts = [each.get("decisions") for each in rounds if isinstance(each, dict)] if isinstance(rounds, list) else []
    return sum(each for each in counts if type(each) is int) or None


def _verdict(load: float, name: str, best: str, changes: tuple[float | None, ...]) -> Note:
    mean, low, high = (float("nan") if each is None else each for each in changes)
    who, than = NamedValue("policy", name), literal(best)
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
        FidelityRow(load, each.player, each.policy, each.decisions, 100 * each.same, each.loss_ms)
        for load, several in found.items()
        for each in several
    ]
    caveat = literal(
        "The search parts near-equal actions, too: what a choice costs says more than how often it is the same."
    )
    return FidelityRow.table(rows, population, (caveat,))


def distilled(
    distillation: Distillation, rounds: Sequence[tuple[int, Round]], fidelity: Mapping[float, Sequence[Fidelity]],
    rules: Rules, *, training: Mapping[str, Note], command: str, cpu_s: float,
) -> Analysis:  # fmt: skip
    """Assemble a distillation as a result."""
    rows = [
        RoundRow(k, each.player, sets, each.decisions, each.rows, each.leaves) for k, (sets, each) in enumerate(rounds)
    ]
    population = note(
        "{sets:,} set{sets||s} of jobs in {rounds:,} round{rounds||s}.",
        sets=sum(n for n, _ in rounds),
        rounds=len(rounds),
    )
    tables = [RoundRow.table(rows, population)]
    if any(fidelity.values()):
        unseen = note("Sets of jobs that the tree was not fitted to: {sets}.", sets=training["tested on"])
        tables.append(_fidelity(fidelity, unseen))
    tables.append(rules_table(rules, SECTION))
    leaves = literal("no limit") if distillation.leaves is None else note("{n} at most", n=distillation.leaves)
    settings = {
        "teacher": named("policy", distillation.teacher),
        **_setting(distillation.executors, distillation.delay_ms),
        "tree": note("depth {depth}, {leaf:,} row{leaf||s} a leaf or more, leaves: {leaves}", depth=distillation.depth,
                     leaf=distillation.leaf, leaves=leaves),
        "a job gets": _limit(distillation.limit),
        **training,
        "training": note("{s:.1f} CPU seconds", s=cpu_s),
    }  # fmt: skip
    return _analysis(literal("a tree"), tuple(tables), settings, command)


def rules_result(rules: Rules, path: str, limit: Limit, command: str) -> Analysis:
    """Return the rules of a model as a result."""
    return _analysis(named("path", path), (rules_table(rules, SECTION),), {"a job gets": _limit(limit)}, command)
