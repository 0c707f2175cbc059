"""Stores written by this process: their catalogue is not checked again if they are unchanged when reopened.

Listing a store's objects takes as long as opening it. Everything that changes with a store is compared: the file's
identity, size and times, and DuckDB's headers, which count checkpoints and hold checksums.
"""

from __future__ import annotations

import os
from pathlib import Path

from gpuctl.core.errors import StoreError
from gpuctl.core.storable_text import storable

Seal = tuple[int, int, int, int, int, bytes]
"""Device, inode, bytes, the times of the last change of its bytes and of itself in ns, and its headers."""
_HEADERS = 3 * 4096
_LEFT: dict[Path, tuple[Seal, int]] = {}


def log_of(path: Path) -> Path:
    """Return the file in which DuckDB keeps data that are not in a store's file yet."""
    return path.with_name(path.name + ".wal")


def seal(path: Path) -> Seal | None:
    """Return the properties that identify a store's content; None if it is missing or has a write-ahead log."""
    try:
        with path.open("rb") as file:
            status, head = os.fstat(file.fileno()), file.read(_HEADERS)
    except OSError:
        return None
    if log_of(path).exists():
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, head


def note(path: Path, version: int) -> None:
    """Remember a store that was open for writing, and locked, until now, and its schema version."""
    left = seal(path)
    if left is not None:
        _LEFT[path.absolute()] = left, version


def version(path: Path, before: Seal | None) -> int | None:
    """Return the schema version of a store that is unchanged, before it was opened and now; None if it changed."""
    left = _LEFT.get(path.absolute())
    if left is None or before != left[0] or seal(path) != before:
        return None
    return left[1]


def check_names(*paths: Path | None) -> None:
    """Check that DuckDB can open files of these names.

    Raises:
        StoreError: one has bytes that are not UTF-8.
    """
    for path in filter(None, paths):
        try:
            str(path).encode()
        except UnicodeEncodeError as error:
            raise StoreError(
                f"{storable(str(path))}: the path of a trace store must be UTF-8, and this one is not",
                hint="name another file with --db; TMPDIR sets the place of temporary stores",
            ) from error


def unfinished(path: Path, why: str) -> StoreError:
    """Return the error for a store with committed rows that are only in DuckDB's log."""
    log = log_of(path).name
    return StoreError(
        f"{path}: not all of it could be written: {why}; the rest is in {log}",
        hint=f"keep {log} next to it and free space on its disk; the next ingest writes the rest into the store",
    )
