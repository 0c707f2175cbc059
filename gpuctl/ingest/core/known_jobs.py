"""Remembers which jobs of one source have been read, in little memory, and on which lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

REPEAT = 1_000_000
"""Attempts are inserted as number 0; a job's further ones as this and their own number in the file."""
RUN = 1_000_000
"""Keys that are sorted together at most."""


class KnownJobs:
    """The jobs of one source, as numbers of 64 bits.

    A false "seen before" does no harm: the code that settles attempts compares the jobs themselves.
    """

    def __init__(self) -> None:
        self._count = 0
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []
        """Sorted keys and the numbers of their records; of those shorter than `RUN`, each twice as long as the next."""
        self._lines: list[np.ndarray | range] = []

    def add(self, jobs: pl.Series, lines: pl.Series) -> pl.Series:
        """Take the next records; return 0 for the first one of each job and `REPEAT` + number for every other one.

        Args:
            jobs: the ids.
            lines: the lines they start on.
        """
        import numpy as np
        import polars as pl

        keys = _keys(jobs)
        numbers = np.arange(self._count, self._count + len(keys), dtype=np.uint32)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        again = np.zeros(len(keys), dtype=bool)
        again[order[1:]] = ranked[1:] == ranked[:-1]
        for run, _ in self._runs:
            # if ids ascend from record to record, few runs reach into the range of these
            near = slice(np.searchsorted(ranked, run[0]), np.searchsorted(ranked, run[-1], side="right"))
            at = np.minimum(np.searchsorted(run, ranked[near]), len(run) - 1)
            again[order[near]] |= run[at] == ranked[near]
        self._keep(ranked, numbers[order])
        self._count += len(keys)
        self._lines.append(_compact(lines.to_numpy()))
        return pl.Series(np.where(again, REPEAT + numbers.astype(np.int64), 0), dtype=pl.Int32)

    def lines(self, jobs: pl.Series, attempts: pl.Series) -> list[int]:
        """Return the lines of records, by job and the number that `add` gave them."""
        import numpy as np

        keys = _keys(jobs)
        given = attempts.to_numpy().astype(np.int64)
        first = np.full(len(keys), np.iinfo(np.int64).max)
        for run, run_numbers in self._runs:
            # of equal keys the earliest record stands first
            at = np.minimum(np.searchsorted(run, keys), len(run) - 1)
            first = np.minimum(first, np.where(run[at] == keys, run_numbers[at], first))
        numbers = np.where(given == 0, first, given - REPEAT)
        starts = np.cumsum([0, *map(len, self._lines)])
        which = np.searchsorted(starts, numbers, side="right") - 1
        return [int(self._lines[w][n - starts[w]]) for w, n in zip(which, numbers, strict=True)]

    def _keep(self, keys: np.ndarray, numbers: np.ndarray) -> None:
        import numpy as np

        while self._runs and len(self._runs[-1][0]) < min(RUN, 2 * len(keys)):
            older, theirs = self._runs.pop()
            ascending = older[-1] <= keys[0]
            keys, numbers = np.concatenate([older, keys]), np.concatenate([theirs, numbers])
            if not ascending:
                order = np.argsort(keys, kind="stable")
                keys, numbers = keys[order], numbers[order]
        self._runs.append((keys, numbers))


def _keys(jobs: pl.Series) -> np.ndarray:
    """One number per job: ids that are numbers come nearly sorted and stay so, of others it is a hash."""
    import polars as pl

    keys = jobs.cast(pl.UInt64, strict=False)
    return keys.zip_with(keys.is_not_null(), jobs.hash(seed=0)).to_numpy() if keys.null_count() else keys.to_numpy()


def _compact(lines: np.ndarray) -> np.ndarray | range:
    import numpy as np

    return range(int(lines[0]), int(lines[-1]) + 1) if np.all(np.diff(lines) == 1) else lines
