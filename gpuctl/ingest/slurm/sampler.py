"""Samples squeue and sinfo periodically, and appends their output to text files, one per day and program.

The files are what the formats ``slurm-squeue-samples`` and ``slurm-sinfo-samples`` read. The sampler
may be stopped or killed at any time, and started anew on the same folder: a line that a kill has cut is closed by the
next start, and the formats reject and count it.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core.errors import DependencyError, InputError
from gpuctl.ingest.read.programs import output
from gpuctl.ingest.slurm.site.samples import DELIMITER, SINFO, SQUEUE

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 60.0
"""A program that takes longer is stopped, and this sample is missing."""
_MARK = DELIMITER.encode()
_ENVIRONMENT = {
    # else squeue cuts the list of an array's tasks off after 64 characters
    "SLURM_BITSTR_LEN": "0",
    "LC_ALL": "C.UTF-8",
}


@dataclass(frozen=True)
class Program:
    """One of the two programs.

    Attributes:
        name: how it and its files are called.
        path: the program to run.
        arguments: of the program.
        columns: of a line in its file, the time first.
    """

    name: str
    path: str
    arguments: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass
class Summary:
    """What a run of the sampler has written.

    Attributes:
        samples: times at which at least one program answered.
        failed: calls of a program that failed.
        rows: file -> lines written to it, without headers.
    """

    samples: int = 0
    failed: int = 0
    rows: dict[str, int] = field(default_factory=dict)


def programs(squeue: Path | None = None, sinfo: Path | None = None) -> tuple[Program, Program]:
    """Find the two programs: as named, else on the PATH.

    Raises:
        DependencyError: one is not there.
    """
    fields = DELIMITER.join(("%A", "%i", "%T", "%r", "%P", "%N"))
    columns = ",".join(f"{name}:{DELIMITER}" for name in ("NodeList", "StateLong", "Gres", "GresUsed", "Reason"))
    return (
        Program("squeue", _find("squeue", squeue), ("-h", "-a", "-o", fields), SQUEUE),
        Program("sinfo", _find("sinfo", sinfo), ("-h", "-a", "-N", "-O", columns), SINFO),
    )


def ask(program: Program, timeout_s: float = TIMEOUT_S) -> tuple[list[bytes], int]:
    """Run a program once.

    Args:
        program: what to run.
        timeout_s: seconds after which it is stopped.

    Returns:
        its lines, each once, and how many were left out for they have another number of columns (some sites'
        wrappers print notes of their own).

    Raises:
        InputError: it cannot be run, fails, takes too long, or prints nothing but lines of another shape.
    """
    command = [program.path, *program.arguments]
    printed = output(command, timeout_s=timeout_s, settings=_ENVIRONMENT, what="a sample")
    lines = [line.rstrip(b"\r") for line in printed.split(b"\n") if line.strip()]
    marks = len(program.columns) - 2
    # `sinfo -O` ends every line with the delimiter
    cut = [line[:-1] if line.endswith(_MARK) and line.count(_MARK) == marks + 1 else line for line in lines]
    whole = [line for line in cut if line.count(_MARK) == marks]
    if lines and not whole:
        raise InputError(f"{program.name} printed lines of another shape than {', '.join(program.columns[1:])}")
    return list(dict.fromkeys(whole)), len(lines) - len(whole)


def append(path: Path, columns: tuple[str, ...], lines: list[bytes]) -> None:
    """Append lines to a file, all of them or none; a new file gets a header, a broken last line its end.

    Raises:
        InputError: it cannot be written.
    """
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", path=str(path)) from error
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            raise InputError("is not a regular file", path=str(path))
        size = status.st_size
        head = _MARK.join(c.encode() for c in columns) + b"\n" if size == 0 else b""
        if size and os.pread(number, 1, size - 1) != b"\n":
            head = b"\n"
        try:
            _write(number, head + b"".join(line + b"\n" for line in lines))
        except BaseException as error:
            os.ftruncate(number, size)
            if isinstance(error, OSError):
                raise InputError(f"cannot be written: {error.strerror}", path=str(path)) from error
            raise
    finally:
        os.close(number)


def sample(
    output: Path,
    sampled: tuple[Program, ...],
    *,
    interval_s: float,
    count: int | None = None,
    duration_s: float | None = None,
    on_failure: Callable[[str], None] = lambda _: None,
    summary: Summary | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Summary:
    """Take samples until there are enough of them.

    Args:
        output: folder of the files, made if absent.
        sampled: the programs.
        interval_s: seconds from one sample to the next; if the programs take longer, samples are left out.
        count: how many samples; no end if this and `duration_s` are None.
        duration_s: for how many seconds.
        on_failure: called with what went wrong with a later sample; the next one is taken anyway.
        summary: where to count; a new one unless given.
        timeout_s: see `ask`.

    Raises:
        InputError: nothing can be had at the very first sample, or the folder cannot be written to.
    """
    summary = Summary() if summary is None else summary
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror}", path=str(output)) from error
    started = time.monotonic()
    tick = taken = 0
    while True:
        _once(output, sampled, summary, on_failure, timeout_s)
        taken += 1
        since = time.monotonic() - started
        tick = max(tick + 1, int(since / interval_s) + (since % interval_s > 0))
        late = duration_s is not None and tick * interval_s > duration_s
        if late or (count is not None and taken >= count):
            return summary
        time.sleep(max(0.0, started + tick * interval_s - time.monotonic()))


def _once(
    folder: Path, sampled: tuple[Program, ...], summary: Summary, on_failure: Callable[[str], None], timeout_s: float
) -> None:
    now = time.time()
    stamp, day = f"{now:.3f}".encode(), datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
    answered = False
    for program in sampled:
        try:
            lines, others = ask(program, timeout_s)
        except InputError as error:
            if not summary.samples and not answered:
                raise
            summary.failed += 1
            on_failure(error.message)
            continue
        if others:
            on_failure(f"{program.name}: {others} lines of another shape left out")
        path = folder / f"{program.name}-{day}.txt"
        append(path, program.columns, [stamp + _MARK + line for line in lines])
        summary.rows[str(path)] = summary.rows.get(str(path), 0) + len(lines)
        answered = True
    summary.samples += answered


def _find(name: str, given: Path | None) -> str:
    found = shutil.which(str(given)) if given is not None else shutil.which(name)
    if found is None:
        what = f"{given}: no program there" if given is not None else f"no program {name} on the PATH"
        raise DependencyError(
            what, hint=f"run gpuctl sample on a node with Slurm's client commands, or name it with --{name} FILE"
        )
    return found


def _write(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]
