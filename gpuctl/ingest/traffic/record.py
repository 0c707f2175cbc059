"""Records what comes in over the network, sample by sample, from Linux's own counters."""

from __future__ import annotations

import csv
import io
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.traffic.procfs import interfaces, nfs_mounts
from gpuctl.ingest.traffic.series import increase

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = ("job_id", "t", "bytes")
_PROC = Path("/proc")


class Counters:
    """Counters that can be read again and again, of a process also once after it has ended; a context manager.

    Args:
        path: what is read; it is kept open.
        parse: makes bytes so far of each mount or interface out of its text.
        what: what is counted, in words.
        note: what else is in the counters, in words.
        process: its folder, where the counters are those of a process.

    Raises:
        InputError: it cannot be read.
    """

    def __init__(
        self, path: Path, parse: Callable[[str], dict[str, int]], what: str, note: str, process: Path | None = None
    ) -> None:
        self.what = what
        self.note = note
        self._path = path
        self._parse = parse
        self._process = process
        self._born = _birth(process) if process is not None else None
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path=str(path)) from error

    def __enter__(self) -> Counters:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self) -> dict[str, int]:
        """Return the bytes so far of each mount or interface.

        Raises:
            InputError: they cannot be read any more.
        """
        try:
            self._file.seek(0)
            return self._parse(self._file.read().decode("utf-8", "replace"))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path=str(self._path)) from error

    def ended(self) -> bool:
        """Whether the process has ended; never, where the counters are of no process."""
        return self._process is not None and (self._born is None or _birth(self._process) != self._born)


def of_interface(name: str, proc: Path = _PROC) -> Counters:
    """Count what an interface of this machine (of this network namespace) receives.

    Args:
        name: of the interface.
        proc: where Linux shows its processes.

    Raises:
        UsageError: this is no Linux, or there is no such interface.
        InputError: the counters cannot be read.
    """
    _check_linux(proc)
    counters = Counters(
        proc / "net" / "dev",
        lambda text: {found: count for found, count in interfaces(text, loopback=True).items() if found == name},
        f"bytes that interface {name} receives",
        "traffic of all jobs on it is counted, from storage or not",
    )
    if not counters.read():
        known = interfaces((proc / "net" / "dev").read_text("utf-8", "replace"), loopback=True)
        with counters:
            raise UsageError(f"--iface {name}: no such interface here; known: {', '.join(known) or 'none'}")
    return counters


def of_process(pid: int, proc: Path = _PROC) -> Counters:
    """Count what the NFS mounts of a process read from their servers, else what its network namespace receives.

    Args:
        pid: of the process.
        proc: where Linux shows its processes.

    Raises:
        UsageError: this is no Linux, or there is no such process.
        InputError: its counters may not be read.
    """
    _check_linux(proc)
    folder = proc / str(pid)
    if _birth(folder) is None:
        raise UsageError(f"--pid {pid}: no such process, or it has ended", hint="ps -e lists the processes")
    mounts = Counters(
        folder / "mountstats",
        nfs_mounts,
        f"bytes that the NFS mounts of process {pid} read from their servers",
        "all processes that use these mounts share the counters; what the page cache answers is not in them",
        folder,
    )
    if mounts.read():
        return mounts
    with mounts:
        return Counters(
            folder / "net" / "dev",
            interfaces,
            f"bytes that the network namespace of process {pid} receives, because it has no NFS mounts",
            "all processes in it share the counters: those of the whole machine, unless it has a namespace of its own",
            folder,
        )


def record(
    counters: Counters,
    job: str,
    out: TextIO,
    *,
    interval_s: float,
    duration_s: float | None = None,
    written: list[int] | None = None,
) -> list[int]:
    """Write samples as ``job_id,t,bytes`` until the time is over or the process has ended; every line is flushed.

    The first line has 0 bytes and states when counting began. Where a counter fell it began anew. Where reading takes
    longer than the interval, samples are left out, and the next line has the bytes of the longer time.

    Args:
        counters: what is counted.
        job: the job's name.
        out: where to.
        interval_s: seconds from one sample to the next.
        duration_s: for how long; without, until the process has ended.
        written: where to note the bytes of every line as it is written; a new list unless given.

    Returns:
        the bytes of every line.

    Raises:
        InputError: the counters cannot be read any more.
    """
    written = [] if written is None else written
    label = _cell(job)
    before = counters.read()
    begun = time.monotonic()
    _line(out, label, 0, written)
    tick = 0
    while True:
        tick = max(tick + 1, int((time.monotonic() - begun) / interval_s))
        if duration_s is not None and tick * interval_s > duration_s + 1e-9:
            return written
        time.sleep(max(0.0, begun + tick * interval_s - time.monotonic()))
        last = counters.ended()
        now = counters.read()
        if before and not now:
            raise InputError(f"{counters.what}: they no longer exist; {len(written)} samples were written")
        # what was not there before began at 0
        _line(out, label, sum(increase(before.get(name, 0), count) for name, count in now.items()), written)
        before = {**before, **now}
        if last:
            return written


def _cell(text: str) -> str:
    cell = io.StringIO()
    csv.writer(cell, lineterminator="").writerow([text])
    return cell.getvalue()


def _line(out: TextIO, label: str, size: int, written: list[int]) -> None:
    out.write(f"{label},{time.time():.3f},{size}\n")
    out.flush()
    written.append(size)


def _check_linux(proc: Path) -> None:
    if not sys.platform.startswith("linux") or not proc.is_dir():
        raise UsageError(
            f"profile record reads counters of Linux (/proc); this is {sys.platform}", hint="run it where the job runs"
        )


def _birth(process: Path) -> str | None:
    """When a process was started, as the kernel writes it; None if it has ended, reaped by its parent or not."""
    try:
        fields = (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[19] if len(fields) > 19 and fields[0] not in {"Z", "X"} else None
