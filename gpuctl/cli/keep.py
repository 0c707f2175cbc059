"""``--keep NAME``: the result of a command, kept in a trace store for ``gpuctl report``."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.core.storable_text import storable
from gpuctl.services.inputs import is_jobs_csv, is_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import typer

    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import Analysis

LONGEST = 100
"""Characters of a name."""


def keeping_place(name: str | None, paths: Sequence[Path], db: Path | None) -> Path | None:
    """The store that a result is to be kept in; None where none is to be.

    Args:
        name: of ``--keep``.
        paths: what the command reads.
        db: of ``--db``.

    Raises:
        UsageError: the name is none, no store is named, or it cannot be written.
    """
    if name is None:
        return None
    if not name.strip() or len(name) > LONGEST or not name.isprintable():
        raise UsageError(f"--keep {name!r}: expected a name of 1 to {LONGEST} printable characters")
    stores = [path for path in paths if is_store(path)]
    if db is None and not stores:
        raise UsageError("--keep: there is not a trace store to keep it in", hint="add --db FILE")
    from gpuctl.reports.export.files import check_places

    place = db or stores[0]
    check_places({"--keep": place}, {})
    if place.exists() and not is_store(place):
        raise UsageError(f"--keep: {place} is not a trace store", hint="give another file with --db")
    if place.exists() and not os.access(place, os.W_OK):
        raise UsageError(f"--keep: {place} cannot be written to", hint="give another store with --db")
    return place


def traces_db(paths: Sequence[Path], db: Path | None, name: str | None) -> Path | None:
    """The store that logs are read into: none for a CSV of jobs, whose result alone is kept in that of ``--db``."""
    return None if name is not None and any(is_jobs_csv(path) for path in paths) else db


def keep(result: Analysis, name: str | None, place: Path | None, context: typer.Context, given: Settings) -> None:
    """Keep a result in a store; nothing where ``place`` is None.

    Args:
        result: what is kept, all of its tables.
        name: under which it is kept.
        place: the store, brought up to date or made where it is absent.
        context: of the command that made it.
        given: the global options.

    Raises:
        StoreError: the store is locked or cannot be written.
    """
    if place is None or name is None:
        return
    from gpuctl.reports.export.document import document
    from gpuctl.store.database import Store
    from gpuctl.store.saved_results import SavedResult
    from gpuctl.store.saved_results import keep as put

    kind = context.command_path.partition(" ")[2]
    text = "".join(document(result, result.tables, ())).encode()
    # arguments that are no UTF-8 hold lone surrogates
    command = storable(result.command)
    about = SavedResult(name, kind, datetime.now(UTC), result.version, command, len(text))
    with Store(place, write=True) as store:
        put(store, about, text)
    given.tell(f"kept as {name!r} in {place}")
