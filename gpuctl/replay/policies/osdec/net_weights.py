"""The weights of the small net that starts deferrable jobs, from a model's folder or a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import read_whole
from gpuctl.replay.policies.osdec.slot_kernel import FEATURES

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Weights = tuple[Floats, Floats, Floats, Floats]

MOST_HIDDEN = 256
HINT = "a folder that gpuctl deferrable train wrote, or a JSON file with the arrays w, b and v"


def layers(hidden: int) -> list[dict[str, Any]]:
    """The layers of the net, as in `gpuctl.research.learn.nets`."""
    return [{"kind": "linear", "outputs": hidden}, {"kind": "softsign"}, {"kind": "linear", "outputs": 1}]


def read_weights(path: Path) -> Weights:
    """Read ``w`` [features, hidden], ``b`` and ``v`` [hidden], and ``v0`` [1], the bias of the answer.

    Args:
        path: a folder with ``net.json`` and ``net.npy``, or a JSON file with ``w``, ``b``, ``v`` and, if any, ``v0``.

    Raises:
        InputError: there are none, or of other shapes, or one is not finite.
    """
    return _of_folder(path) if path.is_dir() else _of_file(path)


def _of_folder(path: Path) -> Weights:
    place = path / "net.json"
    found = _json(place)
    try:
        hidden = int(found["layers"][0]["outputs"])
        sound = found == {"inputs": [FEATURES], "layers": layers(hidden)} and 0 < hidden <= MOST_HIDDEN
    except (KeyError, IndexError, TypeError, ValueError):
        sound = False
    if not sound:
        raise InputError(
            f"expected a net of {FEATURES} features, a layer with softsign, and one answer", path=str(place), hint=HINT
        )
    data = read_whole(path / "net.npy", most=2**20, hint=HINT)
    size = hidden * (FEATURES + 2) + 1
    flat = np.frombuffer(data[-4 * size :], "<f4").astype(np.float64) if len(data) >= 4 * size else np.zeros(0)
    if b"'<f4'" not in data[:128] or f"({size},)".encode() not in data[:128] or flat.size != size:
        raise InputError(f"expected {size} numbers of four bytes", path=str(path / "net.npy"), hint=HINT)
    w, b, v, v0 = np.split(flat, np.cumsum([FEATURES * hidden, hidden, hidden]))
    return _checked(path, (np.ascontiguousarray(w.reshape(hidden, FEATURES).T), b, v, v0))


def _of_file(path: Path) -> Weights:
    found = _json(path)
    try:
        w, b, v = (np.array(found[name], np.float64) for name in ("w", "b", "v"))
        v0 = np.array(found.get("v0", [0.0]), np.float64)
    except (ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
        raise InputError(
            f"is not a JSON object with the arrays w, b and v: {error}", path=str(path), hint=HINT
        ) from None
    return _checked(path, (w, b, v, v0))


def _checked(path: Path, weights: Weights) -> Weights:
    w, b, v, v0 = weights
    sound = b.ndim == 1 and w.shape == (FEATURES, b.size) and v.shape == b.shape and v0.shape == (1,)
    if not sound or not 0 < b.size <= MOST_HIDDEN or not all(np.isfinite(each).all() for each in weights):
        raise InputError(
            f"w is {list(w.shape)}, b {list(b.shape)}, v {list(v.shape)}: expected finite numbers, w [{FEATURES}, n], "
            f"b and v [n], n at most {MOST_HIDDEN}",
            path=str(path), hint=HINT,
        )  # fmt: skip
    return weights


def _json(path: Path) -> Any:
    data = read_whole(path, most=4 * 2**20, hint=HINT)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", path=str(path), hint=HINT) from None
