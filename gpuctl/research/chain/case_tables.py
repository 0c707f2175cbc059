"""Outcomes of single pairs, as a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.research.chain.baselines import PROBES
from gpuctl.research.chain.cases import STATE_COLUMNS

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.results import SourceInfo
    from gpuctl.research.chain.log import Log

SECTION = "chain_cases"
CASES = (
    Column("case", "-", "The case's name in the file."),
    Column("p_start_s", "s", "Start of P; seconds count from the case's start."),
    Column("p_end_s", "s", "End of P, which runs to its limit."),
    Column("s_start_s", "s", "Start of S."),
    Column("interruption_s", "s", "Start of S - end of P: the interruption; negative: the overlap."),
    Column("p_backfilled", "-", "1: a pass of backfill started P from behind the head of the queue."),
    Column("s_backfilled", "-", "1: a pass of backfill started S from behind the head of the queue."),
)
STARTS = (
    Column("start", "-", "The start, on the log's own clock."),
    Column("cluster_nodes", "nodes", "Nodes of the cluster."),
    Column("pair_nodes", "nodes", "Nodes of P and of S."),
    Column("pair_limit_min", "min", "Limit of P and of S."),
    Column("p_submit_s", "s", "Submission of P, from the start."),
    Column("first_probe_s", "s", "The first second at which S may be submitted: a minute after P."),
    Column("p_end_s", "s", "End of P without S; the reactive baseline then submits S."),
    Column("avg_wait_min", "min", "Mean wait of the last 100 jobs that had started when, after P's start, the next job "
           "of the trace came; P's own counts. The baseline avg submits S this long before P's end."),
    Column("queued", "jobs", "Jobs in the queue then."),
    *(Column(f"probe{k}_s", "s", f"Submission {k + 1} of S of the {PROBES} from which the authors' models learn.")
      for k in range(PROBES)),
    Column("reactive_interruption_s", "s", "Interruption if S is submitted at P's end."),
    Column("avg_interruption_s", "s", "Interruption under the baseline avg."),
)  # fmt: skip
_OF = {"queued": "waiting jobs", "running": "running jobs", "p": "P", "s": "S"}
_WHAT = {
    "jobs": ("jobs", "number of jobs"), "nodes": ("nodes", "nodes in all"), "limit": ("min", "limit"),
    "wait": ("s", "time from submission to start, or until now"), "elapsed": ("s", "time since the start"),
}  # fmt: skip


def _state_column(name: str) -> Column:
    of, what, *rest = name.split("_")
    unit, text = _WHAT[what]
    percentile = next((f"percentile {word[1:]} of " for word in rest if word[0] == "p"), "")
    return Column(name, unit, f"{_OF[of]}: {percentile}{text}.")


STATES = (
    Column("case", "-", "The case's name in the file."),
    Column("what", "-", "decision: the state when S is submitted; stored: snapshots up to S's start, with S among the "
           "waiting jobs, which the authors' models learn from. last: its last snapshot; sum: the sum of all 144."),
    *(_state_column(name) for name in STATE_COLUMNS),
)  # fmt: skip


def result(
    frames: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame],
    log: Log,
    command: str,
    sources: tuple[SourceInfo, ...],
) -> Analysis:
    """Assemble the tables of `gpuctl.research.chain.cases.run` as a result."""
    outcomes, starts, states = frames
    population = note("{n:,} case{n||s}, {starts:,} start{starts||s}.", n=outcomes.height, starts=starts.height)
    tables = (
        ResultTable(
            name="cases", section=SECTION, title="Pairs of jobs", columns=CASES, frame=outcomes, notes=(),
            question="When does a successor submitted at that second start?", population=population,
        ),
        ResultTable(
            name="starts", section=SECTION, title="Baselines", columns=STARTS, frame=starts, notes=(), first_columns=9,
            question="What are the inputs and outcomes of the baselines?", population=population,
        ),
        ResultTable(
            name="states", section=SECTION, title="States", columns=STATES, frame=states, notes=(), detail=True,
            question="What is the input of a policy when it submits the successor?", population=population,
        ),
    )  # fmt: skip
    return Analysis(
        cluster=note("{name}", name=NamedValue("cluster", log.name)),
        tables=tables,
        sections=((SECTION, "Chains of jobs"),),
        sources=sources,
        settings={"rules": literal("those of the simulator by Mirage's authors (--compat mirage)")},
        command=command,
        warnings=log.notes,
    )
