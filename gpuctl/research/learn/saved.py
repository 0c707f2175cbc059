"""Nets in the folder of a saved model: layers as JSON, all weights in one array, no code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.research.learn.nets import Net, ShapeError, shapes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.predictors.card import Folder
    from gpuctl.research.learn.nets import Weights

_HINT = "train the model again, or ask its author for the whole folder"


def files_of(net: Net) -> dict[str, Any]:
    """Return the files that hold a net, for `gpuctl.predictors.card.save_folder`."""
    return {"net.json": {"inputs": list(net.inputs), "layers": list(net.layers)}, "net.npy": flat(net.weights)}


def flat(weights: Weights) -> NDArray[np.float32]:
    """Return all weights in one row, in their order."""
    return np.concatenate([np.asarray(each, np.float32).ravel() for each in weights.values()])


def unflat(row: NDArray[np.float32], inputs: tuple[int, ...], layers: list[dict[str, Any]]) -> Weights:
    """Return the weights of layers from one row.

    Raises:
        ShapeError: the layers do not fit, or the number of weights differs.
    """
    expected = shapes(inputs, layers)[0]
    sizes = [int(np.prod(shape)) for shape in expected.values()]
    if sum(sizes) != row.size:
        raise ShapeError(f"{row.size:,} weights, expected {sum(sizes):,}")
    parts = np.split(row, np.cumsum(sizes)[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(expected.items(), parts, strict=True)}


def net_of(folder: Folder, inputs: tuple[int, ...], outputs: int | tuple[int, ...]) -> Net:
    """Return the net of a saved model, after checks.

    Args:
        folder: of the model.
        inputs: required shape of one input.
        outputs: required number of outputs, or their shape.

    Raises:
        InputError: there is no net, its layers do not fit each other or the required shapes, or a weight is not finite.
    """
    found = folder.json("net.json")
    path = str(folder.path / "net.json")
    layers = found.get("layers") if isinstance(found, dict) else None
    if not isinstance(layers, list) or found.get("inputs") != list(inputs):
        raise InputError(f"expected layers, and inputs of the shape {list(inputs)}", path=path, hint=_HINT)
    try:
        weights = unflat(folder.array("net.npy", "float32"), inputs, layers)
        answer = shapes(inputs, layers)[1]
    except (ShapeError, AttributeError, TypeError) as error:
        raise InputError(f"its layers do not fit: {error}", path=path, hint=_HINT) from None
    wanted = outputs if isinstance(outputs, tuple) else (outputs,)
    if answer != wanted:
        raise InputError(f"answers {list(answer)} numbers, expected {list(wanted)}", path=path, hint=_HINT)
    if not all(np.isfinite(each).all() for each in weights.values()):
        raise InputError("a weight is not finite", path=str(folder.path / "net.npy"), hint=_HINT)
    return Net(inputs, tuple(layers), weights)
