"""Neural nets as plain data: layers as JSON, weights as arrays, evaluated by NumPy.

A layer is a dict with a ``kind``:

- ``scale``: (x - mean) / std, cut at ±`MOST`;
- ``linear``: with ``outputs``;
- ``relu``, ``tanh``, ``sigmoid``, ``softsign``;
- ``encoder``: a layer of a transformer's encoder (Vaswani et al., 2017), norms last, with ``heads`` and ``hidden``, on
  [steps, features];
- ``lstm``: with ``hidden``, on [steps, features]; its output is that of each step;
- ``flatten``: [steps, features] becomes one row;
- ``mixture``: the answers of ``experts``, a list of lists of layers, weighted by the softmax of those of ``gate``.

Weights have the names and shapes of the same PyTorch modules, so that a net trained there is the same here
(`gpuctl.research.learn.torch_nets`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Weights = dict[str, NDArray[np.float32]]

Layer = dict[str, Any]
Shape = tuple[int, ...]

MOST = 8.0
"""Standard deviations at which inputs are cut by ``scale``."""

LARGEST, MOST_LAYERS, DEEPEST = 1 << 16, 64, 3
"""Of what a file may ask for: numbers in a layer, layers in a row, mixtures in mixtures."""

_TINY = 1e-5
"""What PyTorch's norms add to a variance."""


class ShapeError(ValueError):
    """Layers that do not fit their input or each other."""


@dataclass(frozen=True)
class Net:
    """A net.

    Attributes:
        inputs: shape of one input: features, or steps and features.
        layers: its layers, in order.
        weights: arrays by name; see `shapes`.
    """

    inputs: Shape
    layers: tuple[Layer, ...]
    weights: Weights

    def __call__(self, x: ArrayLike) -> Floats:
        """Return the outputs for some inputs [n, *inputs]: [n, outputs]."""
        return run(self.layers, {name: w.astype(np.float64) for name, w in self.weights.items()}, x)

    def with_weights(self, weights: Weights) -> Net:
        """Return the same layers with other weights."""
        return replace(self, weights=weights)

    def ready(self) -> Callable[[ArrayLike], Floats]:
        """Return a function that computes the net's outputs with weights converted once, for single decisions."""
        weights = {name: w.astype(np.float64) for name, w in self.weights.items()}
        return lambda x: run(self.layers, weights, x)


def run(layers: Sequence[Layer], weights: dict[str, Floats], x: ArrayLike, prefix: str = "") -> Floats:
    """Run layers on [n, ...]; the names of their weights begin with `prefix`."""
    found = np.asarray(x, np.float64)
    for k, layer in enumerate(layers):
        found = _RUN[layer["kind"]](layer, weights, f"{prefix}{k}.", found)
    return found


def _scale(_: Layer, w: dict[str, Floats], at: str, x: Floats) -> Floats:
    return np.clip((x - w[at + "mean"]) / w[at + "std"], -MOST, MOST)


def _linear(_: Layer, w: dict[str, Floats], at: str, x: Floats) -> Floats:
    found: Floats = x @ w[at + "weight"].T + w[at + "bias"]
    return found


def _sigmoid(x: Floats) -> Floats:
    found: Floats = 0.5 * (1 + np.tanh(0.5 * x))
    return found


def _softmax(x: Floats) -> Floats:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    found: Floats = e / e.sum(axis=-1, keepdims=True)
    return found


def _norm(w: dict[str, Floats], at: str, x: Floats) -> Floats:
    off = x - x.mean(axis=-1, keepdims=True)
    found: Floats = off / np.sqrt((off**2).mean(axis=-1, keepdims=True) + _TINY) * w[at + "weight"] + w[at + "bias"]
    return found


