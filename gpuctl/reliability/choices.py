"""What the user chooses for the section of reliability."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpuctl.core.durations import minutes_of_option
from gpuctl.core.errors import UsageError


@dataclass(frozen=True)
class Choices:
    """How causes are found, what is assumed, and which jobs are one run.

    Attributes:
        window: seconds before and after an attempt's end in which a node event or XID counts as evidence.
        checkpoint_s: seconds of work between checkpoints of runs whose logs do not tell (Kokolis et al., HPCA 2025:
            one hour).
        sizes: GPUs of jobs for which to project the MTTF, beside those seen.
        run_key: jobs of a user whose name it matches are one run by what its first group matched, or all of it.
        runs: run of each job that the user listed, by the job's id.
    """

    window: tuple[float, float] = (900.0, 300.0)
    checkpoint_s: float = 3600.0
    sizes: tuple[int, ...] = ()
    run_key: re.Pattern[str] | None = None
    runs: dict[str, str] = field(default_factory=dict)


DEFAULT = Choices()
LARGEST = 10_000_000
"""GPUs of a job."""


def parse(
    *, window: str | None, checkpoint: str | None, sizes: str | None, run_key: str | None, runs: dict[str, str]
) -> Choices:
    """The choices that options state.

    Args:
        window: ``10m:5m``: before and after.
        checkpoint: ``30m``.
        sizes: ``1024,4096``.
        run_key: ``name=REGEX``.
        runs: run of each job listed.

    Raises:
        UsageError: one of them makes no sense.
    """
    return Choices(
        _window(window) if window else DEFAULT.window,
        60.0 * minutes_of_option("--checkpoint-assumed", checkpoint) if checkpoint else DEFAULT.checkpoint_s,
        _sizes(sizes) if sizes else (),
        _pattern(run_key) if run_key else None,
        runs,
    )


def _window(text: str) -> tuple[float, float]:
    before, colon, after = text.partition(":")
    if not colon:
        raise UsageError(f"--window {text[:30]}: expected two times", hint="10m:5m")
    return 60.0 * minutes_of_option("--window", before), 60.0 * minutes_of_option("--window", after)


def _sizes(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdecimal() and 0 < int(part) <= LARGEST for part in parts):
        raise UsageError(f"--sizes {text[:60]}: expected numbers of GPUs, 1 to {LARGEST}", hint="1024,4096")
    return tuple(sorted({int(part) for part in parts}))


def _pattern(text: str) -> re.Pattern[str]:
    name, equals, pattern = text.partition("=")
    if name != "name" or not equals or not pattern:
        raise UsageError(f"--run-key {text[:60]}: expected name= and a regular expression", hint="name=(.*)-[0-9]+")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--run-key {text[:60]}: {error}", hint="name=(.*)-[0-9]+") from None
