"""Runs the lessons, one module each, into one result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

import polars as pl

from gpuctl.analyze.run import analyze
from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.results import Column, ResultTable, ends
from gpuctl.lessons import converged, early, locality, sharing
from gpuctl.lessons.names import LESSONS as TITLES
from gpuctl.predictors.results import analysis_of
from gpuctl.queries.catalogue import built_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import Analysis, SourceInfo
    from gpuctl.lessons.finding import Finding
    from gpuctl.lessons.lesson_input import Case


class Lesson(Protocol):
    """A module that is a lesson; `gpuctl.lessons.names` has its name, `LESSONS` the module.

    Attributes:
        KEY: its name for ``--lesson``, and the section of its tables.
        TABLES: the tables that it may give.
    """

    KEY: str
    TABLES: tuple[str, ...]

    def learn(self, case: Case) -> Finding:
        """Derive the lesson's finding for a trace."""


LESSONS = cast("tuple[Lesson, ...]", (locality, sharing, early, converged))
"""In the order in which they are shown."""
SECTION = "lessons"
OF_REFERENCE = tuple(query.name for query in built_in().values() if query.reference == "atc19")
TABLES = ("lessons", "lesson_inputs", *(name for lesson in LESSONS for name in lesson.TABLES))

_ANSWERS = (
    Column("lesson", "-", "Which lesson, see the sections."),
    Column("rule", "-", "What would be done."),
    Column("baseline", "-", "What it is compared with, job by job."),
    Column("jobs", "jobs", "Jobs compared: they end under both."),
    Column("gpu_hours_saved", "GPU-h", "GPU-hours that the jobs hold less, over the whole trace."),
    *ends("gpu_hours_saved_{}", "GPU-h", ", over resampled weeks and measured inputs"),
    Column("gpu_hours_saved_pct", "%", "The same as a share of the baseline's GPU-hours."),
    Column("gpu_hours", "-", "saves, costs: the whole interval says so; no saving shown; not known."),
    Column("wait_saved_h", "h", "Hours that a job waits less, mean of the jobs compared."),
    *ends("wait_saved_{}_h", "h"),
    Column("waiting", "-", "As gpu_hours, for waiting."),
    Column("because", "-", "What it rests on."),
)
_INPUTS = (
    Column("lesson", "-", "Which lesson uses it."),
    Column("what", "-", "What it is."),
    Column("value", "-", "Its value, in the given unit."),
    *ends("{}", "-", "; empty: it has none"),
    Column("unit", "-", "Unit of the value and its interval; -: a ratio."),
    Column("origin", "-", "measured in this trace, recorded as such, inferred by a rule, assumed, extrapolated, or "
           "unknown."),
    Column("basis", "-", "What it was measured on, or the rule."),
)  # fmt: skip


def result(
    case: Case, wanted: Sequence[str], sources: Sequence[SourceInfo], command: str, reference: str | None = None
) -> Analysis:
    """Run the lessons.

    Args:
        case: the trace.
        wanted: their keys; empty: all of them.
        sources: the files that the trace came from.
        command: the command line, as the user gave it.
        reference: ``atc19``: compare with the study's figures; None: do not.
    """
    chosen = [lesson for lesson in LESSONS if not wanted or lesson.KEY in wanted]
    found = []
    for lesson in chosen:
        case.notify(TITLES[lesson.KEY])
        found.append(lesson.learn(case))
    tables = (_answers(case, found), _inputs(case, found), *(t for one in found for t in one.tables))
    if reference is not None:
        tables += analyze(case.store, replace(case.options, tables=OF_REFERENCE)).tables
    made = analysis_of(
        note("{name}", name=NamedValue("cluster", case.workload.name)),
        tables,
        {
            "replays": note("{n:,} job{n||s}, under the policy philly, against its defaults", n=case.workload.size),
            "preemption overhead": literal(case.overhead),
            "intervals": note(
                "90 %, jobs paired; of GPU-hours resampled by {block}; of waiting for a long run of the same workload, "
                "none where the trace is too short to tell",
                block=literal(_BLOCKS[case.blocks()[1]]),
            ),
        },
        command,
        tuple(sources),
        warnings=tuple(dict.fromkeys(text for one in found for text in one.warnings)),
    )  # fmt: skip
    sections = (
        (SECTION, "What the cluster could save"), *((lesson.KEY, TITLES[lesson.KEY]) for lesson in chosen),
        ("reference", "Beside published values"),
    )  # fmt: skip
    there = {table.section for table in tables}
    return replace(made, sections=tuple(each for each in sections if each[0] in there))


_BLOCKS = {
    "week": "weeks of submission",
    "day": "days of submission, for there are fewer than five weeks",
    "jobs": "blocks of equally many jobs, for there are fewer than five days",
}


def _answers(case: Case, found: Sequence[Finding]) -> ResultTable:
    rows, sentences = [], []
    for answer in (answer for one in found for answer in one.answers):
        gpu, wait = answer.gpu_hours, answer.wait_h
        baseline = answer.baseline or BASELINE
        sentences += [answer.rule, baseline, answer.because]
        rows.append(
            (answer.lesson, answer.rule, baseline, answer.jobs, gpu.value, gpu.low, gpu.high, answer.share_pct,
             gpu.shown, wait.value, wait.low, wait.high, wait.shown, answer.because)
        )  # fmt: skip
    texts = {"lesson", "rule", "baseline", "gpu_hours", "waiting", "because"}
    return ResultTable(
        name="lessons",
        section=SECTION,
        title="What the lessons would have saved",
        question="What would these rules have saved on this trace?",
        population=note("{n:,} job{n||s} of {name} that can be replayed.", n=case.workload.size,
                        name=NamedValue("cluster", case.workload.name)),
        notes=(
            note("A saving is shown only if its whole 90 % interval is above 0. The interval covers the drawn weeks "
                 "and measured inputs, but not the error of the replay model."),
        ),
        columns=_ANSWERS,
        frame=pl.DataFrame(rows, schema=_kinds(_ANSWERS, texts, {"jobs"}), orient="row"),
        first_columns=9,
        sentences=tuple(dict.fromkeys(sentences)),
    )  # fmt: skip


BASELINE = note("philly, its defaults")


def _inputs(case: Case, found: Sequence[Finding]) -> ResultTable:
    chosen = [one for each in found for one in each.inputs]
    rows = [
        (i.lesson, i.what, i.estimate.value, i.estimate.low, i.estimate.high, i.unit, i.origin, i.basis) for i in chosen
    ]
    texts = {"lesson", "what", "unit", "origin", "basis"}
    return ResultTable(
        name="lesson_inputs",
        section=SECTION,
        title="What the answers rest on",
        question="What was measured, and what was assumed?",
        population=note("Inputs of the requested lessons, of {name}.", name=NamedValue("cluster", case.workload.name)),
        notes=(),
        columns=_INPUTS,
        frame=pl.DataFrame(rows, schema=_kinds(_INPUTS, texts, set()), orient="row"),
        sentences=tuple(dict.fromkeys(text for i in chosen for text in (i.what, i.basis))),
    )


def _kinds(columns: Sequence[Column], texts: set[str], counts: set[str]) -> dict[str, type[pl.DataType]]:
    return {c.name: pl.String if c.name in texts else pl.Int64 if c.name in counts else pl.Float64 for c in columns}
