"""All checks of ``gpuctl doctor`` in their order, and their findings as a result like any other.

A check is one function that returns findings: to add one, write it and name it in `CHECKS`, or in
`gpuctl.doctor.store.CHECKS` if it needs an open store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.notes import counted, literal, note, together
from gpuctl.doctor import installation, machine, models, store
from gpuctl.doctor.check import Check, DoctorContext, Finding, Status, finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from gpuctl.core.results import Analysis, ResultTable

CHECKS: tuple[Check, ...] = (
    installation.python,
    installation.package,
    installation.dependencies,
    installation.compiled_code,
    machine.processors,
    machine.memory,
    machine.disk,
    machine.reports,
    machine.terminal,
    models.models,
)
"""In the order of their rows; those of a store (`gpuctl.doctor.store.CHECKS`) come last."""


def run(context: DoctorContext, checks: Iterable[Check] = CHECKS) -> tuple[list[Finding], pl.DataFrame | None]:
    """Run the checks one after the other.

    Returns:
        The findings, and the store's ledger; None if no store could be read.
    """
    found: list[Finding] = []
    for check in checks:
        try:
            found += check(context)
        except (ImportError, OSError) as error:
            found.append(_broken_check(check.__name__, error))
    try:
        more, rows = store.check_store(context)
    except ImportError as error:
        return [*found, _broken_check("store", error)], None
    return found + more, rows


def _broken_check(name: str, error: ImportError | OSError) -> Finding:
    """Return the finding of a check that raised: a package does not load (llvmlite: an OSError), or a path is wrong."""
    evidence = f"check could not run: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
    fix = f"check the path in the message; if it belongs to a package, {installation.INSTALL}"
    return finding(name, evidence, fix, Status.FAIL)


def analysis(context: DoctorContext, found: Sequence[Finding], rows: pl.DataFrame | None, command: str) -> Analysis:
    """Return the findings as a result like any other.

    Args:
        context: what was checked.
        found: one per row.
        rows: the store's ledger (`gpuctl.doctor.store.ledger`).
        command: the command line, as given by the user.
    """
    from gpuctl.core.results import Analysis

    tables = (_checks(context, found, more=rows is not None),) + (() if rows is None else (_ledger(rows),))
    return Analysis(
        cluster=note(""),
        tables=tables,
        sections=(("doctor", "Checks"), ("store", "Store")),
        sources=(),
        settings={},
        command=command,
    )


def _checks(context: DoctorContext, found: Sequence[Finding], *, more: bool) -> ResultTable:
    import polars as pl

    from gpuctl.core.results import Column, ResultTable

    left = ["a store (--db FILE)"] if context.db is None else []
    left += [] if context.models else ["saved models (--model DIR)"]
    notes = []
    if left:
        notes.append(
            note(
                "Not checked, as no option names them: {left}.",
                left=together(" and ", [literal(name) for name in left]),
            )
        )
    if more:
        notes.append(note("The store's files with their share of rejected rows: --table ledger."))
    if any(one.status is Status.FAIL and one.check.startswith("store") for one in found):
        notes.append(note("Checks of the store after the failed one were skipped."))
    counted_statuses = [
        note("{count} {status}", count=sum(one.status is status for one in found), status=literal(status))
        for status in Status
    ]
    return ResultTable(
        name="checks",
        section="doctor",
        title="Checks",
        question="Is everything that gpuctl needs in order?",
        population=note("{counts}.", counts=together(", ", counted_statuses)),
        notes=tuple(notes),
        columns=(
            Column("check", "-", "what was checked: a stable id"),
            Column("status", "-", "ok; warn: commands run, but see the fix; fail: something will not work"),
            Column("evidence", "-", "what was found"),
            Column("fix", "-", "what to do; empty if the status is ok"),
        ),
        frame=pl.DataFrame(
            [(one.check, one.status.value, one.evidence, one.fix or None) for one in found],
            schema=dict.fromkeys(("check", "status", "evidence", "fix"), pl.String),
            orient="row",
        ),
    )


def _ledger(rows: pl.DataFrame) -> ResultTable:
    from gpuctl.core.results import Column, ResultTable

    return ResultTable(
        name="ledger",
        section="store",
        title="Files of the store",
        question="Which files were loaded, and how many of their rows were rejected?",
        population=note(
            "{files} of the ledger: all, sorted by share of rejected rows, largest first.",
            files=counted(rows.height, "file"),
        ),
        notes=(note("More than {pct:g} % rejected rows make the check ledger a warning.", pct=store.REJECTED_PCT),),
        columns=(
            Column("cluster", "-", "the cluster into which it was loaded"),
            Column("path", "-", "path of the file; members of archives as archive!member"),
            Column("format", "-", "format name, as in gpuctl formats"),
            Column("rows_in", "rows", "rows in the file"),
            Column("rows_already_stored", "rows", "rows already in the store with the same content"),
            Column(
                "rows_rejected",
                "rows",
                "rows that could not be read, or contradict the store; the store's table rejects lists each",
            ),
            Column("rejected_pct", "%", "rows_rejected as a share of rows_in"),
        ),
        frame=rows,
    )
