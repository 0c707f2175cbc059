"""Makes new stores as copies of an empty one: to make their tables takes as long as to ingest a small log.

The tests make thousands of stores. Each process makes its first one as the program does, and keeps a copy before
anything is in it. `tests/unit/store` and whatever starts an interpreter of its own make all of theirs.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from gpuctl.store import trusted_stores
from gpuctl.store.database import MIGRATIONS, Store
from tests import databases

as_the_program_does = Store._open


def copy(template: Path | None = None) -> None:
    """Have new stores of this process, and of its forks, made so.

    Args:
        template: an empty store; made when it is first wanted unless given.
    """

    def _open(self: Store, *, write: bool, temp_dir: Path | None) -> None:
        if write and self._new:
            with suppress(OSError):  # the program says what is wrong with such a place
                _put(template or _template(), self.path)
                trusted_stores.note(self.path, len(MIGRATIONS))
                self._before, self._new = trusted_stores.seal(self.path), False
        as_the_program_does(self, write=write, temp_dir=temp_dir)

    _set(_open)
    databases.share()


def make() -> None:
    """Have them made as the program does."""
    _set(as_the_program_does)
    databases.make()


def empty(path: Path) -> None:
    """Make an empty store as the program does."""
    opened = Store._open
    _set(as_the_program_does)
    Store(path, write=True).close()
    _set(opened)


def _set(opened: Any) -> None:
    Store._open = opened  # type: ignore[method-assign]


def _put(template: Path, path: Path) -> None:
    """Copy it whole or not at all, and never over another one."""
    part = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        shutil.copyfile(template, part)
        os.link(part, path)
    finally:
        part.unlink(missing_ok=True)


@cache
def _template() -> Path:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, "empty.duckdb")
    empty(path)
    return path
