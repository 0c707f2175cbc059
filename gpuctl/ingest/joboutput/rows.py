"""Writes a scan's findings as rows of ``job_outputs``, ``job_logs``, ``progress`` and ``training_marks``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, BinaryIO
from zoneinfo import ZoneInfo

from gpuctl.core.storable_text import storable
from gpuctl.joblogs.progress_marks import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.ingest.core.format import Sink
    from gpuctl.ingest.joboutput.patterns import Log
    from gpuctl.joblogs.evidence import Match, Step
    from gpuctl.joblogs.scan import Scanner

BATCH = 50_000
"""Rows of progress that are held at a time."""
_MOST = 2**63 - 1
# stamps of text from anywhere: what is not a time of a cluster is none
_FIRST_S, _LAST_S = 0.0, 4_102_444_800.0
_LOG_COLUMNS = (
    *("job", "attempt", "stream", "line_no", "ts", "text", "signature", "rank", "ordinary_after", "work_after"),
    "count",
)
_PROGRESS_COLUMNS = (
    *("job", "attempt", "stream", "line_no", "step", "epoch", "ts", "loss", "epochs", "steps", "metric", "elapsed_s"),
)
_MARK_COLUMNS = ("job", "attempt", "stream", "line_no", "step", "ts", "value", "kind")
_OUTPUT_COLUMNS = ("job", "attempt", "stream", "path", "bytes", "lines", "long_lines", "steps", "signatures", "named")


class LogRows:
    """Scans the logs of one source and inserts what is found.

    Args:
        sink: takes the rows.
        scanner: looks through the logs.
        path: what the logs' ``path`` is to be: below the directory given.
    """

    def __init__(self, sink: Sink, scanner: Scanner, path: str) -> None:
        self._sink = sink
        self._scanner = scanner
        self._path = storable(path)
        self._zone = ZoneInfo(sink.timezone)
        self.lines = 0
        """Of all logs read so far."""
        self._outputs: list[tuple[object, ...]] = []
        self._pending: list[tuple[object, ...]] = []
        self._steps: list[tuple[object, ...]] = []
        self._marks: list[tuple[object, ...]] = []

    def read(self, stream: BinaryIO, log: Log) -> None:
        """Read one log to its end; each of its lines is counted as a row of the source."""
        whose = (storable(log.job), log.attempt, storable(log.stream))

        def step(found: Step) -> None:
            if found.metric in KINDS:
                self._marks.append((*whose, *_mark(found)))
                return
            self._steps.append((*whose, *_step(found)))
            if len(self._steps) >= BATCH:
                self._insert_steps()

        scan = self._scanner.scan(stream, step, self._zone)
        self.lines += scan.lines
        self._sink.seen(scan.lines)
        self._sink.loaded(scan.lines)
        version = self._scanner.table.version
        self._outputs.append(
            (*whose, self._path, scan.size, scan.lines, scan.long_lines, scan.steps, version, whose[0])
        )
        named = {match.line_no for match in scan.matches}
        unnamed = (match for match in scan.telling if match.line_no not in named)
        self._pending += ((*whose, *_match(match, log.rank)) for match in (*scan.matches, *unnamed))
        if len(self._pending) >= BATCH:
            self._insert_pending()

    def flush(self) -> None:
        """Insert the pending rows."""
        self._insert_pending()
        self._insert_steps()
        rows, self._outputs = self._outputs, []
        _insert(self._sink, "job_outputs", _OUTPUT_COLUMNS, rows)

    def _insert_pending(self) -> None:
        rows, self._pending = self._pending, []
        _insert(self._sink, "job_logs", _LOG_COLUMNS, rows)

    def _insert_steps(self) -> None:
        rows, self._steps = self._steps, []
        _insert(self._sink, "progress", _PROGRESS_COLUMNS, rows)
        marks, self._marks = self._marks, []
        _insert(self._sink, "training_marks", _MARK_COLUMNS, marks)


def lines_of(stream: BinaryIO) -> int:
    """Read a stream that is not job output to its end, and count its lines."""
    lines, last = 0, b"\n"
    while part := stream.read(1 << 18):
        lines += part.count(b"\n")
        last = part[-1:]
    return lines + (last != b"\n")


def _match(match: Match, rank: int | None) -> tuple[object, ...]:
    own = match.rank if match.rank is not None else rank
    return (
        *(match.line_no, _micros(match.ts), storable(match.text), match.signature, _small(own)),
        *(match.ordinary_after, match.work_after, match.times),
    )


def _step(step: Step) -> tuple[object, ...]:
    return (
        *(step.line_no, _whole(step.step), _real(step.epoch), _micros(step.ts), step.value, _real(step.epochs)),
        *(_whole(step.steps), None if step.metric is None else storable(step.metric), _real(step.elapsed_s)),
    )


def _mark(step: Step) -> tuple[object, ...]:
    value = None if step.value is None else _real(step.value)
    return step.line_no, _whole(step.step), _micros(step.ts), value, step.metric


def _insert(sink: Sink, table: str, columns: Sequence[str], rows: list[tuple[object, ...]]) -> None:
    if not rows:
        return
    import polars as pl

    types: dict[str, Any] = {
        **dict.fromkeys(
            ("job", "stream", "path", "signatures", "named", "text", "signature", "metric", "kind"), pl.String
        ),
        **dict.fromkeys(("attempt", "rank"), pl.Int32),
        **dict.fromkeys(("bytes", "lines", "long_lines", "line_no", "ordinary_after", "count"), pl.Int64),
        **dict.fromkeys(("step", "steps"), pl.Int64),
        **dict.fromkeys(("epoch", "loss", "epochs", "elapsed_s", "value"), pl.Float64),
        "work_after": pl.Boolean,
        "ts": pl.Datetime("us", "UTC"),
    }
    series = [
        pl.Series(name, values, types[name], strict=True)
        for name, values in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    sink.insert(table, pl.DataFrame(series))


def _micros(ts: float | None) -> int | None:
    return int(ts * 1e6) if ts is not None and _FIRST_S < ts < _LAST_S else None


def _whole(value: int | None) -> int | None:
    return value if value is not None and abs(value) <= _MOST else None


def _small(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < 2**31 else None


def _real(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
