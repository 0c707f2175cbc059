"""Where rows came from: the ledger of a trace store, and files that are read without one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from gpuctl.core.results import SourceInfo
from gpuctl.core.texts import storable

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.trace.store import Store


def read_sources(store: Store, cluster: str) -> tuple[SourceInfo, ...]:
    """The files that a cluster of a store was read from, in the order they were read in."""
    rows = store.frame(
        "SELECT path, format, sha256, bytes, rows_in, rows_loaded, rows_rejected FROM sources "
        "WHERE cluster = $cluster ORDER BY source",
        {"cluster": cluster},
    )
    return tuple(SourceInfo(**row) for row in rows.iter_rows(named=True))


def jobs_csv(path: Path, rows_in: int, rows_loaded: int) -> SourceInfo:
    """A CSV of jobs that was read without a store.

    Args:
        path: the file.
        rows_in: its rows.
        rows_loaded: those that were used; the others count as rejected.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    return SourceInfo(storable(str(path)), "jobs-csv", digest, size, rows_in, rows_loaded, rows_in - rows_loaded)
