"""Train neural nets that decide when to submit S, by PyTorch on starts of the past."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.research.chain import look_kernel
from gpuctl.research.chain.nets import OF_COST, Brain, choice_inputs, costs, inputs_now, near, window_inputs
from gpuctl.research.chain.policies import BEFORE, QUANTILES
from gpuctl.research.learn.extra import needed
from gpuctl.research.learn.fitting import Fitted, Training, fit
from gpuctl.research.learn.nets import Net, initial, scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.research.chain.policies import Lessons
    from gpuctl.research.learn.nets import Layer

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Progress = Callable[[str, int, int], None]

EXPERTS = 5
"""Experts of ``moe``; each first trains on its fifth of the past, in order of time, like the authors' twenty."""

ROUNDS = 4
"""Rounds of ``dqn``: each learns the cost of waiting from the outcomes of the previous round's choices."""

MOST_COST = 12.0
"""Hours at which ``dqn`` cuts a cost, in the mean of interruption and overlap: above it the choice is clear."""

BAGS = 5
"""Nets of ``dqn`` and ``pg``, from different weights and orders; their mean counts."""

SOFT_H = 0.5
"""While ``pg`` learns, S is submitted at random: the logit is (lead - time left) / this."""

WIDTH, HIDDEN = 8, 16
"""Width of the hidden layer of each expert of ``moe``, and of ``dqn`` and ``pg``."""

_SEED = 1
_OF_QUANTILES = Training(epochs=40, batch=256, rate=1e-3, decay=0.1, patience=5, seed=_SEED)
_OF_COSTS = Training(epochs=12, batch=256, rate=1e-3, decay=0.5, patience=4, seed=_SEED)
_OF_LEADS = Training(epochs=80, batch=64, rate=1e-3, decay=0.5, patience=12, seed=_SEED)
"""These, and the sizes of the nets, were chosen on Lonestar6's January and February, before March was used."""

_HELD, _GAP = 0.2, 30
"""Share of starts, the last ones, held out for early stopping; starts left out before them: five days, or a tenth of a
short log."""

FEWEST = 30
"""Fewest starts with a wait for training."""


def windows(learnt: Lessons) -> Floats:
    """The hours up to each hourly look of the past [looks, BEFORE + 1, FEATURES]."""
    each = np.split(learnt.rows, np.flatnonzero(np.diff(learnt.start)) + 1)
    found = []
    for rows, before in zip(each, learnt.before, strict=True):
        whole = np.concatenate([before, rows])
        view = np.lib.stride_tricks.sliding_window_view(whole, BEFORE + 1, axis=0)
        found.append(view.transpose(0, 2, 1))
    return np.concatenate(found)


def train(
    name: str, learnt: Lessons, cost: float, *, checkpoint: Path | None = None, progress: Progress = lambda *_: None
) -> Brain:
    """Train a net on starts of the past; the same starts give the same net.

    Args:
        name: one of `NETS`.
        learnt: the starts, with forecasts; for ``transformer`` also the hours before.
        cost: cost of an hour of interruption, in hours of overlap.
        checkpoint: folder to save the training in and resume it from; None: none.
        progress: called with the current step, the amount done and the total.

    Raises:
        DependencyError: PyTorch is not installed.
        InputError: there is too little training data, or the folder holds another training.
    """
    needed("torch", f"training {name}")
    begin = time.process_time()
    work = _Work(name, learnt, cost, checkpoint, progress)
    starts = np.unique(learnt.start[work.some]).size
    if starts < FEWEST or not (work.early[work.some].any() and work.held[work.some].any()):
        raise InputError(
            f"S would have to wait at {starts} starts of the past, too few for {name}",
            hint="use a longer log, or a policy that needs less data: newsvendor, plan",
        )
    found = {"dqn": _dqn, "pg": _pg, "transformer": _transformer, "moe": _moe}[name](work)
    took = max(time.process_time() - begin, found.cpu_s)
    return Brain(name, found.net, cost if name in OF_COST else None, found.curve, took)


@dataclass(frozen=True)
class _Task:
    """A fitting task: a loss, arrays of equal length, and the rows that are early and held out."""

    loss: Callable[..., Any]
    arrays: list[NDArray[Any]]
    early: NDArray[np.bool_]
    held: NDArray[np.bool_]


