"""``gpuctl classify``: why the jobs failed that wrote these logs, without a store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuctl.cli.common import message, print_json, print_table, visible
from gpuctl.cli.options import LearnedOption, PlainJsonOption
from gpuctl.cli.settings import settings
from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.ingest.joboutput.verdicts import Judged


def classify(
    context: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Logs, directories or archives of logs, compressed or not.")
    ],
    signatures: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Your own signature table (TOML), in addition to gpuctl's; repeatable."),
    ] = None,
    exit_code: Annotated[
        int | None, typer.Option(metavar="N", help="Exit code of the program; 0: it did not fail.")
    ] = None,
    *,
    together: Annotated[
        bool,
        typer.Option("--together", help="Treat all files as logs of one attempt (stdout and stderr, one per rank)."),
    ] = False,
    learned: LearnedOption = True,
    as_json: PlainJsonOption = False,
) -> None:
    """Explain why the programs that wrote these logs failed: reason, category, confidence, and the line of evidence.

    Without an exit code, a log is not a failure if the program survived its errors; if it may also have survived
    the last one, failed is "perhaps" (null in JSON).
    """
    from gpuctl.ingest.joboutput.verdicts import judge, templates
    from gpuctl.ingest.read.files import NotRead
    from gpuctl.joblogs.evidence import Facts
    from gpuctl.joblogs.table import load

    options = settings(context)
    table = load(signatures or (), learned=learned)
    facts = Facts(exit_code=exit_code) if exit_code is not None else None
    judged: list[Judged] = []
    for one in judge(files, table, facts=facts, together=together):
        if isinstance(one, NotRead):
            message(f"gpuctl: {one.shown}: skipped: {one.why}", quiet=options.quiet and not one.failed)
            continue
        judged.append(one)
        for damage in one.damage:
            message(f"gpuctl: {damage}; everything before it was read")
    unknown = templates(judged)
    if as_json or options.json:
        print_json(
            {
                "signatures": {"version": table.version, "count": len(table.signatures)},
                "files": [_as_json(one) for one in judged],
                "unmatched": [{"template": template, "files": names} for template, names in unknown],
            }
        )
    else:
        _print(judged, color=options.color)
        if unknown:
            message("\nNo signature matched these; add your own with --signatures:")
            for template, names in unknown:
                message(f"  {len(names)} x {template}")
    if not judged:
        raise InputError("no file was read", hint="give logs, directories or archives of logs")


def _as_json(one: Judged) -> dict[str, Any]:
    verdict = one.verdict
    return {
        **({"file": one.files[0]} if len(one.files) == 1 else {"files": list(one.files)}),
        "failed": verdict.failed,
        "reason": verdict.reason,
        "category": verdict.category,
        "confidence": verdict.confidence if verdict.reason else None,
        "line_no": verdict.line_no,
        "evidence": verdict.evidence,
        "stream": verdict.stream,
        "signature": verdict.signature,
        "others": list(verdict.others),
        "telling": [{"line_no": match.line_no, "text": match.text} for match in one.telling],
        "bytes": one.size,
        "lines": one.lines,
    }


_FAILED = {True: "yes", False: "no", None: "perhaps"}
_VERDICT = {True: "failed", False: "did not fail", None: "perhaps failed"}


def _print(judged: list[Judged], *, color: bool) -> None:
    """A table into a pipe; on a terminal, which it would be too wide for, two or three lines a log."""
    if sys.stdout.isatty():
        for one in judged:
            sys.stdout.write("".join(f"{visible(line)}\n" for line in _lines(one)))
        return
    rows = [
        (
            " ".join(one.files),
            _FAILED[one.verdict.failed],
            one.verdict.reason or "",
            one.verdict.category or "",
            f"{one.verdict.confidence:.2f}" if one.verdict.reason else "",
            "" if one.verdict.line_no is None else str(one.verdict.line_no),
            one.verdict.evidence or "",
        )
        for one in judged
    ]
    print_table(("file", "failed", "reason", "category", "confidence", "line", "evidence"), rows, color=color)


def _lines(one: Judged) -> Iterator[str]:
    verdict = one.verdict
    yield f"{' '.join(one.files)}: {_VERDICT[verdict.failed]}"
    if verdict.reason:
        category = f" ({verdict.category})" if verdict.category else ""
        yield f"  {verdict.reason}{category}, confidence {verdict.confidence:.2f}"
    if verdict.evidence:
        yield f"  line {verdict.line_no}: {verdict.evidence}" if verdict.line_no else f"  {verdict.evidence}"
