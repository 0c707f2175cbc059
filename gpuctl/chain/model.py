"""A saved model of the wait of a successor: trained on a log, asked about a queue of now."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl import __version__
from gpuctl.chain import look_kernel, policies
from gpuctl.chain.evaluate import EVERY_S, FEWEST_STARTS, Asked, Trial
from gpuctl.chain.log import check_size
from gpuctl.chain.past import KINDS_MIN, PAST, POOL, Drawn
from gpuctl.chain.policies import QUANTILES
from gpuctl.core.errors import InputError
from gpuctl.predictors import card, trees

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.chain.log import Log

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

KIND = "chain"
_RATIOS, _POOL, _USERS, _PAST, _COUNT = "ratios.npy", "pool.npy", "users.npy", "past.npy", "count.npy"
_HINT = "train the model again, or ask its author for the whole folder"


@dataclass(frozen=True)
class Model:
    """What was learnt of a cluster.

    Attributes:
        size: nodes of the cluster.
        ratios: quantiles of wait / planned wait [quantiles].
        trees: `policies.BAGS` for each quantile; empty: there was too little to learn from.
        pool: run times of all jobs, as shares of their limits, by kind [kinds, POOL].
        users: digests of users, in order [users].
        past: shares of each one's last jobs [users, PAST].
        count: how many these are [users].
    """

    size: int
    ratios: Floats
    trees: tuple[tuple[trees.Trees, ...], ...]
    pool: Floats
    users: Ints
    past: Floats
    count: Ints

    def quantiles_h(self, rows: Floats, forecasts: Floats) -> Floats:
        """Quantiles of the wait in hours, `QUANTILES` of them, none below the one before [looks, quantiles]."""
        planned = rows[:, look_kernel.PLANNED, None]
        if not self.trees:
            return self.ratios * planned
        found = [
            policies.wait_by(rows, forecasts, lambda seen, bags=bags: [bag.answer(seen) for bag in bags])  # type: ignore[misc]
            for bags in self.trees
        ]
        return np.maximum.accumulate(np.column_stack(found), axis=1)

    def drawn(self, users: Sequence[str], limit_min: Ints) -> Drawn:
        """What run times of these jobs are drawn from; those without a user's name from all users' alone."""
        past, count = np.zeros((len(users), PAST)), np.zeros(len(users), np.int64)
        for k, user in enumerate(users):
            at = int(np.searchsorted(self.users, digest(user)))
            if user and at < self.users.size and self.users[at] == digest(user):
                past[k], count[k] = self.past[at], self.count[at]
        return Drawn(past, count, np.searchsorted(KINDS_MIN, limit_min), self.pool)


def digest(user: str) -> int:
    """A number for a user's name, so that a model tells no names."""
    return int.from_bytes(hashlib.sha256(user.encode("utf-8", "surrogateescape")).digest()[:7], "big")


def train(
    log: Log, asked: Asked, tell: Callable[[str, int, int], None] = lambda *_: None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Learn from all starts of a log.

    Args:
        log: the trace.
        asked: of its fields `size`, `pair`, `from_s` and `warm_up_s` count.
        tell: called with what is under way, how much of it is done, of how much.

    Returns:
        what the card says, and the files, for `predictors.card.save_folder`.

    Raises:
        InputError: jobs that are larger than the cluster, or too few starts.
    """
    check_size(log, asked.size)
    begins = range(asked.from_s, int(log.submit_s[-1]) - asked.arrivals_s + 1, EVERY_S)
    if len(begins) < FEWEST_STARTS:
        raise InputError(
            f"{log.name}: {len(begins)} starts to learn from, fewer than {FEWEST_STARTS}",
            hint="a log of two weeks or more, or a shorter --warm-up",
        )
    trial = Trial(log, asked)
    learnt = policies.lessons(map(trial.start, begins), True, lambda done: tell("simulating", done, len(begins)))
    files: dict[str, Any] = {_RATIOS: np.array([policies.planned_ratio(learnt, q) for q in QUANTILES])}
    files |= _past_files(trial)
    kept = policies.enough(learnt)
    for k, q in enumerate(QUANTILES if kept else ()):
        tell("growing trees", k, len(QUANTILES))
        for bag, booster in enumerate(policies.grown(learnt, q)):
            files[f"wait_{k}_{bag}.txt"] = trees.strip(booster.model_to_string())
    about = {
        "title": "When to submit the successor of a job",
        "what": "Quantiles of the wait of a job, from the queue, the running jobs and a plan of backfill.",
        "cluster": {"nodes": asked.size},
        "job": {"nodes": asked.pair.nodes, "limit_min": asked.pair.limit_min},
        "quantiles": list(QUANTILES),
        "features": list(policies.INPUTS),
        "trees": policies.BAGS if kept else 0,
        "trained_on": {
            "jobs": len(log.ids), "starts": len(begins), "looks": int(learnt.waits_h.size),
            "from": _clock(begins[0]), "until": _clock(int(log.submit_s[-1])),
        },
    }  # fmt: skip
    return about, files


def _clock(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _past_files(trial: Trial) -> dict[str, Any]:
    log = trial.log
    users, last = np.unique(log.user[::-1], return_index=True)
    kept = users >= 0
    drawn = trial.history.at(int(log.end_s.max()), log.user.size - 1 - last[kept])
    digests = np.array([digest(log.users[user]) for user in users[kept].tolist()], np.int64)
    order = np.argsort(digests)
    return {
        _USERS: digests[order], _PAST: drawn.past[order].reshape(-1, PAST), _COUNT: drawn.count[order],
        _POOL: drawn.pool,
    }  # fmt: skip


def load(path: Path) -> Model:
    """Load a saved model, checking all that it says.

    Raises:
        InputError: it is none, or something in it is not what it should be.
    """
    folder = card.load_folder(path, KIND)
    size, bags = folder.card.get("cluster", {}).get("nodes"), folder.card.get("trees")
    if (
        not isinstance(size, int)
        or not 1 <= size <= 10**6
        or bags not in (0, policies.BAGS)
        or folder.card.get("quantiles") != list(QUANTILES)
    ):
        raise InputError(
            f"cluster, trees and quantiles are not those of a model that gpuctl {__version__} reads",
            path=str(path / card.CARD), hint=_HINT,
        )  # fmt: skip
    ratios, pool = folder.array(_RATIOS, "float64"), folder.array(_POOL, "float64", 2)
    users, past, count = folder.array(_USERS, "int64"), folder.array(_PAST, "float64", 2), folder.array(_COUNT, "int64")
    sound = (
        ratios.shape == (len(QUANTILES),) and _between(ratios, 0, 100) and (np.diff(ratios) >= 0).all()
        and pool.shape == (len(KINDS_MIN) + 1, POOL) and _between(pool, 0, 1) and (np.diff(pool, axis=1) >= 0).all()
        and past.shape == (users.size, PAST) and _between(past, 0, 1) and count.shape == users.shape
        and _between(count, 0, PAST) and (np.diff(users) > 0).all()
    )  # fmt: skip
    if not sound:
        raise InputError("an array has a shape or values that no model has", path=str(path), hint=_HINT)
    grown = tuple(
        tuple(
            trees.parse(folder.text(f"wait_{k}_{bag}.txt"), policies.INPUTS, str(path / f"wait_{k}_{bag}.txt"))
            for bag in range(bags)
        )
        for k in range(len(QUANTILES) if bags else 0)
    )
    return Model(size, ratios, grown, pool, users, past, count)


def _between(values: NDArray[Any], low: float, high: float) -> bool:
    return bool((np.isfinite(values) & (values >= low) & (values <= high)).all())
