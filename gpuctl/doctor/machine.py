"""Checks of the machine: processors, memory, disks, the directory of reports, the terminal."""

from __future__ import annotations

import locale
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gpuctl.core.numbers import size
from gpuctl.doctor.check import DoctorContext, Finding, Status, finding, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator

NEEDED_MEMORY = 2_000_000_000
"""Maximum bytes of memory of a gpuctl process."""
LOW_DISK = 1_000_000_000
"""Bytes; less free is a warning."""
NO_DISK = 50_000_000
"""Bytes; less free is a failure."""
NARROW = 60
"""Characters per line; on narrower terminals tables are split into many parts."""


def processors(context: DoctorContext) -> list[Finding]:
    """Count the processors that this process may use, by its affinity and by the quota of its control group."""
    there = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    quota = cpu_quota(context.root)
    evidence, fix = f"{allowed} of {there} usable", ""
    if quota is not None and quota < allowed:
        evidence += f", for the time of {quota:g} of them (quota of the control group)"
        fix = f"replay with --jobs {max(1, int(quota))}: with one process per processor, processes wait for each other"
    return [finding("processors", evidence, fix)]


def memory(context: DoctorContext) -> list[Finding]:
    """Compare free memory with DuckDB's limit and with what a process of gpuctl may need."""
    from gpuctl.store.database import DEFAULT_MEMORY_LIMIT

    free = free_memory(context.root)
    if free is None:
        return []
    evidence = f"{size(free)} free; DuckDB takes up to {DEFAULT_MEMORY_LIMIT}, a process up to {size(NEEDED_MEMORY)}"
    if free < int(DEFAULT_MEMORY_LIMIT.removesuffix("MB")) * 1_000_000:
        return [finding("memory", evidence, "close other programs, or run on a machine with more memory", Status.FAIL)]
    return [
        finding("memory", evidence, "close other programs before reading large logs" if free < NEEDED_MEMORY else "")
    ]


def disk(context: DoctorContext) -> Iterator[Finding]:
    """Check the free space beside the store, and in the directory for stores of logs that are not kept."""
    if context.db is not None:
        place = next(p for p in (context.db.absolute().parent, *context.db.absolute().parents) if p.is_dir())
        stored = context.db.stat().st_size if context.db.is_file() else 0
        free = shutil.disk_usage(place).free
        yield free_space("disk_store", place, free, max(LOW_DISK, stored), "DuckDB spills next to the store")
    place = Path(tempfile.gettempdir())
    free = shutil.disk_usage(place).free
    why = unwritable(place)
    if why is not None:
        fix = "set TMPDIR to a writable directory"
        yield finding("disk_temporary", f"{place} cannot be written to: {why}", fix, Status.FAIL)
    else:
        use = "logs analyzed without --db are read into a store there"
        yield free_space("disk_temporary", place, free, LOW_DISK, use)


def free_space(check: str, place: Path, free: int, wanted: int, use: str) -> Finding:
    """Return the finding on free space.

    Args:
        check: its id.
        place: a directory.
        free: bytes.
        wanted: bytes; less free is a warning.
        use: purpose of the space.
    """
    evidence = f"{size(free)} free in {place}; {use}"
    fix = "free space there" + ("" if check == "disk_store" else ", or set TMPDIR")
    if free < NO_DISK:
        return finding(check, evidence, fix, Status.FAIL)
    return finding(check, f"{evidence}; {size(wanted)} needed", fix) if free < wanted else finding(check, evidence)


def reports(context: DoctorContext) -> list[Finding]:
    """Check that reports can be written to their directory, or that it can be created."""
    named = context.reports
    place = Path() if named is None else named
    shown = f"{place.absolute()}" + (" (where gpuctl runs)" if named is None else "")
    if place.exists() and not place.is_dir():
        return [
            finding("reports", f"{shown}: is a file, not a directory", "give a directory with --reports", Status.FAIL)
        ]
    there = next(p for p in (place, *place.absolute().parents) if p.is_dir())
    why = unwritable(there)
    if why is not None:
        # gpuctl may run anywhere: nobody chose that directory for reports
        status = Status.WARN if named is None else Status.FAIL
        evidence = f"{there.absolute()} cannot be written to: {why}"
        return [finding("reports", evidence, "choose another path, or give write access", status)]
    state = "can be written to" if there is place else "does not exist yet, but can be created"
    return [finding("reports", f"{shown} {state}")]


def terminal(context: DoctorContext) -> list[Finding]:
    """Check standard output: whether it is a terminal, its width, its colours, and the characters it can show."""
    return [
        screen(sys.stdout, shutil.get_terminal_size().columns, context),
        unicode_support(getattr(sys.stdout, "encoding", None) or "none"),
        locale_setting(context),
    ]


def screen(out: TextIO, width: int, context: DoctorContext) -> Finding:
    """Return the finding on the terminal that results are printed to."""
    if not out.isatty():
        return finding("terminal", "standard output is not a terminal: results are written as TSV, in full")
    kind = context.environ.get("TERM", "none")
    plain = bool(context.environ.get("NO_COLOR")) or kind == "dumb"
    fix = f"widen it to {NARROW} or more columns: tables are split into parts" if width < NARROW else ""
    return finding("terminal", f"{kind}, {width} columns, {'no colours' if plain else 'colours'}", fix)


def unicode_support(encoding: str) -> Finding:
    """Return the finding on characters that names in logs may hold."""
    try:
        "\u2013\u00e9\u4e2d\U0001f600".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        evidence = f"{encoding}: names with other characters are printed as \\u1234"
        return finding("unicode", evidence, "set LC_ALL=C.UTF-8, or PYTHONUTF8=1")
    return finding("unicode", f"{encoding} shows every character")


def locale_setting(context: DoctorContext) -> Finding:
    """Return the finding on the locale that the environment asks for."""
    variables = (name for name in ("LC_ALL", "LC_CTYPE", "LANG") if context.environ.get(name))
    setting = next((f"{name}={context.environ[name]}" for name in variables), "none")
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, setting.partition("=")[2] if "=" in setting else "")
    except locale.Error:
        fix = "install that locale, or set LC_ALL=C.UTF-8"
        return finding("locale", f"{setting} is not installed on this machine", fix)
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return finding("locale", setting)


# ---- figures of the kernel (proc(5), cgroups(7); cgroup v2: cpu.max, memory.max; v1: the older names)


def free_memory(root: Path) -> int | None:
    """Return the bytes available to programs, within the limits of the control group; None if unknown.

    Pages of files that the group has read count as free: the kernel drops them when memory gets short.
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
            inactive = stat.get("inactive_file", "0").strip()
            free = min(free, max(0, most - taken + (int(inactive) if inactive.isdecimal() else 0)))
    return free


def cpu_quota(root: Path) -> float | None:
    """Return the processors whose time the control group may use; None without such a limit."""
    quotas = []
    for folder in _groups(root, "cpu"):
        words = " ".join(_lines(folder / "cpu.max")).split()
        if not words:
            words = [*_lines(folder / "cpu.cfs_quota_us"), *_lines(folder / "cpu.cfs_period_us")]
        if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]) > 0:
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control group and of those above it."""
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
