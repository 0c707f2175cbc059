"""Logs of one JSON object per line, and the levels that loggers reserve for fatal errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpuctl.joblogs.structure.ending import Ending, Format, reason_of, single

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORST = frozenset({"error", "critical", "fatal", "panic", "alert", "emergency", "severe"})
_LEVELS = ("level", "levelname", "severity", "log.level", "loglevel", "lvl")
_CLASSES = ("exc_type", "exception.type", "error.type", "error_type", "type", "class")
_MESSAGES = ("exc_value", "exception.message", "error.message", "message", "msg", "event", "error", "err")
_STACKS = ("exc_info", "exception", "traceback", "stack", "stack_trace", "stacktrace", "error.stack_trace", "exc_text")
MOST = 1 << 16
"""A longer line is not read as JSON."""
_SHOWN = 4096


def json_line(lines: Sequence[str], at: int) -> Ending | None:
    """Parse a JSON object with the level of an error; its texts are those of an exception in it."""
    begin = lines[at].find("{")
    try:
        held = json.loads(lines[at][begin : begin + MOST])
        flat = dict(_flat(held)) if isinstance(held, dict) else {}
        level = next((str(flat[key]).lower() for key in _LEVELS if key in flat), "")
    except (ValueError, RecursionError):
        return None
    if level not in _WORST and level not in {"50", "60"}:  # pino's and bunyan's numbers
        return None
    # half of a surrogate pair, from an escape that a logger cut, is not text
    texts = tuple(text[:_SHOWN].encode("utf-8", "replace").decode() for text in _texts(flat))
    return Ending(at, at, at, reason_of(" ".join(texts)), texts=texts)


def _flat(held: dict[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, value in held.items():
        if isinstance(value, dict) and depth < 3:
            yield from _flat(value, f"{before}{key}.", depth + 1)
        else:
            yield f"{before}{key}", value


def _texts(flat: dict[str, Any]) -> Iterator[str]:
    """Yield the texts to search for signatures: `Class: message`, and the last lines of a stack."""
    named = next((str(flat[key]) for key in _CLASSES if isinstance(flat.get(key), str)), "")
    messages = [str(flat[key]) for key in _MESSAGES if isinstance(flat.get(key), str)]
    for text in messages:
        yield f"{named}: {text}" if named else text
        yield f"ERROR: {text}"
    for key in _STACKS:
        if isinstance(flat.get(key), str):
            yield from [line for line in str(flat[key]).splitlines() if line and not line[0].isspace()][-3:]


FORMATS = (
    Format(
        "json",
        (
            rb'^[^\n{]{0,80}\{[^\n]{0,4000}"(?:level|levelname|severity|log\.level|loglevel|lvl)": ?'
            rb'(?:"(?:[eE]rror|ERROR|[cC]ritical|CRITICAL|[fF]atal|FATAL|panic|severe|SEVERE)"|[56]0[,}])',
        ),
        json_line,
        '{"level": "error", "event": "no luck", "exc_type": "Oops"}',
        "structlog.org, python-json-logger, pino: fields of events",
    ),
    Format(
        "level",
        (
            rb"^[^\n]{0,120}\b(?:CRITICAL|FATAL)\b[\]): |-]",
            rb"^[^\n]{0,120}(?:\[(?:critical|fatal|emerg|alert)\]|\[E::\w{1,60}\] |\blevel=(?:fatal|panic|critical)\b)",
            rb"^[fF]atal(?: error)?: [^\n]",
        ),
        single,
        "2026-11-25 10:00:00,000 CRITICAL run: no luck",
        "docs.python.org: logging levels; log4j's levels; logfmt; nginx; htslib: hts_log",
    ),
)
