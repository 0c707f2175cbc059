"""A learned policy against rules, as a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.notes import Named, note, ours
from gpuctl.core.numbers import number
from gpuctl.core.results import Analysis, Column, ResultTable

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.evaluate import Evaluation, Scores

GAINS = (
    Column("load", "-", "Load of the streams: 1 is what the system could just serve if it were perfectly used."),
    Column("policy", "-", "The model."),
    Column("streams", "streams", "Streams of requests, none of which the model has learnt from."),
    Column("sla", "-", "Mean over the streams of the share of deadlines that the model keeps."),
    Column("rule", "-", "The rule that keeps most deadlines on these streams: the best one, not the weakest."),
    Column("rule_sla", "-", "Its mean share."),
    Column("gain", "-", "Mean of sla - rule_sla, paired by stream."),
    Column("gain_low", "-", "Lower end of its 95 % interval, by Student's t; empty: one stream."),
    Column("gain_high", "-", "Upper end of it."),
    Column("result", "-", "more or fewer deadlines than the rule; not shown: the interval has 0 in it."),
    Column("train_generations", "-", "Generations, or rounds, that the model was trained for; empty: not known."),
    Column("train_episodes", "streams", "Streams that were simulated for it; empty: not known."),
)
LOADS = (
    Column("load", "-", "As in the table accel_gains."),
    Column("policy", "-", "A rule, or the model."),
    Column("streams", "streams", "Streams of requests, the same for all policies."),
    Column("sla", "-", "Mean over the streams of the share of deadlines that are kept."),
    Column("sla_low", "-", "Lower end of the 95 % interval of that mean, by Student's t; empty: one stream."),
    Column("sla_high", "-", "Upper end of it."),
    Column("jain", "-", "Mean of Jain's index of the tenants' shares."),
    Column("worst_tenant", "-", "Mean of the least of the tenants' shares."),
    Column("p99_us", "us", "Mean of the 99th percentile of latency."),
    Column("energy_mj", "mJ", "Mean of the dynamic energy of a stream."),
    Column("overhead_pct", "%", "Energy of a net's own answers over that of the layers, as in the table accel; mean."),
    Column("decision_us", "us", "CPU time of the simulations over their decisions, the simulator's own included; "
           "measured, so that it is another one in each run."),
)  # fmt: skip
GROUPS = (
    Column("load", "-", "As in the table accel_gains."),
    Column("policy", "-", "A rule, or the model."),
    Column("by", "-", "model, or qos (quality of service)."),
    Column("name", "-", "Which one."),
    Column("requests", "requests", "Requests of it in all streams."),
    Column("sla", "-", "Share of them that were finished by their deadline."),
)
CURVE = (
    Column("step", "-", "Generation, or round, of the training, from 1."),
    Column("score", "-", "Mean score of what was tried in it."),
    Column("held_score", "-", "Score on streams that are not learnt from; empty: not looked at."),
)
TABLES = ("accel_gains", "accel_loads", "accel_by_group", "accel_curve")
MOST_OVERHEAD_PCT = 1.5
"""Of the energy of the layers: what the paper says of its policy."""


def sentences(scores: Scores) -> tuple[Note, ...]:
    """What the gains mean, one sentence a load, and whether the policy's own energy matters."""
    told = []
    for row in scores.gains:
        more = {"more": "keeps more deadlines than", "fewer": "keeps fewer deadlines than"}.get(
            row["result"], "is not shown to differ from"
        )
        pays = "" if row["result"] == "more" else " Learning does not pay here."
        told.append(note(
            "At load {load} the model {more} {rule}, the best rule: {sla:.3f} against {rule_sla:.3f}.{pays}",
            load=ours(number(row["load"])), more=ours(more), rule=ours(row["rule"]), sla=row["sla"],
            rule_sla=row["rule_sla"], pays=ours(pays),
        ))  # fmt: skip
    most = max((row["overhead_pct"] or 0.0 for row in scores.loads), default=0.0)
    if most > MOST_OVERHEAD_PCT:
        told.append(note("The model's own energy is up to {most:.2f} % of the layers', more than 1.5 %.", most=most))
    return tuple(told)


def result(
    scores: Scores, machine: Machine, asked: Evaluation, about: dict[str, Any], curve: list[dict[str, float]], *,
    command: str, warnings: tuple[Note, ...] = (),
) -> Analysis:  # fmt: skip
    """Put the scores of `gpuctl.research.accel.evaluate.run` together as a result."""
    population = note(
        "{streams:,} streams of {n:,} request{n||s} a load, seeds {first} to {last}, on {system}.",
        streams=asked.streams,
        n=asked.requests, first=asked.first_seed, last=asked.first_seed + asked.streams - 1,
        system=ours(machine.system.text),
    )  # fmt: skip
    spent = {
        "train_generations": whole(about.get("generations")),
        "train_episodes": whole(about.get("episodes")),
    }
    rows = [row | spent for row in scores.gains]
    of_curve = [
        {"step": k + 1, "score": row.get("score", row.get("reward")), "held_score": row.get("held_score")}
        for k, row in enumerate(curve)
    ]
    tables = (
        _table("accel_gains", "What learning gains", "Does the model keep more deadlines than the best rule?",
               population, sentences(scores), GAINS, rows),
        _table("accel_loads", "Policies by load", "How many deadlines does each policy keep, and at which cost?",
               population, (), LOADS, scores.loads),
        _table("accel_by_group", "Deadlines by model and quality of service", "Who pays for it?", population, (),
               GROUPS, scores.groups, detail=True),
        _table("accel_curve", "Training", "How did the training go?", note("Each step of the training."), (), CURVE,
               of_curve, detail=True),
    )  # fmt: skip
    return Analysis(
        cluster=note("{name}", name=Named("cluster", machine.system.text)), tables=tables,
        sections=(("accel", "Accelerators"),), sources=(),
        settings={
            "system": ours(f"{', '.join(machine.system.kinds)}; {number(machine.system.bandwidth)} bytes/us"),
            "training": _training(about),
            "intervals": ours("95 %, Student's t over streams; gains are paired by stream"),
        },
        command=command, warnings=(*warnings, *sentences(scores)),
    )  # fmt: skip


def whole(value: object) -> int | None:
    """A whole number of a card, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _training(about: dict[str, Any]) -> Note:
    generations, episodes = whole(about.get("generations")), whole(about.get("episodes"))
    if generations is None or episodes is None:
        return ours("not known: the model has no card")
    return note("generations or rounds: {g:,}; simulated streams: {e:,}", g=generations, e=episodes)


def _table(  # noqa: PLR0917
    name: str, title: str, question: str, population: Note, notes: tuple[Note, ...], columns: tuple[Column, ...],
    rows: list[dict[str, Any]], *, detail: bool = False,
) -> ResultTable:  # fmt: skip
    texts = {"policy", "rule", "result", "by", "name"}
    wholes = {"streams", "requests", "step", "train_generations", "train_episodes"}
    types = {c.name: pl.String if c.name in texts else pl.Int64 if c.name in wholes else pl.Float64 for c in columns}
    frame = pl.DataFrame([{c.name: row[c.name] for c in columns} for row in rows], schema=types)
    return ResultTable(
        name=name, section="accel", title=title, question=question, population=population, notes=notes,
        columns=columns, frame=frame, detail=detail,
    )  # fmt: skip