class _Work:
    """Inputs of a training: rows of the past, the held-out ones, and the checkpoint."""

    def __init__(self, name: str, learnt: Lessons, cost: float, checkpoint: Path | None, progress: Progress) -> None:
        self.name, self.learnt, self.cost, self.checkpoint, self.progress = name, learnt, cost, checkpoint, progress
        planned = learnt.rows[:, look_kernel.PLANNED] > 0
        self.some = planned & near(learnt.rows, learnt.left_h) if name == "dqn" else planned
        last = int(learnt.start[-1]) + 1
        self.held = learnt.start >= last * (1 - _HELD)
        self.early = learnt.start < last * (1 - _HELD) - min(_GAP, last // 10)

    def fit(self, stage: str, net: Net, task: _Task, how: Training) -> Fitted:
        """Fit to the early rows until the held-out loss stops falling; then fit to all rows for as many epochs."""
        data, held = ([each[some] for each in task.arrays] for some in (task.early, task.held))
        trial = self.fit_once(f"{stage}_trial", net, replace(task, arrays=data), how, held)
        epochs = 1 + int(np.argmin([row["held_loss"] for row in trial.curve]))
        whole = self.fit_once(stage, net, task, replace(how, epochs=epochs))
        return Fitted(whole.net, trial.curve, trial.cpu_s + whole.cpu_s)

    def fit_once(self, stage: str, net: Net, task: _Task, how: Training, held: Sequence[NDArray[Any]] = ()) -> Fitted:
        """Fit to all rows of a task."""
        checkpoint = None if self.checkpoint is None else self.checkpoint / stage
        return fit(
            net, task.arrays, held, task.loss, how, checkpoint=checkpoint,
            progress=lambda k, n: self.progress(f"{self.name}: {stage}", k, n),
        )  # fmt: skip

    def task(self, loss: Callable[..., Any], *arrays: NDArray[Any]) -> _Task:
        """The task for the looks in `some`."""
        return _Task(loss, list(arrays), self.early[self.some], self.held[self.some])


def _pinball(module: Any, x: Any, y: Any) -> Any:
    import torch

    q = torch.tensor(QUANTILES)
    off = y[:, None] - module(x)
    return torch.maximum(q * off, (q - 1) * off).mean()


def _share_of_plan(learnt: Lessons, some: NDArray[np.bool_]) -> Floats:
    found: Floats = learnt.waits_h[some] / learnt.rows[some, look_kernel.PLANNED]
    return found


def _linear(outputs: int) -> dict[str, Any]:
    return {"kind": "linear", "outputs": outputs}


_RELU = {"kind": "relu"}


def _transformer(work: _Work) -> Fitted:
    learnt, some = work.learnt, work.some
    x = window_inputs(learnt.rows[some], learnt.forecasts[some], windows(learnt)[some]).astype(np.float32)
    layers: list[Layer] = [
        {"kind": "scale"}, _linear(16), {"kind": "encoder", "heads": 2, "hidden": 32},
        {"kind": "encoder", "heads": 2, "hidden": 32}, {"kind": "flatten"}, _linear(len(QUANTILES)),
    ]  # fmt: skip
    net = initial(x.shape[1:], layers, _SEED, **scaled(x))
    how = replace(_OF_QUANTILES, epochs=16)
    return work.fit("attention", net, work.task(_pinball, x, _share_of_plan(learnt, some)), how)


def _moe(work: _Work) -> Fitted:
    learnt, some = work.learnt, work.some
    x, y = inputs_now(learnt.rows[some], learnt.forecasts[some]), _share_of_plan(learnt, some)
    scale = scaled(x)
    expert: list[Layer] = [_linear(WIDTH), _RELU, _linear(len(QUANTILES))]
    layers: list[Layer] = [
        {"kind": "scale"},
        {"kind": "mixture", "experts": [expert] * EXPERTS, "gate": [_linear(EXPERTS)]},
    ]
    whole = initial(x.shape[1:], layers, _SEED, **scale)
    task, took = work.task(_pinball, x, y), 0.0
    of = np.minimum(learnt.start[some] * EXPERTS // (int(learnt.start[-1]) + 1), EXPERTS - 1)
    for k in range(EXPERTS):
        own = of == k
        if own.sum() < HIDDEN * WIDTH:
            continue
        part = replace(task, arrays=[x[own], y[own]])
        found = work.fit_once(f"expert_{k}", _bag(whole, k), part, replace(_OF_QUANTILES, epochs=4))
        took += found.cpu_s
        whole = _with_bag(whole, k, found.net)
    found = work.fit("mixture", whole, task, _OF_QUANTILES)
    return Fitted(found.net, found.curve, found.cpu_s + took)


def _bagged(inputs: tuple[int, ...], outputs: int, scale: dict[str, NDArray[np.float32]]) -> Net:
    """`BAGS` small nets with averaged output: a mixture whose gate is always 0."""
    one: list[Layer] = [_linear(HIDDEN), _RELU, _linear(outputs)]
    layers: list[Layer] = [{"kind": "scale"}, {"kind": "mixture", "experts": [one] * BAGS, "gate": [_linear(BAGS)]}]
    net = initial(inputs, layers, _SEED, **scale)
    return net.with_weights(net.weights | {"1.gate.0.weight": np.zeros((BAGS, *inputs), np.float32)})


def _bag(net: Net, k: int) -> Net:
    """One member of a net of `_bagged`."""
    prefix = f"1.experts.{k}."
    weights = {name: w for name, w in net.weights.items() if name.startswith("0.")}
    for name, w in net.weights.items():
        if name.startswith(prefix):
            layer, rest = name.removeprefix(prefix).split(".")
            weights[f"{int(layer) + 1}.{rest}"] = w
    return Net(net.inputs, ({"kind": "scale"}, *net.layers[1]["experts"][k]), weights)


def _with_bag(net: Net, k: int, bag: Net) -> Net:
    """A net of `_bagged` with one member replaced."""
    weights = dict(net.weights)
    for name, w in bag.weights.items():
        layer, rest = name.split(".")
        if layer != "0":
            weights[f"1.experts.{k}.{int(layer) - 1}.{rest}"] = w
    return net.with_weights(weights)


def _each_bag(work: _Work, stage: str, net: Net, task: _Task, how: Training) -> Fitted:
    """Fit each member of a net of `_bagged`."""
    curve, took = [], 0.0
    for k in range(BAGS):
        one = work.fit(f"{stage}_{k + 1}", _bag(net, k), task, replace(how, seed=_SEED + k))
        net = _with_bag(net, k, one.net)
        curve += [{"net": k + 1, **row} for row in one.curve]
        took += one.cpu_s
    return Fitted(net, curve, took)


def _dqn(work: _Work) -> Fitted:
    """Fit costs in rounds: of submitting now, as simulated; of waiting, by the previous round's later choices."""
    learnt, some, cost = work.learnt, work.some, work.cost
    unit = 2 / (1 + cost)
    x = choice_inputs(learnt.rows[some], learnt.forecasts[some], learnt.left_h[some])
    now = np.minimum(unit * costs(learnt.waits_h, learnt.left_h, cost)[some], MOST_COST)
    end = np.minimum(unit * cost * learnt.end_h, MOST_COST)
    start = learnt.start[some]
    net = _bagged(x.shape[1:], 2, scaled(x))

    def loss(module: Any, x: Any, y: Any) -> Any:
        import torch

        return torch.square(module(x) - y).mean()

    submit = np.zeros(start.size, bool)
    curve, took = [], 0.0
    for k in range(ROUNDS):
        y = np.column_stack([now, came(submit, now, end, start)])
        found = _each_bag(work, f"round_{k + 1}", net, work.task(loss, x, y), _OF_COSTS)
        net = found.net
        curve += [{"round": k + 1, **row} for row in found.curve]
        took += found.cpu_s
        value = net(x)
        submit = value[:, 0] <= value[:, 1]
    return Fitted(net, curve, took)


def came(submit: NDArray[np.bool_], now: Floats, end: Floats, start: Ints) -> Floats:
    """Cost of waiting at each look: the cost at the next look that submits S, or at P's end.

    Args:
        submit: whether S is submitted, by look.
        now: cost of submitting, by look.
        end: cost of submitting at P's end, by start.
        start: start of each look, ascending.
    """
    found = np.empty(now.size)
    after, of = 0.0, -1
    for k in range(now.size - 1, -1, -1):
        if start[k] != of:
            of = start[k]
            after = end[of]
        found[k] = after
        if submit[k]:
            after = now[k]
    return found


def _pg(work: _Work) -> Fitted:
    """Fit by the exact gradient of the expected cost: all outcomes are known, so nothing is sampled.

    The lead is a share of the planned wait. An hourly look represents the half hours before and after it.
    """
    learnt, some, cost = work.learnt, work.some, work.cost
    unit = 2 / (1 + cost)
    x = inputs_now(learnt.rows[some], learnt.forecasts[some])
    start, place, count = np.unique(learnt.start[some], return_inverse=True, return_counts=True)
    column = np.arange(place.size) - np.repeat(np.cumsum(count) - count, count)

    def by_start(values: NDArray[Any]) -> NDArray[Any]:
        found = np.zeros((start.size, int(count.max()), *values.shape[1:]), values.dtype)
        found[place, column] = values
        return found

    arrays = [
        by_start(x), by_start(unit * costs(learnt.waits_h, learnt.left_h, cost)[some]),
        by_start(np.ones(x.shape[0], bool)), by_start(learnt.rows[some, look_kernel.PLANNED]),
        by_start(learnt.left_h[some] - 0.5), unit * cost * learnt.end_h[start],
    ]  # fmt: skip
    last = np.flatnonzero(some)[np.cumsum(count) - 1]
    net = _bagged(x.shape[1:], 1, scaled(x))
    task = _Task(_expected_cost, arrays, work.early[last], work.held[last])
    return _each_bag(work, "lead", net, task, _OF_LEADS)


def _expected_cost(module: Any, *arrays: Any) -> Any:
    """Expected cost of starts, with looks as rows, missing looks last."""
    import torch

    x, now, there, planned, left, end = arrays
    rows = x.reshape(-1, x.shape[-1])
    lead = planned * torch.sigmoid(module(rows).reshape(planned.shape))
    logit = (lead - left) / SOFT_H
    nothing = torch.zeros(())
    stay = torch.where(there, torch.nn.functional.logsigmoid(-logit), nothing)
    stays = torch.cumsum(stay, dim=1)
    chance = torch.where(there, torch.exp(stays - stay) * torch.sigmoid(logit), nothing)
    return ((chance * now).sum(dim=1) + torch.exp(stays[:, -1]) * end).mean()
