"""Flat records that scanning, classification and the store share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

TEXT_LIMIT = 500
"""Characters of a line that are stored."""


class Match(NamedTuple):
    """A stored line of a job's output that a signature found, or that may help a person to diagnose the failure.

    Attributes:
        signature: id of the signature; None for a telling line of a log in which none was found.
        line_no: 1-based; text between carriage returns is one line.
        text: the line, at most `TEXT_LIMIT` characters around what was found.
        rank: of the process that printed it, if the line's beginning states so.
        ordinary_after: how many lines of ordinary output follow in the log (no error, frame of a traceback, or blank).
        work_after: whether the log then shows training progress, or that the program recovered or succeeded.
        times: number of lines of the log that match the signature.
        stream: name of the attempt's log, e.g. ``stderr``; empty if there is only one.
        ts: seconds since 1970 by the line's own timestamp, in the zone of the scan; None if it has none.
    """

    signature: str | None
    line_no: int
    text: str
    rank: int | None = None
    ordinary_after: int = 0
    work_after: bool = False
    times: int = 1
    stream: str = ""
    ts: float | None = None


class Step(NamedTuple):
    """One line of training progress; unstated values are None.

    Attributes:
        line_no: 1-based.
        epoch: as printed, fractions too (Hugging Face prints 0.31).
        epochs: of how many.
        step: optimizer step or batch within the epoch, as printed.
        steps: of how many.
        metric: the quantity of `value`, as printed: ``loss``, ``val_loss``, ``eval_loss``...
        value: may be NaN or infinite.
        elapsed_s: seconds since the bar or program began, as printed.
        ts: as for `Match`.
    """

    line_no: int
    epoch: float | None = None
    epochs: float | None = None
    step: int | None = None
    steps: int | None = None
    metric: str | None = None
    value: float | None = None
    elapsed_s: float | None = None
    ts: float | None = None


@dataclass
class Scan:
    """Result of one pass over a log.

    Attributes:
        size: bytes read, decompressed.
        lines: lines read.
        matches: at most a few lines a signature (the first and the last), by line.
        telling: the last informative lines, if no signature was found; and once more with
            the signature of last words that each of them has.
        steps: training progress, as often as the caller received it.
        step_lines: candidate lines; beyond some thousands not all are read (`gpuctl.joblogs.scan`).
        long_lines: lines over the limit, of which only parts were scanned.
    """

    size: int = 0
    lines: int = 0
    matches: list[Match] = field(default_factory=list)
    telling: list[Match] = field(default_factory=list)
    steps: int = 0
    step_lines: int = 0
    long_lines: int = 0


class Facts(NamedTuple):
    """What the scheduler reports about an attempt.

    Attributes:
        state: one of `gpuctl.core.states.State`; None if unknown.
        exit_code: exit code of the program.
        exit_signal: signal that ended it.
        texts: its texts: a reason, a diagnostic message.
    """

    state: str | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    texts: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """Why an attempt failed.

    Attributes:
        failed: False if nothing shows a failure; then the reason is None. None if unknown.
        reason: slug of `signatures/reasons.toml`, ``no_signature`` if it failed and no signature matched.
        category: of ``infrastructure``, ``ai_engine``, ``user``, joined by ``+``; None without a reason.
        confidence: 0 to 1: the share of such verdicts that are right, measured on the corpus (docs/how-to/failures.md).
        signature: the decisive signature; None for the scheduler's statement.
        stream: the log with the evidence; ``scheduler`` for the scheduler's statement.
        line_no: of the evidence.
        evidence: the line itself; for ``no_signature`` the most telling line.
        others: further reasons that the log shows, the strongest first.
    """

    failed: bool | None
    reason: str | None = None
    category: str | None = None
    confidence: float = 0.0
    signature: str | None = None
    stream: str | None = None
    line_no: int | None = None
    evidence: str | None = None
    others: tuple[str, ...] = ()


def stored_part(line: str, at: int) -> str:
    """Cut a line down to the stored part around a position."""
    begin = 0 if len(line) <= TEXT_LIMIT or at <= TEXT_LIMIT else min(at - TEXT_LIMIT // 2, len(line) - TEXT_LIMIT)
    return line[begin : begin + TEXT_LIMIT]
