"""Runs the cells of an experiment, several at a time, and saves each when done.

A finished cell is a small JSON file, written atomically. A rerun of the experiment, after Ctrl-C or a killed worker,
reuses them and does the rest.
"""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuctl.core.errors import GpuctlError, InputError
from gpuctl.core.file_io import read_whole, write_atomically
from gpuctl.replay.experiments import cells as cells_of
from gpuctl.replay.run import compile_for
from gpuctl.spread.engine import LOCAL, Engine
from gpuctl.spread.run import run as spread_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpuctl.replay.experiments.cells import Base, Cell

    Figures = dict[str, Any]

_MOST_BYTES = 1 << 20
FEW_JOBS = 10_000
"""Total jobs of cells below which one process is faster than starting a second."""


class CellFolder:
    """The folder with the figures of finished cells.

    Args:
        folder: created with the first cell if missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Figures | None:
        """The figures of a cell, or None if it is not done; a truncated file counts as not done."""
        place = self._folder / f"{key}.json"
        if not place.is_file():
            return None
        try:
            found = json.loads(read_whole(place, most=_MOST_BYTES, begins=b"{", hint=""))
        except (ValueError, GpuctlError):
            return None
        plain = isinstance(found, dict) and all(isinstance(value, str | int | float | None) for value in found.values())
        return found if plain else None

    def put(self, key: str, figures: Figures) -> None:
        """Save the figures of a cell."""
        text = json.dumps(figures, allow_nan=True).encode()
        self._folder.mkdir(parents=True, exist_ok=True)

        def write(file: BinaryIO) -> None:
            file.write(text)

        write_atomically(self._folder / f"{key}.json", write)


def run(
    base: Base,
    cells: Sequence[Cell],
    folder: CellFolder | None = None,
    *,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> list[Figures]:
    """Replay every cell and return its figures, in the order of `cells`. The result does not depend on `engine`.

    Args:
        base: inputs of all cells.
        cells: what to replay.
        folder: where finished cells are saved and reused; None: nowhere.
        engine: where they run; None: locally, one per processor. Fewer than `FEW_JOBS` jobs use no local processes
            unless it sets their number.
        progress: called with the numbers of finished cells and of all cells.
        notify: called with a line for the user.

    Raises:
        GpuctlError: a cell cannot be replayed, or the engine has no workers; finished cells stay saved.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    digest = base.digest()
    keys = [cells_of.key(digest, cell) for cell in cells]
    done: dict[str, Figures] = {}
    for key in dict.fromkeys(keys):
        found = None if folder is None else folder.get(key)
        if found is not None:
            done[key] = found
    left = {key: cell for key, cell in zip(keys, cells, strict=True) if key not in done}
    say = progress or (lambda _done, _all: None)
    say(len(done), len(set(keys)))
    if done and left and notify is not None:
        notify(f"{len(done):,} of {len(set(keys)):,} cells were already done")
    if left:
        policies = [
            (name, dict(params)) for name, params in sorted({(one.policy, one.params) for one in left.values()})
        ]
        compile_for(base.workload, base.cluster, policies, base.workload.size * len(left), notify=notify, **base.models)
    where = engine or Engine()
    if where.kind == LOCAL and where.processes is None and base.workload.size * len(left) < FEW_JOBS:
        where = replace(where, processes=1)
    spread = spread_on(
        _work,
        (base, digest),
        {key: (key, cell) for key, cell in left.items()},
        where,
        notify or (lambda _text: None),
    )
    for key, figures in spread if left else ():
        done[key] = figures
        if folder is not None:
            folder.put(key, figures)
        say(len(done), len(set(keys)))
    return [done[key] for key in keys]


def _work(shared: tuple[Base, str], task: tuple[str, Cell]) -> Figures:
    """Replay one cell on any worker, with the files that existed when its key was made."""
    base, digest = shared
    key, cell = task
    if cells_of.key(digest, cell) != key:
        raise InputError(
            f"{socket.gethostname()}: files that {cell.policy} or its parameters name are missing or have changed",
            hint="use paths that every worker can read, and do not change the files during the run",
        )
    return cells_of.run(base, cell)
