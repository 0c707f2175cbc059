"""Learned policies as plain arrays: the pair of small nets and the LSTM; loaded from a folder or a JSON of weights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import read_whole
from gpuctl.predictors import card
from gpuctl.research.accel import state as s
from gpuctl.research.accel.net_kernel import PAIR_INPUTS, REQUEST_INPUTS, UNITS
from gpuctl.research.accel.simulate import Policy
from gpuctl.research.learn.nets import Net
from gpuctl.research.learn.saved import net_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.research.learn.nets import Layer

    Floats = NDArray[np.float64]

KIND = "accel"
SHAPES = {
    "req_w": (REQUEST_INPUTS, UNITS), "req_b": (UNITS,), "req_v": (UNITS,),
    "pair_w": (PAIR_INPUTS, UNITS), "pair_b": (UNITS,), "pair_v": (UNITS,),
}  # fmt: skip
"""Arrays of the two small nets, in the kernel's order."""
SMALL, LSTM = "b", "a"
"""The two nets of a model, as its card calls them."""
_HINT = "name a folder that gpuctl accel train wrote, or a JSON file with the arrays " + ", ".join(SHAPES)


def load(path: Path, name: str, accels: int) -> tuple[Policy, dict[str, Any]]:
    """Load a learned policy and the entries of its card; a JSON file has no card.

    Args:
        path: a folder that ``gpuctl accel train`` wrote, or a JSON file of the small nets' arrays.
        name: name of the policy.
        accels: sub-accelerators of the system.

    Raises:
        InputError: it is neither, or for another number of sub-accelerators.
    """
    if path.is_dir():
        folder = card.load_folder(path, KIND)
        if folder.card.get("net") == SMALL:
            arrays = {each: folder.array(f"{each}.npy", "float32", len(shape)) for each, shape in SHAPES.items()}
            return small(arrays, name, accels, str(path)), folder.card
        shape = inputs_of(accels)
        found = net_of(folder, shape, (shape[0], 1 + accels))
        return lstm(found, name, str(path)), folder.card
    try:
        value = json.loads(read_whole(path, hint=_HINT))
        if not isinstance(value, dict) or set(value) != set(SHAPES):
            raise ValueError("holds other things than the arrays of the two nets")
        arrays = {each: np.array(value[each], np.float64) for each in SHAPES}
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"is no model: {error}", path=str(path), hint=_HINT) from error
    return small(arrays, name, accels, str(path)), {}


def card_of(path: Path) -> dict[str, Any]:
    """Return the entries of a model's card; a JSON file has none.

    Raises:
        InputError: the folder is not a model.
    """
    return card.load_folder(path, KIND).card if path.is_dir() else {}


def curve_of(path: Path) -> list[dict[str, float]]:
    """Return the training curve of a model; empty for a JSON file.

    Raises:
        InputError: the folder is not a model, or its curve is invalid.
    """
    if not path.is_dir():
        return []
    found = card.load_folder(path, KIND).files.get("curve.json", [])
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise InputError("is no training curve", path=str(path / "curve.json"), hint=_HINT)
    return [{k: float(v) for k, v in row.items() if isinstance(v, int | float)} for row in found]


def text_of(about: Mapping[str, Any], name: str, otherwise: str) -> str:
    """Return a text of a card, or `otherwise` if it has none."""
    found = about.get(name)
    return found if isinstance(found, str) else otherwise


def small(arrays: Mapping[str, NDArray[Any]], name: str, accels: int, path: str = "") -> Policy:
    """Return the policy of the two small nets.

    Raises:
        InputError: an array has another shape, or a number that is not finite.
    """
    for each, shape in SHAPES.items():
        if arrays[each].shape != shape or not np.isfinite(arrays[each]).all():
            raise InputError(
                f"{each}: found numbers in the shape {arrays[each].shape}, expected finite ones in {shape}",
                path=path, hint=_HINT,
            )  # fmt: skip
    weights = np.concatenate([np.asarray(arrays[each], np.float64).ravel() for each in SHAPES])
    macs = UNITS * (REQUEST_INPUTS + 1) + accels * UNITS * (PAIR_INPUTS + 1)
    return Policy(name, s.NET_B, s.AFFINITY, weights=weights, macs=macs)


def split(row: NDArray[np.floating[Any]]) -> dict[str, NDArray[np.float32]]:
    """Split one row into the arrays of the two small nets."""
    parts = np.split(np.asarray(row, np.float32), np.cumsum([int(np.prod(shape)) for shape in SHAPES.values()])[:-1])
    return {each: part.reshape(shape) for (each, shape), part in zip(SHAPES.items(), parts, strict=True)}


def inputs_of(accels: int) -> tuple[int, int]:
    """Return the shape of the LSTM's input: requests; per request its row, all sub-accelerators, common features."""
    return s.SEEN_REQUESTS, s.OF_REQUEST + 3 * accels + s.OF_ACCEL * accels + s.OF_ALL


def layers_of(accels: int, hidden: int) -> list[Layer]:
    """Return the layers of the LSTM's net: a priority and affinities of each request, from -1 to 1."""
    return [{"kind": "lstm", "hidden": hidden}, {"kind": "linear", "outputs": 1 + accels}, {"kind": "tanh"}]


def lstm(net: Net, name: str, path: str = "") -> Policy:
    """Return the policy of an LSTM, with its weights in the kernel's layout.

    Raises:
        InputError: the net has other layers.
    """
    outputs = net.layers[1].get("outputs", 0) if len(net.layers) == 3 else 0
    hidden = net.layers[0].get("hidden", 0)
    if list(net.layers) != layers_of(outputs - 1, hidden):
        raise InputError("expected an LSTM, a linear layer and tanh", path=path, hint=_HINT)
    w = {each: value.astype(np.float64) for each, value in net.weights.items()}
    weights = np.concatenate([
        w["0.weight_ih_l0"].T.ravel(), w["0.weight_hh_l0"].T.ravel(), w["0.bias_ih_l0"] + w["0.bias_hh_l0"],
        w["1.weight"].T.ravel(), w["1.bias"],
    ])  # fmt: skip
    macs = 4 * hidden * (net.inputs[1] + hidden) + hidden * outputs
    return Policy(name, s.NET_A, s.AFFINITY, weights=weights, hidden=hidden, macs=macs)
