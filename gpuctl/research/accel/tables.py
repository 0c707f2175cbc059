"""Results of accelerator policies compared on requests, and of a learned policy compared with rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import number
from gpuctl.core.results import Analysis
from gpuctl.research.accel.evaluate import GainRow, LoadGroupRow, LoadRow
from gpuctl.research.accel.metrics import GroupRow, PolicyRow, by_group, figures
from gpuctl.research.accel.state import FIXED
from gpuctl.research.row_tables import Row, column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.core.results import ResultTable, SourceInfo
    from gpuctl.research.accel.check import ModelRow
    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.evaluate import Evaluation, Scores
    from gpuctl.research.accel.requests import Requests
    from gpuctl.research.accel.simulate import Outcome, Rules


class RequestRow(
    Row, name="accel_requests", section="accel", title="Requests", detail=True, question="What came of each request?"
):
    """A request under a policy."""

    policy: str = column("-", "As in the table accel.")
    request: str = column("-", "Its name.")
    start_us: float | None = column("us", "Start of its first layer; empty: none started.")
    end_us: float | None = column("us", "End of its last layer; empty: not finished, or dropped.")
    met: int = column("-", "1: finished by its deadline; 0: not.")


class LayerRow(
    Row, name="accel_layers", section="accel", title="Layers", detail=True, question="What ran where, and when?"
):
    """A layer of a request, as it ran under a policy."""

    policy: str = column("-", "As in the table accel.")
    request: str = column("-", "Its name.")
    layer: int = column("-", "Number of the layer in its model, from 0.")
    sub_accelerator: int = column("-", "Number of the sub-accelerator that it ran on, from 0.")
    start_us: float = column("us", "Its start.")
    end_us: float = column("us", "Its end.")


class TimeRow(Row, name="accel_time", section="accel", title="Time of policies", question="What does a decision take?"):
    """CPU time of a policy."""

    policy: str = column("-", "As in the table accel.")
    cpu_s: float = column(
        "s",
        "CPU time of its simulation, measured, another one in each run; of genetic and exhaustive the time of their "
        "search.",
    )
    decision_us: float | None = column(
        "us", "cpu_s over its decisions, the simulator's share included; empty: it decides once."
    )


class StreamRow(Row, name="accel_stream", section="accel", title="Requests", question="What arrives when?"):
    """A request that was generated."""

    request: str = column("-", "Its name.")
    tenant: str = column("-", "Whose it is.")
    model: str = column("-", "What it runs.")
    qos: str = column("-", "Quality of service: high, medium, low.")
    arrival_us: float = column("us", "Its arrival.")
    deadline_us: float = column("us", "Its deadline: arrival + 2, 4 or 8 times the model's least time.")


class CurveRow(
    Row, name="accel_curve", section="accel", title="Training", detail=True, question="How did the training go?"
):
    """A step of the training of a model."""

    step: int = column("-", "Generation, or round, of the training, from 1.")
    score: float | None = column("-", "Mean score of what was tried in it.")
    held_score: float | None = column("-", "Score on streams that are not learnt from; empty: not looked at.")


TABLES = ("accel", "accel_groups", "accel_time", "accel_requests", "accel_layers")
EVALUATED = ("accel_gains", "accel_loads", "accel_by_group", "accel_curve")
FILES = {"accel": "summary", "accel_requests": "requests", "accel_groups": "groups"}
"""Names of tables in the files of ``--csv``."""
MOST_OVERHEAD_PCT = 1.5
"""Of the energy of the layers: what the paper says of its policy."""


def result(
    outcomes: Sequence[Outcome], requests: Requests, machine: Machine, rules: Rules, *, log: bool, command: str,
    sources: tuple[SourceInfo, ...], warnings: tuple[Note, ...] = (),
) -> Analysis:  # fmt: skip
    """Assemble the outcomes of policies as a result.

    Args:
        outcomes: one per policy.
        requests: simulated requests.
        machine: the system.
        rules: rules of the simulation.
        log: include the table of layers.
        command: the command line.
        sources: origin of requests and costs.
        warnings: caveats for the reader.
    """
    population = note("{n:,} request{n||s} on {system}.", n=len(requests), system=literal(machine.system.text))
    groups = [row for each in outcomes for row in by_group(each, requests, machine)]
    times = [
        TimeRow(each.policy.name, each.cpu_s,
                1e6 * each.cpu_s / each.decisions if each.decisions and each.policy.order != FIXED else None)
        for each in outcomes
    ]  # fmt: skip
    tables = [
        PolicyRow.table([figures(each, requests, machine) for each in outcomes], population),
        GroupRow.table(groups, population),
        RequestRow.table(pl.concat([_requests(each, requests) for each in outcomes]), population),
        TimeRow.table(times, population),
    ]
    if log:
        tables.append(LayerRow.table(pl.concat([_layers(each, requests) for each in outcomes]), population))
    settings = {
        "system": literal(f"{', '.join(machine.system.kinds)}; {number(machine.system.bandwidth)} bytes/us"),
        "decisions": literal(f"each {number(rules.period_us)} us" if rules.period_us else "whenever one can start"),
        "late requests": literal("dropped" if rules.drop else "kept"),
    }
    return _analysis(_name(machine), tables, settings, command, warnings, sources)


def _name(machine: Machine) -> Note:
    return note("{name}", name=NamedValue("cluster", machine.system.text))


def _analysis(  # noqa: PLR0917
    cluster: Note, tables: Sequence[ResultTable], settings: dict[str, Note], command: str,
    warnings: tuple[Note, ...] = (), sources: tuple[SourceInfo, ...] = (),
) -> Analysis:  # fmt: skip
    return Analysis(cluster, tuple(tables), (("accel", "Accelerators"),), sources, settings, command, warnings=warnings)


def _requests(outcome: Outcome, requests: Requests) -> pl.DataFrame:
    frame = pl.DataFrame({
        "policy": [outcome.policy.name] * len(requests), "request": requests.names, "start_us": outcome.start,
        "end_us": outcome.end, "met": outcome.met.astype(int),
    })  # fmt: skip
    return frame.with_columns(pl.col("start_us", "end_us").fill_nan(None).round(3))


def _layers(outcome: Outcome, requests: Requests) -> pl.DataFrame:
    request, layer, accel, start, end = outcome.log
    return pl.DataFrame({
        "policy": pl.Series([outcome.policy.name] * request.size, dtype=pl.String),
        "request": pl.Series([requests.names[k] for k in request.tolist()], dtype=pl.String), "layer": layer,
        "sub_accelerator": accel, "start_us": start, "end_us": end,
    }).with_columns(pl.col("start_us", "end_us").round(3))  # fmt: skip


def models(rows: Sequence[ModelRow], path: str, command: str, warnings: tuple[Note, ...] = ()) -> Analysis:
    """Return the rows of `gpuctl.research.accel.check.overview` as a result."""
    from gpuctl.research.accel.check import ModelRow

    table = ModelRow.table(rows, note("All models of {path}.", path=NamedValue("path", path)))
    return _analysis(literal("costs"), [table], {}, command, warnings)


def stream(requests: Requests, machine: Machine, command: str) -> Analysis:
    """Return generated requests as a result."""
    frame = pl.DataFrame({
        "request": requests.names, "tenant": requests.tenants,
        "model": [machine.models[k] for k in requests.model.tolist()], "qos": requests.qos,
        "arrival_us": requests.arrival, "deadline_us": requests.deadline,
    })  # fmt: skip
    table = StreamRow.table(frame, note("{n:,} request{n||s}.", n=len(requests)))
    return _analysis(_name(machine), [table], {}, command)


def evaluated(
    scores: Scores, machine: Machine, evaluation: Evaluation, about: dict[str, Any], curve: list[dict[str, float]], *,
    command: str, warnings: tuple[Note, ...] = (),
) -> Analysis:  # fmt: skip
    """Assemble the scores of `gpuctl.research.accel.evaluate.run` as a result."""
    population = note(
        "{streams:,} streams of {n:,} request{n||s} a load, seeds {first} to {last}, on {system}.",
        streams=evaluation.streams, n=evaluation.requests, first=evaluation.first_seed,
        last=evaluation.first_seed + evaluation.streams - 1, system=literal(machine.system.text),
    )  # fmt: skip
    generations, episodes = whole(about.get("generations")), whole(about.get("episodes"))
    gains = [replace(row, train_generations=generations, train_episodes=episodes) for row in scores.gains]
    steps = [CurveRow(k, row.get("score", row.get("reward")), row.get("held_score")) for k, row in enumerate(curve, 1)]
    remarks = sentences(scores)
    tables = (
        GainRow.table(gains, population, remarks),
        LoadRow.table(scores.loads, population),
        LoadGroupRow.table(scores.groups, population),
        CurveRow.table(steps, note("Each step of the training.")),
    )
    training = literal("not known: the model has no card")
    if generations is not None and episodes is not None:
        training = note("generations or rounds: {g:,}; simulated streams: {e:,}", g=generations, e=episodes)
    settings = {
        "system": literal(f"{', '.join(machine.system.kinds)}; {number(machine.system.bandwidth)} bytes/us"),
        "training": training,
        "intervals": literal("95 %, Student's t over streams; gains are paired by stream"),
    }
    return _analysis(_name(machine), tables, settings, command, (*warnings, *remarks))


def sentences(scores: Scores) -> tuple[Note, ...]:
    """Return one sentence per load on the gains, and one on the policy's own energy if it matters."""
    found = []
    for row in scores.gains:
        more = {"more": "keeps more deadlines than", "fewer": "keeps fewer deadlines than"}.get(
            row.result, "is not shown to differ from"
        )
        pays = "" if row.result == "more" else " Learning does not pay here."
        found.append(note(
            "At load {load} the model {more} {rule}, the best rule: {sla:.3f} against {rule_sla:.3f}.{pays}",
            load=literal(number(row.load)), more=literal(more), rule=literal(row.rule), sla=row.sla,
            rule_sla=row.rule_sla,
            pays=literal(pays),
        ))  # fmt: skip
    most = max((row.overhead_pct or 0.0 for row in scores.loads), default=0.0)
    if most > MOST_OVERHEAD_PCT:
        found.append(note("The model's own energy is up to {most:.2f} % of the layers', more than 1.5 %.", most=most))
    return tuple(found)


def whole(value: object) -> int | None:
    """Return a whole number of a card; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
