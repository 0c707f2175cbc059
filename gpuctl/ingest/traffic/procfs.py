"""Linux's own counters of what came in over the network: ``/proc/net/dev`` and ``/proc/PID/mountstats``."""

from __future__ import annotations

import re

LOOPBACK = "lo"
_INTERFACE = re.compile(r"\s*(\S{1,255}):\s*(\d{1,20})(?:\s+\d{1,20}){15}\s*", re.ASCII)
_HEADING = re.compile(r"\s*(Inter-\||face \|)")
_DEVICE = re.compile(r"device (\S{1,4096}) mounted on (\S{1,4096}) with fstype (\S{1,64})(?: .*)?")
_NO_DEVICE = re.compile(r"no device mounted on \S+ with fstype \S+.*")
_NFS = frozenset({"nfs", "nfs4"})
_BYTES = re.compile(r"\s*bytes:((?:\s+\d{1,20}){8,})\s*", re.ASCII)
_READ = re.compile(r"\s*READ:((?:\s+\d{1,20}){5,})\s*", re.ASCII)
_SERVER_READ = 4
_RECEIVED = 4
_OCTAL = re.compile(r"\\([0-7]{3})")


def interface_of(line: str) -> tuple[str, int] | None:
    """Interface and bytes received so far, of one line of ``/proc/net/dev``; None if it is not such a line."""
    found = _INTERFACE.fullmatch(line)
    return (found[1], int(found[2])) if found else None


def is_heading(line: str) -> bool:
    """Whether a line is one of the two that head ``/proc/net/dev``."""
    return _HEADING.match(line) is not None


def interfaces(text: str, *, loopback: bool = False) -> dict[str, int]:
    """Bytes received so far by each interface, of the whole of ``/proc/net/dev``; the loopback only if requested."""
    found = (interface_of(line) for line in text.splitlines())
    return {name: count for name, count in filter(None, found) if loopback or name != LOOPBACK}


def mount_of(line: str) -> tuple[str, bool] | None:
    """Where something is mounted and whether it is NFS, of a line that begins a mount; None if it does not."""
    found = _DEVICE.fullmatch(line)
    if found is None:
        return ("", False) if _NO_DEVICE.fullmatch(line) else None
    # the kernel writes blanks in a path as \040
    path = _OCTAL.sub(lambda match: chr(int(match[1], 8)), found[2])
    return path, found[3] in _NFS


def server_read_of(line: str) -> int | None:
    """Bytes that a mount has read from its server so far, of its line ``bytes:``; None if it is another line.

    Reads that the page cache answered are not in it.
    """
    found = _BYTES.fullmatch(line)
    return int(found[1].split()[_SERVER_READ]) if found else None


def read_replies_of(line: str) -> int | None:
    """Bytes of all replies to READ so far, their headers too, of a mount's line ``READ:``; None: another line."""
    found = _READ.fullmatch(line)
    return int(found[1].split()[_RECEIVED]) if found else None


def nfs_mounts(text: str) -> dict[str, int]:
    """Bytes that NFS mounts have read from their server so far, of the whole of ``/proc/PID/mountstats``.

    Mounts of one file system share its counters (two folders of one export, bind mounts): of mounts whose counters are
    all equal, and not 0, only the first is given, so that the values may be summed.
    """
    counts: dict[str, tuple[int, str]] = {}
    replies: dict[str, tuple[int, str]] = {}
    at = ""
    for line in text.splitlines():
        mount = mount_of(line)
        if mount is not None:
            at = mount[0] if mount[1] else ""
        elif at and (count := server_read_of(line)) is not None:
            counts[at] = count, line
        elif at and (count := read_replies_of(line)) is not None:
            replies[at] = count, line
    found: dict[str, int] = {}
    seen: set[str] = set()
    for name, (count, line) in {**replies, **counts}.items():
        if not count or line not in seen:
            found[name] = count
            seen.add(line)
    return found
