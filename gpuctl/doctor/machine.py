"""Checks of the machine: processors, memory, disks, where reports go, the terminal."""

from __future__ import annotations

import locale
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gpuctl.core.numbers import size
from gpuctl.doctor.check import Finding, Given, Status, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NEEDED_MEMORY = 2_000_000_000
"""Bytes that a process of gpuctl stays under."""
LOW_DISK = 1_000_000_000
"""Bytes; with less free there is a warning."""
NO_DISK = 50_000_000
"""Bytes; with less free the check fails."""
NARROW = 60
"""Characters of a line; below that, tables come in many parts."""


def processors(given: Given) -> Iterable[Finding]:
    """How many processors this process may use, by its affinity and by the quota of its control group."""
    there = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    quota = cpu_quota(given.root)
    evidence = f"{allowed} of {there} may be used"
    if quota is not None and quota < allowed:
        evidence += f", for the time of {quota:g} of them (quota of the control group)"
        fix = f"replay with --jobs {max(1, int(quota))}: as many processes as there are processors wait for each other"
        yield Finding("processors", Status.WARN, evidence, fix)
        return
    yield Finding("processors", Status.OK, evidence)


def memory(given: Given) -> Iterable[Finding]:
    """Memory that is free, against DuckDB's limit and what a process of gpuctl may need."""
    from gpuctl.store.database import DEFAULT_MEMORY_LIMIT

    free = free_memory(given.root)
    if free is None:
        return
    evidence = f"{size(free)} free; DuckDB takes up to {DEFAULT_MEMORY_LIMIT}, a process up to {size(NEEDED_MEMORY)}"
    if free < _bytes(DEFAULT_MEMORY_LIMIT):
        yield Finding("memory", Status.FAIL, evidence, "end other programs, or run on a machine with more memory")
    elif free < NEEDED_MEMORY:
        yield Finding("memory", Status.WARN, evidence, "end other programs before large logs are read")
    else:
        yield Finding("memory", Status.OK, evidence)


def _bytes(limit: str) -> int:
    return int(limit.removesuffix("MB")) * 1_000_000


def disk(given: Given) -> Iterable[Finding]:
    """Free space where the store lies, and where a store is made of logs that are only looked at."""
    if given.db is not None:
        place = next(p for p in (given.db.absolute().parent, *given.db.absolute().parents) if p.is_dir())
        stored = given.db.stat().st_size if given.db.is_file() else 0
        free = shutil.disk_usage(place).free
        yield room("disk_store", place, free, max(LOW_DISK, stored), "DuckDB spills beside the store")
    place = Path(tempfile.gettempdir())
    free = shutil.disk_usage(place).free
    why = unwritable(place)
    if why is not None:
        fix = "set TMPDIR to a directory that can be written to"
        yield Finding("disk_temporary", Status.FAIL, f"{place} cannot be written to: {why}", fix)
        return
    yield room("disk_temporary", place, free, LOW_DISK, "logs that are only looked at are read into a store there")


def room(check: str, place: Path, free: int, wanted: int, use: str) -> Finding:
    """The finding on free space.

    Args:
        check: its id.
        place: a directory.
        free: bytes.
        wanted: bytes below which there is a warning.
        use: what they are needed for.
    """
    evidence = f"{size(free)} free in {place}; {use}"
    fix = "free space there" + ("" if check == "disk_store" else ", or set TMPDIR")
    if free < NO_DISK:
        return Finding(check, Status.FAIL, evidence, fix)
    if free < wanted:
        return Finding(check, Status.WARN, f"{evidence}; {size(wanted)} are needed", fix)
    return Finding(check, Status.OK, evidence)


def reports(given: Given) -> Iterable[Finding]:
    """Whether reports can be written to their directory, or one be made there."""
    named = given.reports
    place = Path() if named is None else named
    shown = f"{place.absolute()}" + (" (where gpuctl runs)" if named is None else "")
    if place.exists() and not place.is_dir():
        yield Finding("reports", Status.FAIL, f"{shown}: a file, no directory", "name a directory with --reports")
        return
    there = next(p for p in (place, *place.absolute().parents) if p.is_dir())
    why = unwritable(there)
    if why is not None:
        # nobody asked for reports in the directory that gpuctl happens to run in
        status = Status.WARN if named is None else Status.FAIL
        evidence = f"{there.absolute()} cannot be written to: {why}"
        yield Finding("reports", status, evidence, "name another place, or give write access")
    elif there is not place:
        yield Finding("reports", Status.OK, f"{shown} does not exist yet and can be created")
    else:
        yield Finding("reports", Status.OK, f"{shown} can be written to")


