"""The journal of a chain: one JSON line per event, on disk before gpuctl acts on it, so a kill loses nothing."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import MOST_TABLE, read_whole

if TYPE_CHECKING:
    from pathlib import Path

BEGUN, SUBMITTING, SUBMITTED, ENDED, STOPPED, DONE, NOTED = (
    "begun", "submitting", "submitted", "ended", "stopped", "done", "noted",
)  # fmt: skip
_MOST_DIGITS, _MOST_JOBS, _MOST_S = 18, 10_000, 1e11
_ELSE = "name another file with --journal"
_HINT = "name the journal that gpuctl chain run has written"


@dataclass(frozen=True)
class JournalState:
    """The state of a chain according to its journal.

    Attributes:
        name: name of the chain in its file.
        chain: a random name, suffix of its jobs' names.
        jobs: ID of each job known to be submitted, by number in the chain, from 1.
        open: number of a job that may or may not be submitted; None: none.
        ended: how each job ended, by number.
        over: whether the chain is done or has stopped.
        events: all lines.
    """

    name: str
    chain: str
    jobs: dict[int, str]
    open: int | None
    ended: dict[int, str]
    over: bool
    events: list[dict[str, Any]]


Event = dict[str, Any]


def is_job_id(text: str) -> bool:
    """Whether a text is a number in Slurm's form for a job or an instant."""
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def token(name: str, chain: str, number: int) -> str:
    """Unique name and comment of a job."""
    return f"{name}.{number}.{chain}"


def read(path: Path) -> JournalState:
    """Read a journal; ignore a last line cut off by a kill.

    Raises:
        InputError: it is none.
    """
    text = read_whole(path, most=MOST_TABLE, hint=_HINT).decode("utf-8", "replace")
    lines = text.split("\n")[:-1]
    events: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            raise InputError("is not a line of a journal", path=str(path), line=number, hint=_HINT)
        events.append(event)
    return _state_of(events, path)


def _state_of(events: list[dict[str, Any]], path: Path) -> JournalState:
    jobs: dict[int, str] = {}
    ended: dict[int, str] = {}
    name, chain, open_, over = "", "", None, False
    for line, event in enumerate(events, 1):
        kind, number = event["event"], event.get("number", 0)
        if (kind == BEGUN) != (line == 1):
            raise InputError("is not the next line of a journal", path=str(path), line=line, hint=_HINT)
        if odd := _odd(event):
            raise InputError(f"{odd}: found {event.get(odd)!r:.60}", path=str(path), line=line, hint=_HINT)
        if kind == BEGUN:
            name, chain = str(event.get("name")), str(event.get("chain"))
        elif kind == SUBMITTING:
            open_ = number
        elif kind == SUBMITTED:
            jobs[number], open_ = str(event.get("job")), None
        elif kind == ENDED:
            ended[number] = str(event.get("state"))
        elif kind in {STOPPED, DONE}:
            over = True
    return JournalState(name, chain, jobs, open_, ended, over, events)


def _odd(event: Event) -> str | None:
    """The key of an event with an invalid value; None: all are valid."""
    at_s, number = event.get("at_s"), event.get("number")
    if not isinstance(at_s, int | float) or isinstance(at_s, bool) or not 0 <= at_s <= _MOST_S:
        return "at_s"
    if event["event"] not in {SUBMITTING, SUBMITTED, ENDED}:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= _MOST_JOBS:
        return "number"
    job = event.get("job")
    has_job = isinstance(job, str) and is_job_id(job)
    return None if has_job or event["event"] == SUBMITTING else "job"


class Journal:
    """A journal, written by one process at a time; with `dry` it is only read, and may be missing.

    Each sbatch it starts also holds the lock: after a kill of gpuctl, the next one waits until that sbatch has ended.

    Raises:
        UsageError: another process holds the lock.
        InputError: the file is no journal.
    """

    def __init__(self, path: Path, name: str, wait_s: float = 60.0, *, dry: bool = False) -> None:
        self.path, self._file = path, -1
        if dry:
            self.state = self._looked_at(name)
            return
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._lock(wait_s)
            self._mend()
            if not os.fstat(self._file).st_size:
                self.write(BEGUN, name=name, chain=secrets.token_hex(8))
            self.state = self._of(name)
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)

    @property
    def lock(self) -> int:
        """The file descriptor that programs with side effects must inherit."""
        return self._file

    def write(self, event: str, **more: Any) -> None:
        """Add a line; it is on disk when this returns.

        Raises:
            OSError: the disk is full; no part of the line is kept.
        """
        line = json.dumps({"event": event, "at_s": round(time.time(), 3), **more}, ensure_ascii=True) + "\n"
        size, data = os.fstat(self._file).st_size, line.encode()
        if os.write(self._file, data) < len(data):
            os.ftruncate(self._file, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        os.fsync(self._file)
        folder = os.open(self.path.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self.state = read(self.path)

    def _of(self, name: str) -> JournalState:
        """Its state, for the chain of this name."""
        state = read(self.path)
        if state.name != name:
            raise UsageError(f"{self.path}: the journal of the chain {state.name!r}, not {name!r}", hint=_ELSE)
        return state

    def _looked_at(self, name: str) -> JournalState:
        """Its state; empty if the chain has not begun."""
        if self.path.exists():
            state = read(self.path)
            if state.events:
                return self._of(name)
        return JournalState(name, secrets.token_hex(8), {}, None, {}, False, [])

    def _lock(self, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise UsageError(
                        f"{self.path}: another gpuctl chain run, or an sbatch that it started, holds this journal",
                        hint="gpuctl chain status shows its state; only one process can drive a chain",
                    ) from None
                time.sleep(0.1)
            else:
                return

    def _mend(self) -> None:
        """Remove a last line that a kill left unfinished."""
        size = os.fstat(self._file).st_size
        data = os.pread(self._file, size, 0)
        whole = data.rfind(b"\n") + 1
        if whole < size:
            os.ftruncate(self._file, whole)
            os.fsync(self._file)
