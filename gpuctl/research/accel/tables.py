"""Policies for accelerators side by side, as a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.notes import Named, note, ours
from gpuctl.core.numbers import number
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.research.accel.metrics import BYTE_PJ, MAC_PJ, by_group, figures
from gpuctl.research.accel.state import FIXED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.core.results import SourceInfo
    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.requests import Requests
    from gpuctl.research.accel.simulate import Outcome, Rules

SUMMARY = (
    Column("policy", "-", "Order and place of requests, or a learned policy."),
    Column("requests", "requests", "All requests of the file."),
    Column("met", "requests", "Those that were finished by their deadline."),
    Column("sla", "-", "met / requests: what is not finished, or was dropped, is missed."),
    Column("jain", "-", "Jain's index of the tenants' sla, 1 / tenants to 1 (all alike); empty: nothing was met."),
    Column("worst_tenant", "-", "sla of the tenant that has the least."),
    Column("mean_latency_us", "us", "Mean of end - arrival over finished requests."),
    Column("p50_us", "us", "Median of it: of n sorted values the one at min(n - 1, floor(0.5 n))."),
    Column("p99_us", "us", "99th percentile of it, at min(n - 1, floor(0.99 n))."),
    Column("energy_mj", "mJ", "Dynamic energy of all layers that were started, by the table of costs."),
    Column("static_mj", "mJ", "Static power of all sub-accelerators x makespan; empty: of some the power is unknown."),
    Column("makespan_us", "us", "End of the last layer, from time 0."),
    Column("dropped", "requests", "Requests that were given up as too late (--drop)."),
    Column("decisions", "decisions", "Decisions that were made."),
    Column("candidates", "requests", "Requests that could be chosen, summed over decisions."),
    Column("overhead_uj", "uJ", f"Energy of a net's own answers: {MAC_PJ} pJ a multiplication for each candidate, "
           f"{BYTE_PJ:g} pJ for each weight at each decision (assumed); 0 for rules."),
    Column("overhead_pct", "%", "overhead_uj over energy_mj."),
)  # fmt: skip
REQUESTS = (
    Column("policy", "-", "As in the table accel."),
    Column("request", "-", "Its name."),
    Column("start_us", "us", "Start of its first layer; empty: none started."),
    Column("end_us", "us", "End of its last layer; empty: not finished, or dropped."),
    Column("met", "-", "1: finished by its deadline; 0: not."),
)
GROUPS = (
    Column("policy", "-", "As in the table accel."),
    Column("by", "-", "model, qos (quality of service) or tenant."),
    Column("name", "-", "Which one; empty: the file says none."),
    Column("requests", "requests", "Requests of it."),
    Column("met", "requests", "Those that were finished by their deadline."),
    Column("sla", "-", "met / requests."),
    Column("mean_latency_us", "us", "Mean of end - arrival over finished ones."),
    Column("p99_us", "us", "99th percentile of it."),
)
LAYERS = (
    Column("policy", "-", "As in the table accel."),
    Column("request", "-", "Its name."),
    Column("layer", "-", "Number of the layer in its model, from 0."),
    Column("sub_accelerator", "-", "Number of the sub-accelerator that it ran on, from 0."),
    Column("start_us", "us", "Its start."),
    Column("end_us", "us", "Its end."),
)
HEADINGS = {
    "accel": ("Policies for accelerators", "Which policy keeps most deadlines, how fairly, and with how much energy?"),
    "accel_groups": ("Deadlines by model, quality of service and tenant", "Whose deadlines are kept?"),
    "accel_requests": ("Requests", "What came of each request?"),
    "accel_time": ("Time of policies", "What does a decision take?"),
    "accel_layers": ("Layers", "What ran where, and when?"),
    "accel_models": ("Costs of models", "What does each model take on each kind of sub-accelerator?"),
    "accel_stream": ("Requests", "What arrives when?"),
}
"""Of each table: its title, and the question that it answers."""
TIMES = (
    Column("policy", "-", "As in the table accel."),
    Column("cpu_s", "s", "CPU time of its simulation, measured, another one in each run; of genetic and exhaustive the "
           "time of their search."),
    Column("decision_us", "us", "cpu_s over its decisions, the simulator's share included; empty: it decides once."),
)  # fmt: skip
TABLES = ("accel", "accel_groups", "accel_time", "accel_requests", "accel_layers")
FILES = {"accel": "summary", "accel_requests": "requests", "accel_groups": "groups"}
"""Names of tables in the files of ``--csv``."""


def result(
    outcomes: Sequence[Outcome], requests: Requests, machine: Machine, rules: Rules, *, log: bool, command: str,
    sources: tuple[SourceInfo, ...], warnings: tuple[Note, ...] = (),
) -> Analysis:  # fmt: skip
    """Put the outcomes of policies together as a result.

    Args:
        outcomes: one a policy.
        requests: that were simulated.
        machine: on which.
        rules: that held.
        log: with the table of layers.
        command: the command line.
        sources: where requests and costs came from.
        warnings: what a reader must know.
    """
    population = note("{n:,} request{n||s} on {system}.", n=len(requests), system=ours(machine.system.text))
    tables = [
        _table("accel", population, SUMMARY, [figures(each, requests, machine) for each in outcomes], first_columns=9),
        _table("accel_groups", population, GROUPS,
               [row for each in outcomes for row in by_group(each, requests, machine)]),
        _table("accel_requests", population, REQUESTS,
               pl.concat([_requests(each, requests) for each in outcomes]), detail=True),
    ]  # fmt: skip
    times = [
        {"policy": each.policy.name, "cpu_s": each.cpu_s,
         "decision_us": 1e6 * each.cpu_s / each.decisions if each.decisions and each.policy.order != FIXED else None}
        for each in outcomes
    ]  # fmt: skip
    tables.append(_table("accel_time", population, TIMES, times))
    if log:
        frame = pl.concat([_layers(each, requests) for each in outcomes])
        tables.append(_table("accel_layers", population, LAYERS, frame, detail=True))
    return Analysis(
        cluster=note("{name}", name=Named("cluster", machine.system.text)), tables=tuple(tables),
        sections=(("accel", "Accelerators"),), sources=sources,
        settings={
            "system": ours(f"{', '.join(machine.system.kinds)}; {number(machine.system.bandwidth)} bytes/us"),
            "decisions": ours(f"each {number(rules.period_us)} us" if rules.period_us else "whenever one can start"),
            "late requests": ours("dropped" if rules.drop else "kept"),
        },
        command=command, warnings=warnings,
    )  # fmt: skip


def _table(
    name: str, population: Note, columns: tuple[Column, ...], rows: list[dict[str, Any]] | pl.DataFrame, **more: Any
) -> ResultTable:
    title, question = HEADINGS[name]
    frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, infer_schema_length=None)
    return ResultTable(
        name=name, section="accel", title=title, question=question, population=population, notes=(), columns=columns,
        frame=frame.select(column.name for column in columns), **more,
    )  # fmt: skip


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


MODELS = (
    Column("model", "-", "Its name."),
    Column("kind", "-", "Kind of sub-accelerator."),
    Column("layers", "layers", "Layers, one after another."),
    Column("giga_macs", "-", "Multiplications in 10^9; empty: the table does not say."),
    Column("weight_mb", "MB", "Bytes of weights; empty: the table does not say."),
    Column("compute_us", "us", "Sum of its layers' computing times on this kind."),
    Column("dram_mb", "MB", "Sum of their traffic with the memory."),
    Column("energy_mj", "mJ", "Sum of their dynamic energy."),
)


def models(rows: list[dict[str, Any]], path: str, command: str, warnings: tuple[Note, ...] = ()) -> Analysis:
    """The rows of `gpuctl.research.accel.check.overview` as a result."""
    table = _table("accel_models", note("All models of {path}.", path=Named("path", path)), MODELS, rows)
    return Analysis(
        cluster=ours("costs"), tables=(table,), sections=(("accel", "Accelerators"),), sources=(), settings={},
        command=command, warnings=warnings,
    )  # fmt: skip


STREAM = (
    Column("request", "-", "Its name."),
    Column("tenant", "-", "Whose it is."),
    Column("model", "-", "What it runs."),
    Column("qos", "-", "Quality of service: high, medium, low."),
    Column("arrival_us", "us", "Its arrival."),
    Column("deadline_us", "us", "Its deadline: arrival + 2, 4 or 8 times the model's least time."),
)


def stream(requests: Requests, machine: Machine, command: str) -> Analysis:
    """Generated requests as a result."""
    frame = pl.DataFrame({
        "request": requests.names, "tenant": requests.tenants,
        "model": [machine.models[k] for k in requests.model.tolist()], "qos": requests.qos,
        "arrival_us": requests.arrival, "deadline_us": requests.deadline,
    })  # fmt: skip
    table = _table("accel_stream", note("{n:,} request{n||s}.", n=len(requests)), STREAM, frame)
    return Analysis(
        cluster=note("{name}", name=Named("cluster", machine.system.text)), tables=(table,),
        sections=(("accel", "Accelerators"),), sources=(), settings={}, command=command,
    )  # fmt: skip
