"""Results saved in a trace store by name, as compressed text that only their readers parse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import zstandard

from gpuctl.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from gpuctl.store.database import Store

MOST_BYTES = 2 * 1024**3
"""A larger document is neither saved nor read."""


@dataclass(frozen=True)
class SavedResult:
    """A result in a store.

    Attributes:
        name: its name, unique in a store.
        kind: the command that made it, as ``replay`` or ``predict runtime``.
        made_at: when it was saved (UTC).
        gpuctl: the version that made it.
        command: the command line, as given by the user.
        bytes: size of its document, decompressed.
    """

    name: str
    kind: str
    made_at: datetime
    gpuctl: str
    command: str
    bytes: int


def keep(store: Store, result: SavedResult, document: bytes) -> None:
    """Save a result in a store that is open for writing; one of the same name is replaced.

    Args:
        store: the store.
        result: its description; ``bytes`` is set to the size of the document.
        document: the result as JSON text.

    Raises:
        UsageError: it is too large.
    """
    if len(document) > MOST_BYTES:
        raise UsageError(
            f"a result of {len(document):,} bytes is too large to be saved", hint="write it with --parquet"
        )
    packed = zstandard.ZstdCompressor(level=3).compress(document)
    row = [result.name, result.kind, result.made_at, result.gpuctl, result.command, len(document), packed]
    store.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def listed(store: Store) -> list[SavedResult]:
    """Return all results saved in a store, by name."""
    rows = store.frame("SELECT name, kind, made_at, gpuctl, command, bytes FROM results ORDER BY name")
    return [SavedResult(*row) for row in rows.iter_rows()]


def read(store: Store, name: str) -> bytes:
    """Return the document of a saved result.

    Raises:
        UsageError: the store has no result of that name.
        InputError: its document is damaged, or larger than it states.
    """
    rows = store.execute("SELECT bytes, document FROM results WHERE name = ?", [name]).fetchall()
    if not rows:
        there = ", ".join(one.name for one in listed(store)) or "none"
        raise UsageError(f"{store.path} has no result {name!r}", hint=f"it has: {there}")
    [(size, packed)] = rows
    place = f"{store.path}: result {name!r}"
    if not 0 <= size <= MOST_BYTES:
        raise InputError(f"declares {size:,} bytes", path=place, hint=_AGAIN)
    try:
        # read one byte beyond the stated size, to detect a frame that holds more
        text = zstandard.ZstdDecompressor().stream_reader(packed).read(size + 1)
    except zstandard.ZstdError as error:
        raise InputError(f"is damaged: {error}", path=place, hint=_AGAIN) from error
    if len(text) != size:
        found = "more" if len(text) > size else f"{len(text):,}"
        raise InputError(f"is damaged: it has {found} bytes, expected {size:,}", path=place, hint=_AGAIN)
    return text


_AGAIN = "save it again: run its command with --keep"
