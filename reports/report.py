"""Several results as one report: findings of each, their metrics side by side, and the checks on them."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import NamedValue, counted, named, note, together, untrusted
from gpuctl.core.results import Analysis, Column, ResultTable, SourceInfo
from gpuctl.reports.conditions import check
from gpuctl.reports.metrics import METRICS, Value, values, written
from gpuctl.reports.standout import findings, rules_applied

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.core.notes import Note
    from gpuctl.reports.conditions import Check, Condition

SECTION = ("report", "Report")
_STRANGE = re.compile(r"[^A-Za-z0-9._]+")
_COLUMNS = {"figure", "metric", "unit", "change", "change_pct", "better", "definition"}


@dataclass(frozen=True)
class Part:
    """One result of a report.

    Attributes:
        label: its name, unique among the parts.
        analysis: the result.
    """

    label: str
    analysis: Analysis


def labelled(analyses: Sequence[Analysis], names: Sequence[str | None] | None = None) -> tuple[Part, ...]:
    """Label results by their clusters; equal labels are numbered, as are those equal to a column's name.

    Args:
        analyses: the results.
        names: name of each instead, if not None.
    """
    called = [name or one.cluster for name, one in zip(names or [None] * len(analyses), analyses, strict=True)]
    counts = Counter(called)
    taken = {name for name in called if counts[name] == 1 and name not in _COLUMNS}
    parts = []
    for name, analysis in zip(called, analyses, strict=True):
        label = name
        if counts[name] > 1 or name in _COLUMNS:
            label = next(text for k in range(1, len(called) + 2) if (text := f"{name} ({k})") not in taken)
            taken.add(label)
        parts.append(Part(label, analysis))
    return tuple(parts)


def file_endings(parts: Sequence[Part]) -> list[str]:
    """Return suffixes of the files of several results: their labels, in characters valid in any file name."""
    if len(parts) == 1:
        return [""]
    plain = [_STRANGE.sub("-", part.label)[:40].strip("-").lower() for part in parts]
    return [
        f"--{name}" if name and plain.count(name) == 1 else f"--{name}-{k}" if name else f"--{k}"
        for k, name in enumerate(plain, 1)
    ]


BY_CHANCE = note("Periods also differ by chance: a difference is not the effect of a change.")
"""Changes against a baseline have no intervals."""


def is_summary(analysis: Analysis) -> bool:
    """Return whether it is the result of `summarize`, rather than a result that a report covers."""
    table = analysis.table("metrics")
    wanted = {"result": pl.String, "metric": pl.String, "value": pl.Float64}
    return table is not None and table.section == SECTION[0] and wanted.items() <= dict(table.frame.schema).items()


def earlier(analyses: Sequence[Analysis]) -> tuple[Part, ...]:
    """Return results as a baseline: a report expands to its results, under their labels in it.

    Args:
        analyses: results, and results of `summarize` on earlier ones.

    Raises:
        UsageError: two of them contain results of the same name.
    """
    parts = list(labelled([one for one in analyses if not is_summary(one)]))
    for one in analyses:
        table = one.table("metrics")
        if table is not None and is_summary(one):
            for label in table.frame["result"].drop_nulls().unique(maintain_order=True):
                mine = replace(table, frame=table.frame.filter(pl.col("result") == label))
                parts.append(Part(label, replace(one, cluster=named("cluster", label), tables=(mine,))))
    twice = next((label for label, count in Counter(part.label for part in parts).items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"several baselines have a result named {twice!r}", hint="leave out all except one of them")
    return tuple(parts)


def summarize(
    parts: Sequence[Part],
    conditions: Sequence[Condition] = (),
    baseline: Sequence[Part] | None = None,
    command: str = "",
) -> Analysis:
    """Return a report's statements on its results, as result tables: ``checks``, ``standout`` and ``metrics``.

    Args:
        parts: the results.
        conditions: conditions that must not hold.
        baseline: earlier results; each part is compared with the one of its label, or with the only one.
        command: the command line, as given by the user.

    Raises:
        UsageError: a condition refers to a missing baseline.
    """
    measured = [(part, values(part.analysis)) for part in parts]
    # a result without metrics, such as predicted run times, is not compared
    before = {part.label: _before(part, baseline) if found or baseline is None else {} for part, found in measured}
    checks = [one for each in conditions for one in _check_all(each, measured, before)]
    tables = [_standout(parts), _metrics(measured, before)]
    if conditions:
        tables.insert(0, _checks(checks))
    return Analysis(
        cluster=_listed([named("cluster", part.label) for part in parts]),
        tables=tuple(tables),
        sections=(SECTION,),
        sources=_sources(parts),
        settings={
            note("{part}: {k}", part=NamedValue("cluster", part.label), k=untrusted(k)): v
            for part in parts
            for k, v in part.analysis.settings.items()
        },
        command=command,
        warnings=tuple(dict.fromkeys(w for part in parts for w in part.analysis.warnings)),
    )


def _listed(names: Sequence[Note]) -> Note:
    return together(" and ", [together(", ", names[:-1]), names[-1]] if len(names) > 1 else names)


def compared(parts: Sequence[Part], summary: Analysis) -> ResultTable | None:
    """Return the metrics of a summary with a column per result, and with the change if there are two to compare.

    For two results, the change is from the first to the second; for one with a baseline, from the baseline to it.
    """
    table = summary.table("metrics")
    if table is None or len(parts) < 2:
        return table
    about = table.frame.unique("metric", keep="first", maintain_order=True).select(
        "metric", "unit", "better", "definition"
    )
    frame = about.select("metric", "unit")
    for part in parts:
        mine = table.frame.filter(pl.col("result") == part.label).select("metric", pl.col("value").alias(part.label))
        frame = frame.join(mine, on="metric", how="left", maintain_order="left")
    columns = [
        Column("metric", "-", "the metric's name, with labels if the table has several values"),
        Column("unit", "-", "of the values"),
        *(Column(part.label, "-", f"as measured in {part.label}; empty: not measured") for part in parts),
    ]
    if len(parts) == 2:
        first, second = (pl.col(part.label) for part in parts)
        change, direction = second - first, f"from {parts[0].label} to {parts[1].label}"
        relative = pl.when((first != 0) & (pl.col("unit") != "%")).then(100 * change / first.abs())
        both = frame.select(change=change, change_pct=relative)
        if both["change"].null_count() < both.height:
            frame = frame.hstack(both)
            columns += _changes(direction)
    frame = frame.join(about.select("metric", "better", "definition"), on="metric", how="left", maintain_order="left")
    columns += [c for c in table.columns if c.name in {"better", "definition"}]
    return replace(
        table,
        title="Side by side",
        question="How do the results differ?",
        population=note(
            "{height:,} metric{height||s} of {parts:,} result{parts||s}; each is one value of one result table.",
            height=frame.height,
            parts=len(parts),
        ),
        columns=tuple(columns),
        frame=frame,
    )


def _check_all(
    condition: Condition,
    measured: Sequence[tuple[Part, tuple[Value, ...]]],
    before: Mapping[str, Mapping[str, float] | None],
) -> list[Check]:
    """Check a condition on all results that it applies to; it fails if none of them has the metric."""
    wanted = condition.labels.get("result", "*")
    parts = [(part, found) for part, found in measured if wanted in {"*", part.label}]
    if not parts:
        there = ", ".join(part.label for part, _ in measured)
        raise UsageError(f"--fail-if {condition.text!r}: there is no result {wanted!r}", hint=f"known: {there}")
    found = [check(condition, part.label, values_, before[part.label]) for part, values_ in parts]
    having = [one for checks in found if any(each.value is not None for each in checks) for one in checks]
    return having or found[0][:1]


def against_baseline(summary: Analysis) -> ResultTable | None:
    """Return the metrics of a summary that the baseline also has; None if there are none."""
    table = summary.table("metrics")
    frame = None if table is None else table.frame.filter(pl.col("baseline").is_not_null())
    if table is None or frame is None or frame.height == 0:
        return None
    results = frame["result"].n_unique()
    return replace(
        table,
        name="baseline",
        title="Changes from the baseline",
        question="What has changed since the baseline?",
        population=note(
            "{height} of {results} that are also in the baseline.",
            height=counted(frame.height, "metric"),
            results=counted(results, "result"),
        ),
        notes=(BY_CHANCE,),
        columns=tuple(c for c in table.columns if c.name != "table" and (c.name != "result" or results > 1)),
        frame=frame,
    )


def verdict(summary: Analysis) -> str:
    """Return how many checks failed; empty if there are none."""
    table = summary.table("checks")
    if table is None:
        return ""
    count, bad = table.frame.height, int(table.frame["failed"].sum())
    if bad:
        return "The check failed." if count == 1 else f"{bad} of {count} checks failed."
    return "The check passed." if count == 1 else f"All {count} checks passed."


def failed(summary: Analysis) -> list[str]:
    """Return the failed conditions, one sentence each, in order."""
    table = summary.table("checks")
    rows = table.frame.filter(pl.col("failed")).iter_rows(named=True) if table is not None else ()
    return [sentence(row) for row in rows]


def sentence(row: Mapping[str, Any]) -> str:
    """Return a row of the table ``checks`` in words."""
    measured = "was not measured" if row["value"] is None else f"is {row['value']:.6g} {row['unit']}".removesuffix(" -")
    against = " and has no baseline" if row["limit"] is None and row["value"] is not None else ""
    return f"{row['result']}: {row['metric']} {measured}{against}; checked: {row['condition']}"


def all_metrics(command: str = "") -> Analysis:
    """Return all metrics as a result table, one row each."""
    rows = [
        (written(m.name, [(label, "...") for label in m.labels]), m.unit, m.better, m.table, m.text) for m in METRICS
    ]
    names = ("metric", "unit", "better", "table", "definition")
    table = ResultTable(
        name="known_metrics",
        section=SECTION[0],
        title="Metrics for conditions",
        question="Which metrics can be checked?",
        population=note("{rows:,} metric{rows||s}; a result has the metrics of its tables.", rows=len(rows)),
        notes=(
            note(
                "Labels are written in braces; {{label=*}} matches each value. Without braces, a condition means "
                "the value without labels, or all values if each has labels. {{result=NAME}} selects one of several "
                "results."
            ),
        ),
        columns=(
            Column("metric", "-", "the metric's name, with its labels"),
            Column("unit", "-", "of its values"),
            Column("better", "-", "whether low or high values are better; empty: neither"),
            Column("table", "-", "the result table of the value"),
            Column("definition", "-", "what it is"),
        ),
        frame=pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row"),
    )
    return Analysis(note("metrics"), (table,), (SECTION,), (), {}, command)


def _before(part: Part, baseline: Sequence[Part] | None) -> dict[str, float] | None:
    if baseline is None:
        return None
    same = [old for old in baseline if old.label == part.label]
    if not same and len(baseline) == 1:
        same = list(baseline)
    if not same:
        raise UsageError(
            f"the baseline has no result named {part.label!r}",
            hint=f"it has: {', '.join(old.label for old in baseline) or 'none'}; a result saved in a store has the "
            "name given with --keep, whatever its cluster",
        )
    old = same[0].analysis
    table = old.table("metrics")
    if table is not None and is_summary(old):
        rows = table.frame.select("metric", "value").iter_rows()
        return {key: value for key, value in rows if value is not None and math.isfinite(value)}
    return {value.key: value.value for value in values(old) if value.value is not None}


def _sources(parts: Sequence[Part]) -> tuple[SourceInfo, ...]:
    return tuple(dict.fromkeys(source for part in parts for source in part.analysis.sources))


def _checks(checks: Sequence[Check]) -> ResultTable:
    unit = {metric.name: metric.unit for metric in METRICS}
    frame = pl.DataFrame(
        {
            "failed": [one.failed for one in checks],
            "result": [one.result for one in checks],
            "metric": [one.key for one in checks],
            "value": [one.value for one in checks],
            "limit": [one.limit for one in checks],
            "unit": [unit[one.condition.name] for one in checks],
            "condition": [one.condition.text for one in checks],
        },
        schema={
            "failed": pl.Boolean, "result": pl.String, "metric": pl.String, "value": pl.Float64, "limit": pl.Float64,
            "unit": pl.String, "condition": pl.String,
        },
    )  # fmt: skip
    bad, conditions = int(frame["failed"].sum()), {one.condition.text for one in checks}
    return ResultTable(
        name="checks",
        section=SECTION[0],
        title="Checks",
        question="Does any metric exceed its threshold?",
        population=note(
            "{height} for {conditions}, {bad} failed.",
            height=counted(frame.height, "value"),
            conditions=counted(len(conditions), "condition"),
            bad=bad,
        ),
        notes=(
            note(
                "Each condition is checked against every result with its metric. The check fails if the condition "
                "is true, if the baseline lacks the value, or if no result has the metric."
            ),
        ),
        columns=(
            Column("failed", "-", "outcome of the check; failed if the condition is true or could not be checked"),
            Column("result", "-", "the result checked"),
            Column("metric", "-", "the metric, with its labels"),
            Column("value", "-", "as measured; empty: not measured"),
            Column("limit", "-", "the threshold; empty: the baseline has no value"),
            Column("unit", "-", "of value and limit"),
            Column("condition", "-", "the condition as given"),
        ),
        frame=frame,
    )


def _standout(parts: Sequence[Part]) -> ResultTable:
    found = [(part.label, one) for part in parts for one in findings(part.analysis)]
    texts = {
        "result": [label for label, _ in found],
        "finding": [one.text for _, one in found],
        "table": [one.table for _, one in found],
        "action": [one.action for _, one in found],
        "rule": [one.rule for _, one in found],
    }
    applied = sum(rules_applied(part.analysis) for part in parts)
    return ResultTable(
        name="standout",
        section=SECTION[0],
        title="What stands out",
        question="What deserves attention first?",
        population=note(
            "{found:,} finding{found||s} in {parts:,} result{parts||s}, selected by {rules:,} rule{rules||s} with "
            "fixed thresholds.",
            found=len(found),
            rules=applied,
            parts=len(parts),
        ),
        notes=(note("A reading aid: it covers only what the rules look for. The tables are the result."),),
        columns=(
            Column("result", "-", "the result with the finding"),
            Column("finding", "-", "the finding, with its numbers"),
            Column("table", "-", "the result table of the value"),
            Column("action", "-", "what to do, and about whom: the queue, user or node with the largest part"),
            Column("rule", "-", "the threshold exceeded"),
        ),
        frame=pl.DataFrame(texts, schema=dict.fromkeys(texts, pl.String)),
    )


def _metrics(
    measured: Sequence[tuple[Part, tuple[Value, ...]]], before: Mapping[str, Mapping[str, float] | None]
) -> ResultTable:
    rows = [
        (part.label, value, (before[part.label] or {}).get(value.key)) for part, found in measured for value in found
    ]
    frame = pl.DataFrame(
        {
            "result": [label for label, _, _ in rows],
            "metric": [value.key for _, value, _ in rows],
            "value": [value.value for _, value, _ in rows],
            "unit": [value.metric.unit for _, value, _ in rows],
            "baseline": [old for _, _, old in rows],
            "change": [None if value.value is None or old is None else value.value - old for _, value, old in rows],
            "change_pct": [_change(value, old) for _, value, old in rows],
            "better": [value.metric.better or None for _, value, _ in rows],
            "table": [value.metric.table for _, value, _ in rows],
            "definition": [value.metric.text for _, value, _ in rows],
        },
        schema={
            "result": pl.String, "metric": pl.String, "value": pl.Float64, "unit": pl.String, "baseline": pl.Float64,
            "change": pl.Float64, "change_pct": pl.Float64, "better": pl.String, "table": pl.String,
            "definition": pl.String,
        },
    )  # fmt: skip
    return ResultTable(
        name="metrics",
        section=SECTION[0],
        title="Metrics",
        question="Which values do checks and comparisons use?",
        population=note(
            "{height:,} metric{height||s} of {measured:,} result{measured||s}; each is one value of one result table.",
            height=frame.height,
            measured=len(measured),
        ),
        notes=(),
        columns=(
            Column("result", "-", "the result with the value"),
            Column("metric", "-", "the metric's name, with labels if the table has several values"),
            Column("value", "-", "as measured; empty: the table has no value"),
            Column("unit", "-", "of value and baseline"),
            Column("baseline", "-", "the value in the baseline"),
            *_changes("change from the baseline to the value"),
            Column("better", "-", "whether low or high values are better; empty: neither"),
            Column("table", "-", "the result table of the value"),
            Column("definition", "-", "what it is"),
        ),
        frame=frame,
        first_columns=7,
    )


def _changes(definition: str) -> tuple[Column, Column]:
    return (
        Column("change", "-", f"{definition}, in the metric's unit"),
        Column("change_pct", "%", f"{definition}, relative to the baseline; empty for metrics in per cent"),
    )


def _change(value: Value, old: float | None) -> float | None:
    if value.value is None or not old or value.metric.unit == "%":
        return None
    return 100 * (value.value - old) / abs(old)
