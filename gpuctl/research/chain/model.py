"""A saved model of a successor's wait: trained on a log, applied to the present queue."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl import __version__
from gpuctl.core.errors import InputError
from gpuctl.predictors import card, trees
from gpuctl.research.chain import look_kernel, net_training, nets, policies
from gpuctl.research.chain.log import check_size
from gpuctl.research.chain.nets import Brain
from gpuctl.research.chain.past import KINDS_MIN, PAST, POOL, Drawn
from gpuctl.research.chain.policies import QUANTILES
from gpuctl.research.chain.trial import EVERY_S, FEWEST_STARTS, Evaluation, Trial
from gpuctl.research.learn.saved import files_of, net_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.research.chain.log import Log

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

KIND = "chain"
_RATIOS, _POOL, _USERS, _PAST, _COUNT = "ratios.npy", "pool.npy", "users.npy", "past.npy", "count.npy"
_SECOND = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
_HINT = "train the model again, or ask its author for the complete folder"


@dataclass(frozen=True)
class Model:
    """A trained model of a cluster.

    Attributes:
        size: nodes of the cluster.
        ratios: quantiles of wait / planned wait [quantiles].
        trees: `policies.BAGS` per quantile; empty: too little training data.
        pool: run times of all jobs as shares of their limits, by kind [kinds, POOL].
        users: digests of users, in order [users].
        past: shares of each user's last jobs [users, PAST].
        count: number of these jobs [users].
        brain: net that decides; None: the quantiles decide.
        pair_nodes: nodes of P and of S in training.
        limit_min: limit of both in training, minutes.
        until: last submission in the training data, on the log's clock.
    """

    size: int
    ratios: Floats
    trees: tuple[tuple[trees.Trees, ...], ...]
    pool: Floats
    users: Ints
    past: Floats
    count: Ints
    brain: Brain | None = None
    pair_nodes: int = 1
    limit_min: int = 1
    until: str = ""

    @property
    def cost(self) -> float:
        """The outage cost of its training, or 1."""
        return 1.0 if self.brain is None or self.brain.cost is None else self.brain.cost

    @property
    def priced(self) -> bool:
        """Whether it was trained for only one outage cost."""
        return self.brain is not None and self.brain.cost is not None

    def lead_h(self, rows: Floats, forecasts: Floats, cost: float) -> float:
        """Hours before P's end at which to submit S, by one look.

        Args:
            rows: features of the look [1, FEATURES].
            forecasts: forecasts at the look.
            cost: cost of an hour of interruption, in hours of overlap.

        Raises:
            InputError: the net needs more than one look, or was trained for another cost.
        """
        brain = self.brain
        if brain is not None:
            _check_brain(brain, cost)
            if brain.name == "pg":
                return float(nets.pg_lead(brain.net(nets.inputs_now(rows, forecasts)), rows)[0])
            if brain.name == "dqn":
                return nets.valued_lead(brain.net, rows, forecasts)
        quantiles = self.quantiles_h(rows, forecasts)[0]
        return float(policies.wait_at(quantiles, np.array([cost / (1 + cost)]))[0])

    def rule(self, cost: float) -> policies.Rule:
        """The rule that submits S in a simulation.

        Raises:
            InputError: the net was trained for another cost.
        """
        if self.brain is not None:
            _check_brain(self.brain, cost, one_look=False)
            return nets.rule_of(self.brain, cost)
        share = cost / (1 + cost)
        at = np.array([share])
        return policies.sharp(
            lambda rows, forecasts: np.array(
                [policies.wait_at(each, at)[0] for each in self.quantiles_h(rows, forecasts)]
            ),
            share,
        )

    def quantiles_h(self, rows: Floats, forecasts: Floats) -> Floats:
        """The wait in hours at each of `QUANTILES`, non-decreasing [looks, quantiles]."""
        planned = rows[:, look_kernel.PLANNED, None]
        if self.brain is not None and self.brain.name == "moe":
            return nets.quantiles_h(self.brain.net(nets.inputs_now(rows, forecasts)), rows)
        if not self.trees:
            return self.ratios * planned
        found = [
            policies.wait_by(rows, forecasts, lambda seen, bags=bags: [bag.answer(seen) for bag in bags])  # type: ignore[misc]
            for bags in self.trees
        ]
        return np.maximum.accumulate(np.column_stack(found), axis=1)

    def drawn(self, users: Sequence[str], limit_min: Ints) -> Drawn:
        """Source of these jobs' run times; jobs without a user name draw from all users."""
        past, count = np.zeros((len(users), PAST)), np.zeros(len(users), np.int64)
        for k, user in enumerate(users):
            at = int(np.searchsorted(self.users, digest(user)))
            if user and at < self.users.size and self.users[at] == digest(user):
                past[k], count[k] = self.past[at], self.count[at]
        return Drawn(past, count, np.searchsorted(KINDS_MIN, limit_min), self.pool)