def _encoder(layer: Layer, w: dict[str, Floats], at: str, x: Floats) -> Floats:
    n, steps, width = x.shape
    heads = layer["heads"]
    each = x @ w[at + "self_attn.in_proj_weight"].T + w[at + "self_attn.in_proj_bias"]
    q, k, v = each.reshape(n, steps, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
    look = _softmax(q @ k.transpose(0, 1, 3, 2) / math.sqrt(width // heads))
    seen = (look @ v).transpose(0, 2, 1, 3).reshape(n, steps, width)
    x = _norm(w, at + "norm1.", x + _linear(layer, w, at + "self_attn.out_proj.", seen))
    inner = np.maximum(_linear(layer, w, at + "linear1.", x), 0)
    return _norm(w, at + "norm2.", x + _linear(layer, w, at + "linear2.", inner))


def _lstm(layer: Layer, w: dict[str, Floats], at: str, x: Floats) -> Floats:
    n, steps, _ = x.shape
    size = layer["hidden"]
    hidden, cell, out = np.zeros((n, size)), np.zeros((n, size)), np.zeros((n, steps, size))
    bias = w[at + "bias_ih_l0"] + w[at + "bias_hh_l0"]
    for k in range(steps):
        gates = x[:, k] @ w[at + "weight_ih_l0"].T + hidden @ w[at + "weight_hh_l0"].T + bias
        come, forget, new, show = np.split(gates, 4, axis=1)
        cell = _sigmoid(forget) * cell + _sigmoid(come) * np.tanh(new)
        hidden = _sigmoid(show) * np.tanh(cell)
        out[:, k] = hidden
    return out


def _mixture(layer: Layer, w: dict[str, Floats], at: str, x: Floats) -> Floats:
    share = _softmax(run(layer["gate"], w, x, f"{at}gate."))
    answers = [run(expert, w, x, f"{at}experts.{k}.") for k, expert in enumerate(layer["experts"])]
    return np.asarray(sum(share[:, [k]] * answer for k, answer in enumerate(answers)), np.float64)


_RUN: dict[str, Callable[[Layer, dict[str, Floats], str, Floats], Floats]] = {
    "scale": _scale,
    "linear": _linear,
    "relu": lambda _layer, _w, _at, x: np.maximum(x, 0),
    "tanh": lambda _layer, _w, _at, x: np.tanh(x),
    "sigmoid": lambda _layer, _w, _at, x: _sigmoid(x),
    "softsign": lambda _layer, _w, _at, x: x / (1 + np.abs(x)),
    "encoder": _encoder,
    "lstm": _lstm,
    "flatten": lambda _layer, _w, _at, x: x.reshape(len(x), -1),
    "mixture": _mixture,
}


def shapes(inputs: Shape, layers: Sequence[Layer], prefix: str = "", deep: int = 0) -> tuple[dict[str, Shape], Shape]:
    """Return names and shapes of the weights of layers, in order, and the shape of their output for one input.

    Args:
        inputs: shape of one input.
        layers: in order.
        prefix: prefix of all names.
        deep: nesting depth in mixtures.

    Raises:
        ShapeError: the layers do not fit, are too many, too large, or of an unknown kind.
    """
    if not 0 < len(layers) <= MOST_LAYERS or deep > DEEPEST:
        raise ShapeError(f"expected 1 to {MOST_LAYERS} layers, in at most {DEEPEST} mixtures")
    found: dict[str, Shape] = {}
    shape = inputs
    for k, layer in enumerate(layers):
        if not 1 <= len(shape) <= 2 or not all(0 < size <= LARGEST for size in shape):
            raise ShapeError(f"layer {k} gets the shape {shape}")
        own, shape = _shapes_of(shape, layer, f"{prefix}{k}.", deep)
        found |= own
    return found, shape


def _shapes_of(shape: Shape, layer: Layer, at: str, deep: int) -> tuple[dict[str, Shape], Shape]:
    kind, width = layer.get("kind"), shape[-1]
    if kind in {"relu", "tanh", "sigmoid", "softsign"}:
        return {}, shape
    if kind == "scale":
        return {at + "mean": (width,), at + "std": (width,)}, shape
    if kind == "linear":
        outputs = _size(layer, "outputs")
        return {at + "weight": (outputs, width), at + "bias": (outputs,)}, (*shape[:-1], outputs)
    if kind == "mixture" and len(shape) == 1:
        return _shapes_of_mixture(shape, layer, at, deep)
    if len(shape) != 2:
        raise ShapeError(f"there is no layer of kind {str(kind)[:20]!r} for one row")
    if kind == "flatten":
        return {}, (shape[0] * width,)
    if kind == "lstm":
        hidden = _size(layer, "hidden")
        return {
            at + "weight_ih_l0": (4 * hidden, width), at + "weight_hh_l0": (4 * hidden, hidden),
            at + "bias_ih_l0": (4 * hidden,), at + "bias_hh_l0": (4 * hidden,),
        }, (shape[0], hidden)  # fmt: skip
    if kind == "encoder":
        hidden, heads = _size(layer, "hidden"), _size(layer, "heads")
        if width % heads:
            raise ShapeError(f"{heads} heads do not divide {width} features")
        return {
            at + "self_attn.in_proj_weight": (3 * width, width), at + "self_attn.in_proj_bias": (3 * width,),
            at + "self_attn.out_proj.weight": (width, width), at + "self_attn.out_proj.bias": (width,),
            at + "linear1.weight": (hidden, width), at + "linear1.bias": (hidden,),
            at + "linear2.weight": (width, hidden), at + "linear2.bias": (width,),
            at + "norm1.weight": (width,), at + "norm1.bias": (width,),
            at + "norm2.weight": (width,), at + "norm2.bias": (width,),
        }, shape  # fmt: skip
    raise ShapeError(f"there is no layer of kind {str(kind)[:20]!r} for steps")


def _shapes_of_mixture(shape: Shape, layer: Layer, at: str, deep: int) -> tuple[dict[str, Shape], Shape]:
    experts, gate = layer.get("experts"), layer.get("gate")
    if not isinstance(experts, list) or not 0 < len(experts) <= MOST_LAYERS or not isinstance(gate, list):
        raise ShapeError(f"a mixture has 1 to {MOST_LAYERS} experts, and a gate")
    found: dict[str, Shape] = {}
    outputs = set()
    for k, expert in enumerate(experts):
        own, answer = shapes(shape, expert, f"{at}experts.{k}.", deep + 1)
        found |= own
        outputs.add(answer)
    own, shares = shapes(shape, gate, f"{at}gate.", deep + 1)
    if len(outputs) != 1 or shares != (len(experts),):
        raise ShapeError("experts answer in different shapes, or the gate does not weigh each of them")
    return found | own, outputs.pop()


def _size(layer: Layer, name: str) -> int:
    size = layer.get(name)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= LARGEST:
        raise ShapeError(f"{name} of a layer: expected a number from 1 to {LARGEST:,}")
    return size


def scaled(x: NDArray[np.floating[Any]]) -> dict[str, NDArray[np.float32]]:
    """Return mean and standard deviation of inputs by feature, for a ``scale`` layer; 1 for constants."""
    flat = np.asarray(x, np.float64).reshape(-1, x.shape[-1])
    std = flat.std(axis=0)
    return {
        "mean": flat.mean(axis=0).astype(np.float32),
        "std": np.where(std > 1e-9, std, 1).astype(np.float32),
    }


def initial(inputs: Shape, layers: Sequence[Layer], seed: int, **known: NDArray[np.float32]) -> Net:
    """Return a net with random weights after He et al. (2015); biases are 0, norms 1.

    Args:
        inputs: shape of one input.
        layers: in order.
        seed: random seed.
        known: fixed weights: ``mean`` and ``std`` of each ``scale`` layer.

    Raises:
        ShapeError: the layers do not fit.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    weights: Weights = {}
    for name, shape in shapes(inputs, layers)[0].items():
        last = name.rsplit(".", 1)[-1]
        if last in known:
            if known[last].shape != shape:
                raise ShapeError(f"{name} has the shape {known[last].shape}, expected {shape}")
            weights[name] = known[last]
        elif len(shape) == 2:
            weights[name] = (draw.standard_normal(shape) * math.sqrt(2 / sum(shape))).astype(np.float32)
        else:
            ones = last == "std" or (last == "weight" and ".norm" in name)
            weights[name] = np.full(shape, 1.0 if ones else 0.0, np.float32)
    return Net(inputs, tuple(layers), weights)
