"""Fits a net to data by PyTorch: Adam on batches, the epoch that does best on held-out data is selected; resumable."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.research.learn.checkpoints import Checkpoint, digest_of
from gpuctl.research.learn.saved import flat, unflat
from gpuctl.research.learn.torch_nets import module_of, torch_of, weights_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.research.learn.nets import Net

    Arrays = Sequence[NDArray[Any]]
    Loss = Callable[..., Any]


@dataclass(frozen=True)
class Training:
    """Settings of a fit.

    Attributes:
        epochs: maximum passes through the data.
        batch: rows per batch.
        rate: learning rate of Adam.
        decay: of weights (L2), as AdamW has it.
        patience: epochs without a better loss on held-out data before it ends.
        seed: of the order of rows.
    """

    epochs: int = 30
    batch: int = 256
    rate: float = 1e-3
    decay: float = 1e-4
    patience: int = 6
    seed: int = 1


@dataclass(frozen=True)
class Fitted:
    """Result of a fit.

    Attributes:
        net: net with the weights of the best epoch.
        curve: training curve, one row per epoch (or generation, or round).
        cpu_s: seconds of CPU, including those before a stop.
    """

    net: Net
    curve: list[dict[str, float]]
    cpu_s: float


def fit(
    net: Net,
    data: Arrays,
    held: Arrays,
    loss: Loss,
    how: Training,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Fitted:
    """Fit a net; the same data, settings and seed give the same weights on a CPU, after any number of stops.

    Args:
        net: net with the initial weights.
        data: arrays with as many rows each; a batch is the same rows of all.
        held: held-out data of the same form; the epoch with the least loss on it is selected; empty: the last epoch.
        loss: PyTorch function of the module and the tensors of a batch; returns the mean over its rows.
        how: settings of the fit.
        checkpoint: folder to save the state in and resume from; None: none.
        progress: called with the epochs done and the total.

    Raises:
        DependencyError: PyTorch is not installed.
        InputError: the folder holds the state of another training.
    """
    begin = time.process_time()
    torch = torch_of("training a neural net")
    run = _Run(torch, net, how)
    place = Checkpoint(checkpoint, digest_of(_settings(net, how), [flat(net.weights), *data, *held]))
    found = place.load()
    if found is not None:
        with place.restoring():
            run.restore(*found)
    before = run.cpu_s
    rows, tested = _tensors(torch, data), _tensors(torch, held)
    while not run.over:
        progress(len(run.curve), how.epochs)
        run.epoch(rows, tested, loss)
        run.cpu_s = before + time.process_time() - begin
        place.save(*run.state(), now=run.over)
    return Fitted(net.with_weights(run.best), run.curve, before + time.process_time() - begin)


def _settings(net: Net, how: Training) -> dict[str, Any]:
    return {"layers": list(net.layers), "inputs": list(net.inputs), **asdict(how)}


def _tensors(torch: Any, arrays: Arrays) -> list[Any]:
    kinds = {"f": np.float32, "i": np.int64, "b": np.bool_}
    return [torch.from_numpy(np.array(each, kinds[each.dtype.kind])) for each in arrays]


class _Run:
    """A training in progress: module, optimizer, the best weights so far, the curve."""

    def __init__(self, torch: Any, net: Net, how: Training) -> None:
        self.torch, self.net, self.how = torch, net, how
        self.module = module_of(net)
        self.trained = [each for each in self.module.parameters() if each.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=how.rate, weight_decay=how.decay)
        self.best = dict(net.weights)
        self.curve: list[dict[str, float]] = []
        self.cpu_s = 0.0

    @property
    def over(self) -> bool:
        losses = [row["held_loss"] for row in self.curve if "held_loss" in row]
        since = len(losses) - 1 - int(np.argmin(losses)) if losses else 0
        return len(self.curve) >= self.how.epochs or since >= self.how.patience

    def epoch(self, rows: list[Any], tested: list[Any], loss: Loss) -> None:
        """Make one pass through the data in random order, and evaluate the held-out rows."""
        torch, size = self.torch, self.how.batch
        number = len(self.curve)
        order = np.random.Generator(np.random.PCG64([self.how.seed, number])).permutation(len(rows[0]))
        self.module.train()
        total = 0.0
        for k in range(0, order.size, size):
            some = torch.from_numpy(order[k : k + size])
            self.optimizer.zero_grad()
            found = loss(self.module, *(each[some] for each in rows))
            found.backward()
            torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
            self.optimizer.step()
            total += float(found.detach()) * len(some)
        row = {"epoch": number + 1, "loss": total / order.size}
        if tested:
            row["held_loss"] = self._held(tested, loss)
        if not tested or row["held_loss"] < min((each["held_loss"] for each in self.curve), default=np.inf):
            self.best = weights_of(self.module, self.net)
        self.curve.append(row)

    def _held(self, tested: list[Any], loss: Loss) -> float:
        self.module.eval()
        with self.torch.no_grad():
            parts = [
                float(loss(self.module, *(each[k : k + 1024] for each in tested))) * len(tested[0][k : k + 1024])
                for k in range(0, len(tested[0]), 1024)
            ]
        return sum(parts) / len(tested[0])

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the state needed to resume."""
        moments = self.optimizer.state_dict()["state"]
        arrays = {"weights": flat(weights_of(self.module, self.net)), "best": flat(self.best)}
        for name in ("exp_avg", "exp_avg_sq"):
            arrays[name] = np.concatenate([moments[k][name].numpy().ravel() for k in sorted(moments)])
        steps = float(moments[0]["step"]) if moments else 0.0
        return {"curve": self.curve, "cpu_s": self.cpu_s, "steps": steps}, arrays

    def restore(self, state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Resume from a saved state."""
        torch, net = self.torch, self.net
        weights, self.best = (
            unflat(arrays[name], net.inputs, list(net.layers)) for name in ("weights", "best")
        )  # fmt: skip
        self.module.load_state_dict({name: torch.from_numpy(w.copy()) for name, w in weights.items()})
        at, moments = 0, {}
        for k, each in enumerate(self.trained):
            part = slice(at, at + each.numel())
            moments[k] = {
                name: torch.from_numpy(arrays[name][part].reshape(each.shape).copy())
                for name in ("exp_avg", "exp_avg_sq")
            } | {"step": torch.tensor(state["steps"])}
            at += each.numel()
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self.curve, self.cpu_s = state["curve"], state["cpu_s"]
