"""Nets of `gpuctl.research.learn.nets` as PyTorch modules for training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.research.learn.extra import needed
from gpuctl.research.learn.nets import MOST, shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.research.learn.nets import Layer, Net, Shape, Weights


def torch_of(what: str) -> Any:
    """Return PyTorch, on one core and with deterministic algorithms: the same seed gives the same weights.

    Args:
        what: the feature that needs it, as the subject of a sentence.

    Raises:
        DependencyError: it is not installed.
    """
    torch = needed("torch", what)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    return torch


def module_of(net: Net) -> Any:
    """Return a PyTorch module (CPU, float32) with the layers and weights of a net."""
    torch = torch_of("training a neural net")
    module = _sequence(torch, net.inputs, net.layers)
    module.load_state_dict({name: torch.from_numpy(np.array(w, np.float32)) for name, w in net.weights.items()})
    return module


def weights_of(module: Any, net: Net) -> Weights:
    """Return the weights of a module, in the order of the net's."""
    state = module.state_dict()
    return {name: state[name].detach().numpy().copy() for name in net.weights}


def _sequence(torch: Any, inputs: Shape, layers: Sequence[Layer]) -> Any:
    modules, shape = [], inputs
    for layer in layers:
        modules.append(_module(torch, shape, layer))
        shape = shapes(shape, [layer])[1]
    return torch.nn.Sequential(*modules)


def _module(torch: Any, shape: Shape, layer: Layer) -> Any:
    nn, kind, width = torch.nn, layer["kind"], shape[-1]
    if kind == "scale":
        return _scale(torch, width)
    if kind == "linear":
        return nn.Linear(width, layer["outputs"])
    if kind == "encoder":
        return nn.TransformerEncoderLayer(width, layer["heads"], layer["hidden"], dropout=0.0, batch_first=True)
    if kind == "lstm":
        return _lstm(torch, width, layer["hidden"])
    if kind == "mixture":
        experts = [_sequence(torch, shape, expert) for expert in layer["experts"]]
        return _mixture(torch, experts, _sequence(torch, shape, layer["gate"]))
    plain = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "softsign": nn.Softsign, "flatten": nn.Flatten}
    return plain[kind]()


def _scale(torch: Any, width: int) -> Any:
    class Scale(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("std", torch.ones(width))

        def forward(self, x: Any) -> Any:
            return ((x - self.mean) / self.std).clamp(-MOST, MOST)

    return Scale()


def _lstm(torch: Any, width: int, hidden: int) -> Any:
    class Steps(torch.nn.LSTM):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x)[0]

    return Steps(width, hidden, batch_first=True)


def _mixture(torch: Any, experts: Sequence[Any], gate: Any) -> Any:
    class Mixture(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.experts = torch.nn.ModuleList(experts)
            self.gate = gate

        def forward(self, x: Any) -> Any:
            share = torch.softmax(self.gate(x), dim=-1)
            return sum(share[:, k : k + 1] * expert(x) for k, expert in enumerate(self.experts))

    return Mixture()
