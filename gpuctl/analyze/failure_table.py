"""Makes ``base_failures``: every unsuccessful attempt, and its reason, by its logs and its scheduler's statements."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.analyze import shared_sql
from gpuctl.joblogs.classify import SCHEDULER, classify
from gpuctl.joblogs.evidence import Facts, Match, Verdict
from gpuctl.joblogs.table import NO_SIGNATURE
from gpuctl.joblogs.templates import cluster as cluster_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.joblogs.table import Table
    from gpuctl.store.database import Store

SLICE = 20_000
"""Attempts classified at a time, which bounds the lines in memory."""
_BEHIND = 1_000_000_000
"""Added to the line numbers of the scheduler's reasons, which rank after the lines of logs."""

_NEW: dict[str, pl.DataType] = {
    "reason": pl.String(),
    "title": pl.String(),
    "reason_category": pl.String(),
    "category": pl.String(),
    "confidence": pl.Float64(),
    "signature": pl.String(),
    "stream": pl.String(),
    "line_no": pl.Int64(),
    "evidence": pl.String(),
    "others": pl.List(pl.String()),
}


def build(store: Store, cluster: str, table: Table, *, job: str | None = None) -> None:
    """Create the temporary tables ``base_failed`` (with the known facts) and ``base_failures``.

    One row per attempt that failed, ran out of memory or time, lost a node or was preempted: see
    ``queries/base/failed_attempts.sql``. A log that does not name its attempt is assigned to the job's attempts by its
    lines' timestamps: see ``queries/base/line_attempts.sql``.

    Args:
        store: an open store with base_jobs, base_attempts, base_placements, base_gang_machines, base_machine_events and
            base_reasons; it is only read.
        cluster: which cluster of it.
        table: the signatures with which the logs were scanned.
        job: only the attempts of this job.
    """
    where = "" if job is None else " WHERE job = $job"
    chosen = {"cluster": cluster} | ({} if job is None else {"job": job})
    store.execute(
        # a constant of gpuctl
        f"CREATE OR REPLACE TEMP TABLE base_line_attempts AS {shared_sql.base_sql('line_attempts')}",
        {"cluster": cluster},
    )
    # every part of this text is a constant of gpuctl
    store.execute(
        "CREATE OR REPLACE TEMP TABLE base_failed AS SELECT row_number() OVER (ORDER BY job, attempt) - 1 AS row, * "  # noqa: S608
        f"FROM ({shared_sql.base_sql('failed_attempts')}){where}",
        chosen,
    )
    rows = store.frame("FROM base_failed ORDER BY row")
    verdicts, number = _verdicts(store, cluster, rows, table)
    found = pl.DataFrame([_row(verdict, table) for verdict in verdicts], schema=_NEW, orient="row")
    whole = rows.drop("texts", "end_s").hstack(found[number])
    whole = whole.with_columns(_templates(whole))
    store.keep("base_failures", whole)


def _verdicts(store: Store, cluster: str, rows: pl.DataFrame, table: Table) -> tuple[list[Verdict], pl.Series]:
    """Return distinct verdicts, and for every attempt the index of its own among them."""
    words = Words(table)
    # without a log, attempts differ only in the scheduler's statements
    columns = ["state", "exit_code", "exit_signal", "texts"]
    alike = rows.select(columns).unique(maintain_order=True).with_row_index("number")
    verdicts = [
        judge([], Facts(state, code, signal, tuple(texts)), None, table, words)
        for state, code, signal, texts in alike[columns].iter_rows()
    ]
    number = rows.select(columns).join(alike, on=columns, how="left", nulls_equal=True, maintain_order="left")["number"]
    own: dict[int, int] = {}
    for first, matches in _matches(store, cluster, rows.height):
        part = rows.slice(first, len(matches)).select(*columns, "end_s").iter_rows()
        for row, (lines, (state, code, signal, texts, end)) in enumerate(zip(matches, part, strict=True), first):
            if lines:
                own[row] = len(verdicts)
                verdicts.append(judge(lines, Facts(state, code, signal, tuple(texts)), end, table, words))
    return verdicts, number.scatter(list(own), list(own.values()))


