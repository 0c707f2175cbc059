"""Remembers which jobs of one source have been read, in little memory, and on which lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

REPEAT = 1_000_000
"""Attempts are inserted as number 0; a job's further ones as this and their own number in the file."""


class Seen:
    """The jobs of one source, as 64-bit hashes: a false "seen before" is put right by whoever settles the attempts."""

    def __init__(self) -> None:
        self._count = 0
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []
        """Sorted hashes and the numbers of their records; each run at least twice as long as the next."""
        self._lines: list[np.ndarray | range] = []

    def add(self, jobs: pl.Series, lines: pl.Series) -> pl.Series:
        """Take the next records; return 0 for the first one of each job and `REPEAT` + number for every other one.

        Args:
            jobs: the ids.
            lines: the lines they start on.
        """
        import numpy as np
        import polars as pl

        hashes = jobs.hash(seed=0).to_numpy()
        numbers = np.arange(self._count, self._count + len(hashes), dtype=np.uint32)
        order = np.argsort(hashes, kind="stable")
        ranked = hashes[order]
        again = np.zeros(len(hashes), dtype=bool)
        again[order[1:]] = ranked[1:] == ranked[:-1]
        for run, _ in self._runs:
            at = np.minimum(np.searchsorted(run, ranked), len(run) - 1)
            again[order] |= run[at] == ranked
        self._keep(ranked, numbers[order])
        self._count += len(hashes)
        self._lines.append(_compact(lines.to_numpy()))
        return pl.Series(np.where(again, REPEAT + numbers.astype(np.int64), 0), dtype=pl.Int32)

    def lines(self, jobs: pl.Series, attempts: pl.Series) -> list[int]:
        """Return the lines of records, by job and the number that `add` gave them."""
        import numpy as np

        hashes = jobs.hash(seed=0).to_numpy()
        given = attempts.to_numpy().astype(np.int64)
        first = np.full(len(hashes), np.iinfo(np.int64).max)
        for run, kept in self._runs:
            # of equal hashes the earliest record stands first
            at = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            first = np.minimum(first, np.where(run[at] == hashes, kept[at], first))
        numbers = np.where(given == 0, first, given - REPEAT)
        starts = np.cumsum([0, *map(len, self._lines)])
        which = np.searchsorted(starts, numbers, side="right") - 1
        return [int(self._lines[w][n - starts[w]]) for w, n in zip(which, numbers, strict=True)]

    def _keep(self, hashes: np.ndarray, numbers: np.ndarray) -> None:
        import numpy as np

        while self._runs and len(self._runs[-1][0]) < 2 * len(hashes):
            older, theirs = self._runs.pop()
            hashes, numbers = np.concatenate([older, hashes]), np.concatenate([theirs, numbers])
            order = np.argsort(hashes, kind="stable")
            hashes, numbers = hashes[order], numbers[order]
        self._runs.append((hashes, numbers))


def _compact(lines: np.ndarray) -> np.ndarray | range:
    import numpy as np

    return range(int(lines[0]), int(lines[-1]) + 1) if np.all(np.diff(lines) == 1) else lines
