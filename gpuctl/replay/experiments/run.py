"""Runs the cells of an experiment, several at a time, and keeps every one that is done.

A cell that is done is a small JSON file of its own, written whole or not at all. The same experiment run again, after
Ctrl-C or a killed worker, finds them and does the rest.
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
"""Jobs of all cells together that one process has replayed before a second one has started."""


class CellFolder:
    """The folder in which the figures of cells that are done are kept.

    Args:
        folder: made with the first cell where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Figures | None:
        """The figures of a cell, or None where it is not done; a file that is not whole counts as not done."""
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
        """Keep the figures of a cell."""
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
        base: what all cells are made from.
        cells: what to replay.
        folder: where cells are kept as they are done, and looked for; None: nowhere.
        engine: where they run; None: here, one for each processor. Fewer than `FEW_JOBS` jobs need no processes here
            unless it says how many.
        progress: called with how many cells are done, of how many.
        notify: called with a line for the user.

    Raises:
        GpuctlError: a cell cannot be replayed, or the engine has no workers; cells that are done stay kept.
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
    """Replay one cell, wherever that is, with the files that were there when its key was made."""
    base, digest = shared
    key, cell = task
    if cells_of.key(digest, cell) != key:
        raise InputError(
            f"{socket.gethostname()}: files that {cell.policy} or its parameters name are not there, or have changed",
            hint="name them by paths that every worker sees, and leave them as they are meanwhile",
        )
    return cells_of.run(base, cell)
