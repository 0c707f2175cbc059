"""The decision log of a replay, stored as numbers, since logs of millions of lines are rarely read in full."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

BATCH = 25_000

BACKFILLED = "by a pass of backfill, from behind the head of the queue"
"""The reason of policies whose backfill pass has started a job ahead of others."""


@dataclass(frozen=True)
class DecisionLog:
    """The decision log of one replay, in order.

    Attributes:
        lines: a structured array with ``t`` (seconds), ``what`` and ``reason`` (numbers of `words` and `reasons`),
            ``job`` (its number; negative: the line is about a node), ``gpus``, and ``row`` (for a node's line: its
            number).
        spread: nodes of the job of each line; 0 if on none.
        words: names of decisions.
        reasons: names of reasons.
        jobs: names of the jobs.
        nodes: names of the nodes.
    """

    lines: Any
    spread: NDArray[np.int32]
    words: tuple[str, ...]
    reasons: tuple[str, ...]
    jobs: tuple[str, ...]
    nodes: tuple[str, ...]

    def frame(self, rows: Ints | slice = slice(None)) -> pl.DataFrame:
        """Lines as a table: ``t_s``, ``decision``, ``job`` (name), ``gpus``, ``nodes``, ``reason``, ``node``."""
        lines, spread = self.lines[rows], self.spread[rows]
        of_node = lines["job"] < 0
        words, jobs, reasons, nodes = self._names
        return pl.DataFrame(
            {
                "t_s": lines["t"].copy(),
                "decision": _named(words, lines["what"]),
                "job": _named(jobs, np.where(of_node, len(self.jobs), lines["job"])),
                "gpus": lines["gpus"].astype(np.int64),
                "nodes": spread.astype(np.int64),
                "reason": _named(reasons, lines["reason"]),
                "node": _named(nodes, np.where(of_node, lines["row"], len(self.nodes))),
            }
        )

    @cached_property
    def _names(self) -> tuple[pl.Series, ...]:
        """All names, followed by null; built once, as a long log becomes tables part by part."""
        return tuple(
            pl.Series([*names, None], dtype=pl.String) for names in (self.words, self.jobs, self.reasons, self.nodes)
        )

    def backfilled(self) -> tuple[pl.Series, ...]:
        """Whether each job was started for the reason `BACKFILLED`; empty if the policy has no such reason."""
        if BACKFILLED not in self.reasons:
            return ()
        lines = self.lines[self.lines["reason"] == self.reasons.index(BACKFILLED)]
        backfilled_jobs = np.zeros(len(self.jobs), np.bool_)
        backfilled_jobs[lines["job"]] = True
        return (pl.Series("backfilled", backfilled_jobs),)

    def of_jobs(self, numbers: Ints) -> pl.DataFrame:
        """The lines of some jobs as a table."""
        return self.frame(np.flatnonzero(np.isin(self.lines["job"], numbers)))

    def loans(self) -> list[tuple[float, int, bool]]:
        """Second, number of the node, and whether it was lent then or returned, in order of time."""
        lent, back = self.words.index("loan"), self.words.index("return")
        lines = self.lines[np.isin(self.lines["what"], (lent, back))]
        return list(zip(lines["t"].tolist(), lines["row"].tolist(), (lines["what"] == lent).tolist(), strict=True))

    def json_lines(self) -> Iterator[bytes]:
        """The log as JSON lines, in batches; the same bytes for the same seed and input."""
        for begin in range(0, self.lines.size, BATCH):
            yield self.frame(slice(begin, begin + BATCH)).write_ndjson().encode()

    def with_refused(self, replayed: Ints, jobs: tuple[str, ...], refused: Any) -> DecisionLog:
        """The log of a whole workload of which some jobs were refused before the replay.

        Args:
            replayed: numbers of the jobs of this log among all jobs.
            jobs: names of all jobs.
            refused: lines about the others.
        """
        lines = self.lines.copy()
        of_jobs = lines["job"] >= 0
        lines["job"][of_jobs] = replayed[lines["job"][of_jobs]]
        lines = np.concatenate([refused, lines])
        spread = np.concatenate([np.zeros(refused.size, np.int32), self.spread])
        order = np.argsort(lines["t"], kind="stable")
        return dataclasses.replace(self, lines=lines[order], spread=spread[order], jobs=jobs)


def _named(names: pl.Series, numbers: Any) -> pl.Series:
    return names.gather(pl.Series(numbers.astype(np.int64)))
