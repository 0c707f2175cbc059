"""Compiles many patterns into one Hyperscan database, and stores it in the user's cache for the next run.

Compiling some fifteen hundred patterns takes seconds, loading them milliseconds. A database is code for Hyperscan's
engine, as trusted as a compiled Python file: it is read only if only the user could have written it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import hyperscan

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_DATABASES = 4
"""Number of databases in the cache, those used last: each table has one."""


def database(patterns: Sequence[bytes], flags: Sequence[int]) -> hyperscan.Database:
    """Return the compiled patterns, numbered from 0.

    Raises:
        hyperscan.error: a pattern cannot be compiled.
    """
    parts = [version("hyperscan").encode(), *patterns, *(str(flag).encode() for flag in flags)]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
    path = folder() / f"signatures-{digest}.hsdb"
    found = _load(path)
    if found is not None:
        return found
    made = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    made.compile(expressions=list(patterns), flags=list(flags))
    # if it cannot be stored, it is compiled again next time
    with contextlib.suppress(OSError):
        _keep(path, hyperscan.dumpb(made))
    return made


def folder() -> Path:
    """Return the folder of databases: ``$XDG_CACHE_HOME/gpuctl``, by default ``~/.cache/gpuctl``."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "gpuctl"


def _load(path: Path) -> hyperscan.Database | None:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(number, "rb") as file:
        status = os.fstat(number)
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
        # it begins with a digest of the rest: a truncated or damaged file is recreated
        digest, data = file.read(32), file.read()
    if not own or hashlib.sha256(data).digest() != digest:
        return None
    try:
        found = hyperscan.loadb(data, hyperscan.HS_MODE_BLOCK)
        found.scratch = hyperscan.Scratch(found)
    except hyperscan.error:
        # compiled on another kind of processor
        return None
    # databases in use stay, even if many tables are tried
    with contextlib.suppress(OSError):
        os.utime(path)
    return found


def _keep(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".signatures-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    aged = sorted(path.parent.glob("signatures-*.hsdb"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in aged[MOST_DATABASES:]:
        old.unlink(missing_ok=True)