def terminal(given: Given) -> Iterable[Finding]:
    """What standard output is: a terminal or not, its width, colours, and which characters it can show."""
    yield screen(sys.stdout, shutil.get_terminal_size().columns, given)
    yield letters(getattr(sys.stdout, "encoding", None) or "none")
    yield words(given)


def screen(out: TextIO, width: int, given: Given) -> Finding:
    """The finding on the terminal that results are printed to."""
    if not out.isatty():
        return Finding("terminal", Status.OK, "standard output is none: results are written as TSV, in full")
    kind = given.environ.get("TERM", "none")
    refused = bool(given.environ.get("NO_COLOR")) or kind == "dumb"
    evidence = f"{kind}, {width} columns, {'no colours' if refused else 'colours'}"
    if width < NARROW:
        fix = f"widen it to {NARROW} columns or more: tables come in parts"
        return Finding("terminal", Status.WARN, evidence, fix)
    return Finding("terminal", Status.OK, evidence)


def letters(encoding: str) -> Finding:
    """The finding on characters that names in logs may hold."""
    try:
        "\u2013\u00e9\u4e2d\U0001f600".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        evidence = f"{encoding}: names with other characters are written out as \\u1234"
        return Finding("unicode", Status.WARN, evidence, "set LC_ALL=C.UTF-8, or PYTHONUTF8=1")
    return Finding("unicode", Status.OK, f"{encoding} shows every character")


def words(given: Given) -> Finding:
    """The finding on the locale that the environment asks for."""
    asked = next((f"{n}={given.environ[n]}" for n in ("LC_ALL", "LC_CTYPE", "LANG") if given.environ.get(n)), "none")
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, asked.partition("=")[2] if "=" in asked else "")
    except locale.Error:
        fix = "install that locale, or set LC_ALL=C.UTF-8"
        return Finding("locale", Status.WARN, f"{asked} is not on this machine", fix)
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return Finding("locale", Status.OK, asked)


# ---- what the kernel says (proc(5), cgroups(7); cgroup v2: cpu.max, memory.max; v1: the older names)


def free_memory(root: Path) -> int | None:
    """Bytes that programs may still take, within the limits of the control group; None where the kernel does not say.

    Pages of files that the group has read count as free: the kernel drops them where memory gets short.
    """
    fields = dict(line.split(":", 1) for line in _lines(root / "proc/meminfo") if ":" in line)
    known = fields.get("MemAvailable", "").split()
    if not known or not known[0].isdecimal():
        return None
    free = int(known[0]) * 1024
    for folder in _groups(root, "memory"):
        most = _number(folder / "memory.max", folder / "memory.limit_in_bytes")
        taken = _number(folder / "memory.current", folder / "memory.usage_in_bytes")
        if most is not None and taken is not None:
            stat = dict(line.split(None, 1) for line in _lines(folder / "memory.stat") if " " in line)
            kept = stat.get("inactive_file", "0").strip()
            free = min(free, max(0, most - taken + (int(kept) if kept.isdecimal() else 0)))
    return free


def cpu_quota(root: Path) -> float | None:
    """Processors whose time the control group may use; None where it has no such limit."""
    quotas = []
    for folder in _groups(root, "cpu"):
        words = " ".join(_lines(folder / "cpu.max")).split()
        if not words:
            words = [*_lines(folder / "cpu.cfs_quota_us"), *_lines(folder / "cpu.cfs_period_us")]
        if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]) > 0:
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of those above it."""
    for line in _lines(root / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        kinds, _, inside = rest.partition(":")
        if number != "0" and controller not in kinds.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("" if number == "0" else controller)
        parts = [part for part in inside.split("/") if part not in {"", ".", ".."}]
        for count in range(len(parts), -1, -1):
            yield top.joinpath(*parts[:count])


def _number(*files: Path) -> int | None:
    for file in files:
        for line in _lines(file)[:1]:
            if line.isdecimal():
                return int(line)
    return None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