def digest(user: str) -> int:
    """A digest of a user name, so that a model reveals no names."""
    return int.from_bytes(hashlib.sha256(user.encode("utf-8", "surrogateescape")).digest()[:7], "big")


def check_use(model: Model, evaluation: Evaluation) -> None:
    """Check that a model fits the evaluation and was not trained on scored starts.

    Raises:
        InputError: it was trained for another cluster, other jobs or another outage cost, or on scored starts.
    """
    for name, its, wanted in (
        ("nodes of the cluster", model.size, evaluation.size),
        ("nodes of each job", model.pair_nodes, evaluation.pair.nodes),
        ("minutes of limit", model.limit_min, evaluation.pair.limit_min),
    ):
        if its != wanted:
            raise InputError(f"--model was trained for {its:,} {name}, not {wanted:,}", hint="train one for these")
    if model.until > _clock(evaluation.split_s):
        raise InputError(
            f"--model learnt from submissions until {model.until}; starts from {_clock(evaluation.split_s)} on are "
            "scored",
            hint="a later --split, or gpuctl chain train --until",
        )
    model.rule(evaluation.outage_cost)


def check_live(model: Model, cost: float) -> None:
    """Check that a model can advise at this outage cost from one look at a queue.

    Raises:
        InputError: it cannot.
    """
    if model.brain is not None:
        _check_brain(model.brain, cost)


def _check_brain(brain: Brain, cost: float, *, one_look: bool = True) -> None:
    if one_look and brain.name == "transformer":
        raise InputError(
            "a model that looks back a day cannot advise from one look at the queue",
            hint="train another: --policy newsvendor, pg, moe or dqn; chain evaluate --model scores this one",
        )
    if brain.cost is not None and abs(brain.cost - cost) > 1e-9:
        raise InputError(
            f"the model was trained for an outage cost of {brain.cost:g}, not {cost:g}",
            hint=f"--outage-cost {brain.cost:g}, or train one for the other cost",
        )


