"""Advice on a successor, and the state of a chain, as results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.notes import NamedValue, Note, literal, note
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.research.chain import journal
from gpuctl.research.chain.policies import QUANTILES

if TYPE_CHECKING:
    from gpuctl.research.chain.advice import Advice
    from gpuctl.research.chain.journal import JournalState

_WAITS = tuple(f"wait_p{100 * q:.0f}_h" for q in QUANTILES)
ADVICE = (
    Column("job", "-", "P: the job whose successor S is to be submitted."),
    Column("answer", "-", "submit now; wait; or depend: submit now with --dependency=afterany:P."),
    Column("not_before_s", "s", "From now until S is to be submitted, if the queue stays as it is."),
    Column("left_h", "h", "From now to P's end by its limit."),
    Column("lead_h", "h", "Time before P's end at which to submit S: a quantile of its wait."),
    Column("interruption_h", "h", "Expected interruption if S is submitted now."),
    Column("overlap_h", "h", "Expected overlap if S is submitted now."),
    Column("gap_low_h", "h", "Lower end of the 80 % interval of S's start - P's end, if S is submitted now."),
    Column("gap_high_h", "h", "Upper end of that interval."),
    *(Column(name, "h", "Quantile of S's wait if S is submitted now.") for name in _WAITS),
    Column("planned_wait_h", "h", "Wait of S in a backfill plan."),
    Column("accrue_always", "-", "Whether PriorityFlags has ACCRUE_ALWAYS: yes, no, or unknown."),
)
STATUS = (
    Column("number", "-", "Number of the job in the chain, from 1."),
    Column("job", "-", "ID of the job; empty: not known to be submitted."),
    Column("submitted_s", "s", "Submission, since 1970."),
    Column("state", "-", "How the job ended; submitted; or unsure: the journal ends before Slurm's answer."),
    Column("why", "-", "Reason for its submission time."),
)


def advice(found: Advice, accrues: bool | None, command: str) -> Analysis:
    """Advice on one successor."""
    answer = "depend" if accrues else "submit now" if found.now else "wait"
    row = {
        "job": found.job,
        "answer": answer,
        "not_before_s": 0.0 if answer != "wait" else 3600 * (found.left_h - found.lead_h),
        **{name: getattr(found, name) for name in (
            "left_h", "lead_h", "interruption_h", "overlap_h", "gap_low_h", "gap_high_h",
        )},
        **dict(zip(_WAITS, found.quantiles_h, strict=True)),
        "planned_wait_h": found.planned_h,
        "accrue_always": {True: "yes", False: "no", None: "unknown"}[accrues],
    }  # fmt: skip
    warnings = [
        note(
            "{n:,} job{n||s} of the partition {n|was|were} left out: {n|it waits|they wait} for {reason}",
            n=n,
            reason=NamedValue("value", reason),
        )
        for reason, n in found.left_out.items()
    ]
    if accrues is not True:
        warnings.append(
            literal("With PriorityFlags=ACCRUE_ALWAYS, S could depend on P and age meanwhile: in simulations neither "
                 "interruption nor overlap (docs/research/chain.md)")
        )  # fmt: skip
    return _result(
        ResultTable(
            name="advice", section="chain", title="When to submit the successor", population=note("one job"), notes=(),
            question="Is it time to submit the successor?", columns=ADVICE,
            frame=pl.DataFrame([row]).select(column.name for column in ADVICE), first_columns=9,
        ),
        note("{name}", name=NamedValue("job", found.job)), command, tuple(warnings),
    )  # fmt: skip


def status(state: JournalState, command: str) -> Analysis:
    """The jobs of a chain according to its journal."""
    why = {e["number"]: str(e.get("why", "")) for e in state.events if e["event"] == journal.SUBMITTING}
    at = {e["number"]: float(e["at_s"]) for e in state.events if e["event"] == journal.SUBMITTED}
    rows = [
        {"number": k, "job": state.jobs.get(k), "submitted_s": at.get(k),
         "state": state.ended.get(k, "submitted" if k in state.jobs else "unsure"), "why": why.get(k)}
        for k in sorted(why)
    ]  # fmt: skip
    schema = {
        "number": pl.Int64, "job": pl.String, "submitted_s": pl.Float64, "state": pl.String, "why": pl.String,
    }  # fmt: skip
    last = state.events[-1]
    end = {journal.DONE: "done", journal.STOPPED: "stopped"}.get(last["event"], "under way")
    return _result(
        ResultTable(
            name="chain_jobs", section="chain", title="Jobs of the chain", notes=(), columns=STATUS,
            population=note("{n:,} job{n||s} in the journal; the chain is {end}", n=len(rows), end=literal(end)),
            question="How far along is the chain?", frame=pl.DataFrame(rows, schema).select(c.name for c in STATUS),
        ),
        note("{name}", name=NamedValue("name", state.name)), command, (),
    )  # fmt: skip


def _result(table: ResultTable, what: Note, command: str, warnings: tuple[Note, ...]) -> Analysis:
    return Analysis(
        cluster=what, tables=(table,), sections=(("chain", "Chains of jobs"),), sources=(), settings={},
        command=command, warnings=warnings,
    )  # fmt: skip