def judge(own: list[Match], facts: Facts, end: float | None, table: Table, words: Words) -> Verdict:
    """Decide why an attempt failed, given that its scheduler reports a failure.

    Args:
        own: stored lines of its logs.
        facts: the scheduler's statements.
        end: its end in seconds since 1970, which is also the time of the scheduler's statements.
        table: the signatures.
        words: finds signatures in the scheduler's text.
    """
    matches = [match for text in facts.texts for match in words.matches(text)]
    verdict = classify([*own, *(match._replace(ts=end) for match in matches)], table, facts)
    if not verdict.failed:
        # its logs show success; the scheduler is right that it failed, but not why
        return Verdict(failed=True, reason=NO_SIGNATURE)
    if verdict.stream == SCHEDULER:
        return verdict._replace(line_no=None)
    return verdict


class Words:
    """Finds signatures in a scheduler's text: reasons, diagnostic messages, why a node was drained."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._scanner: Any = None
        self._known: dict[str, list[Match]] = {}

    def matches(self, text: str) -> list[Match]:
        """Return the lines of one text in which a signature is found."""
        if text not in self._known:
            if self._scanner is None:
                from gpuctl.joblogs.scan import Scanner

                self._scanner = Scanner(self._table)
            found = self._scanner.scan(io.BytesIO(text.encode("utf-8", "replace"))).matches
            self._known[text] = [match._replace(stream=SCHEDULER, line_no=match.line_no + _BEHIND) for match in found]
        return self._known[text]


def _matches(store: Store, cluster: str, size: int) -> Iterator[tuple[int, list[list[Match]]]]:
    """Yield the stored lines of failed attempts, slice by slice, with the number of the first attempt of each.

    Empty if no attempt has any.
    """
    if not store.value("SELECT EXISTS (FROM job_logs WHERE cluster = $cluster)", {"cluster": cluster}):
        return
    sql = shared_sql.base_sql("failed_lines")
    for first in range(0, size, SLICE):
        last = min(first + SLICE, size) - 1
        lines = store.frame(sql, {"cluster": cluster, "from_row": first, "to_row": last})
        bounds = np.searchsorted(lines["row"].to_numpy(), np.arange(first, last + 2)).tolist()
        every = [Match(*line) for line in lines.select(Match._fields).iter_rows()]
        yield first, [every[begin:end] for begin, end in pairwise(bounds)]


def kept_lines(store: Store, cluster: str) -> Iterator[tuple[int, list[Match]]]:
    """Return the number of each ended attempt with stored lines of logs, and these lines; base_attempts exists."""
    store.execute(
        f"CREATE OR REPLACE TEMP TABLE base_line_attempts AS {shared_sql.base_sql('line_attempts')}",
        {"cluster": cluster},
    )
    store.execute(
        "CREATE OR REPLACE TEMP TABLE base_failed_lines AS SELECT number AS row, job, attempt FROM base_attempts "
        "WHERE state NOT IN ('pending', 'running', 'suspended', 'completed')"
    )
    sql = shared_sql.base_sql("failed_lines").replace("base_failed ", "base_failed_lines ")
    last = store.value("SELECT max(row) FROM base_failed_lines")
    for first in range(0, 0 if last is None else last + 1, SLICE):
        lines = store.frame(sql, {"cluster": cluster, "from_row": first, "to_row": first + SLICE - 1})
        for (row,), part in lines.group_by("row", maintain_order=True):
            yield row, [Match(*line) for line in part.select(Match._fields).iter_rows()]


def _row(verdict: Verdict, table: Table) -> tuple[Any, ...]:
    reason = verdict.reason or NO_SIGNATURE
    known = table.reasons.get(reason)
    title, own = (known.title, "+".join(known.categories) or None) if known else (reason, None)
    parts = (verdict.category, verdict.confidence, verdict.signature, verdict.stream, verdict.line_no, verdict.evidence)
    return (reason, title, own, *parts, list(verdict.others))


def _templates(rows: pl.DataFrame) -> pl.Series:
    """Return the templates of the most informative lines of logs without a signature."""
    unknown = (rows["reason"] == NO_SIGNATURE) & rows["has_log"] & rows["evidence"].is_not_null()
    places = unknown.arg_true().to_list()
    templates: list[str | None] = [None] * rows.height
    for group in cluster_lines(rows["evidence"].gather(places).to_list()):
        for member in group.members:
            templates[places[member]] = group.template
    return pl.Series("template", templates, dtype=pl.String)