def train(
    log: Log, evaluation: Evaluation, progress: Callable[[str, int, int], None] = lambda *_: None, *,
    net: str | None = None, checkpoint: Path | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """Learn from all starts of a log.

    Args:
        log: the trace.
        evaluation: uses `size`, `pair`, `from_s`, `split_s` (no submission after it counts), `warm_up_s` and, for a net
            of `nets.OF_COST`, `outage_cost`.
        progress: called with the current step, the amount done and the total.
        net: one of `nets.NETS`, trained to decide; None: none.
        checkpoint: folder to save the net's training in and resume it from.

    Returns:
        card entries and files, for `predictors.card.save_folder`.

    Raises:
        InputError: some jobs are larger than the cluster, or there are too few starts.
    """
    check_size(log, evaluation.size)
    last = min(evaluation.split_s, int(log.submit_s[-1]))
    begins = range(evaluation.from_s, last - evaluation.arrivals_s + 1, EVERY_S)
    if len(begins) < FEWEST_STARTS:
        raise InputError(
            f"{log.name}: {len(begins)} starts to learn from, fewer than {FEWEST_STARTS}",
            hint="a log of two weeks or more, or a shorter --warm-up",
        )
    trial = Trial(log, evaluation)
    learnt = policies.lessons(
        map(trial.start, begins), True, lambda done: progress("simulating", done, len(begins)),
        before=net == "transformer",
    )  # fmt: skip
    files: dict[str, Any] = {_RATIOS: np.array([policies.planned_ratio(learnt, q) for q in QUANTILES])}
    files |= _past_files(trial, last)
    plenty = policies.enough(learnt)
    for k, q in enumerate(QUANTILES if plenty else ()):
        progress("growing trees", k, len(QUANTILES))
        for bag, booster in enumerate(policies.grown(learnt, q)):
            files[f"wait_{k}_{bag}.txt"] = trees.strip(booster.model_to_string())
    about = {
        "title": "When to submit the successor of a job",
        "what": "Quantiles of the wait of a job, from the queue, the running jobs and a backfill plan.",
        "cluster": {"nodes": evaluation.size},
        "job": {"nodes": evaluation.pair.nodes, "limit_min": evaluation.pair.limit_min},
        "quantiles": list(QUANTILES),
        "features": list(policies.INPUTS),
        "trees": policies.BAGS if plenty else 0,
        "trained_on": {
            "jobs": len(log.ids), "starts": len(begins), "looks": int(learnt.waits_h.size),
            "from": _clock(begins[0]), "until": _clock(last),
        },
    }  # fmt: skip
    if net is not None:
        brain = net_training.train(net, learnt, evaluation.outage_cost, checkpoint=checkpoint, progress=progress)
        files |= files_of(brain.net)
        weights = sum(each.size for each in brain.net.weights.values())
        about["net"] = {"name": net, "outage_cost": brain.cost, "weights": weights}
        about["training_curve"] = brain.curve
    return about, files


def _clock(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _past_files(trial: Trial, second: int) -> dict[str, Any]:
    log = trial.log
    users, last = np.unique(log.user[::-1], return_index=True)
    checkpoint = users >= 0
    drawn = trial.history.at(_ends_known_until(log, second), log.user.size - 1 - last[checkpoint])
    digests = np.array([digest(log.users[user]) for user in users[checkpoint].tolist()], np.int64)
    order = np.argsort(digests)
    return {
        _USERS: digests[order], _PAST: drawn.past[order].reshape(-1, PAST), _COUNT: drawn.count[order],
        _POOL: drawn.pool,
    }  # fmt: skip


def _ends_known_until(log: Log, second: int) -> int:
    """The instant up to which ends of jobs are known: infinite unless the log continues after the last submission."""
    return int(log.end_s.max()) if second >= int(log.submit_s[-1]) else second


def _brain_of(folder: card.Folder) -> Brain | None:
    card_net = folder.card.get("net")
    if card_net is None:
        return None
    name, cost = (card_net.get("name"), card_net.get("outage_cost")) if isinstance(card_net, dict) else (None, None)
    priced = isinstance(cost, (int, float)) and not isinstance(cost, bool) and 0.01 <= cost <= 100
    if name not in nets.NETS or priced != (name in nets.OF_COST) or (cost is not None and not priced):
        raise InputError("net: names none that there is", path=str(folder.path / card.CARD), hint=_HINT)
    net = net_of(folder, nets.shape_of(name), nets.outputs_of(name))
    return Brain(name, net, None if cost is None else float(cost), [], 0.0)


def load(path: Path) -> Model:
    """Load a saved model, and check its contents.

    Raises:
        InputError: it is no such model, or a part of it is invalid.
    """
    folder = card.load_folder(path, KIND)
    cluster, bags = folder.card.get("cluster"), folder.card.get("trees")
    size = cluster.get("nodes") if isinstance(cluster, dict) else None
    if (
        not isinstance(size, int)
        or isinstance(size, bool)
        or not isinstance(bags, int)
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
    return Model(size, ratios, grown, pool, users, past, count, _brain_of(folder), *_trained_on(folder))


def _trained_on(folder: card.Folder) -> tuple[int, int, str]:
    """Nodes and limit of the jobs, and the last submission."""
    job, on = folder.card.get("job"), folder.card.get("trained_on")
    nodes, limit = (job.get("nodes"), job.get("limit_min")) if isinstance(job, dict) else (None, None)
    until = on.get("until") if isinstance(on, dict) else None
    if (
        type(nodes) is not int or type(limit) is not int or not 1 <= min(nodes, limit) <= max(nodes, limit) <= 10**9
        or not isinstance(until, str) or not _SECOND.fullmatch(until)
    ):  # fmt: skip
        raise InputError("job and trained_on are not those of a model", path=str(folder.path / card.CARD), hint=_HINT)
    return nodes, limit, until


def _between(values: NDArray[Any], low: float, high: float) -> bool:
    return bool((np.isfinite(values) & (values >= low) & (values <= high)).all())
