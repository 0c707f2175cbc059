"""Classifies the last lines of a program without a signature, by a linear model over character n-grams.

The model is an array and a card, made by `tools/learn_reasons.py` from the examples of the signature tables and the
recordings for development. It never overrules a signature: it is used only if the tables would otherwise guess.
"""

from __future__ import annotations

import json
import re
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = Path(__file__).parent
SIZE = 1 << 13
LEAST = 0.35
"""Below these odds the model states nothing."""
FEATURES = f"3- to 5-grams of characters, lower case, digits as 0, CRC-32 modulo {SIZE}, of unit length"
_DIGITS = re.compile(r"\d+")
_WIDTHS = (3, 4, 5)
_MOST = 300
_STEPS = 127


class Model(NamedTuple):
    """A softmax regression.

    Attributes:
        reasons: slugs.
        weights: (`SIZE` + 1, reasons); the last row is the constant.
    """

    reasons: tuple[str, ...]
    weights: NDArray[np.float32]

    def read(self, line: str) -> tuple[str, float]:
        """Return the likeliest reason of a line, and its odds, 0 to 1."""
        places, values = features(line)
        scores = (self.weights[places] * values[:, None]).sum(axis=0)
        odds = np.exp(scores - scores.max())
        best = int(odds.argmax())
        return self.reasons[best], float(odds[best] / odds.sum())

    def save(self, folder: Path, card: dict[str, Any]) -> None:
        """Write ``weights.npz`` (8-bit steps, one scale per reason) and ``card.json``."""
        scale = np.abs(self.weights).max(axis=0) / _STEPS
        steps = np.round(self.weights / scale).astype(np.int8)
        np.savez_compressed(folder / "weights.npz", steps=steps, scale=scale.astype(np.float32))
        (folder / "card.json").write_text(json.dumps({"reasons": self.reasons, **card}, indent=1) + "\n")


def features(line: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the n-grams of a line: (indices of the weights, values); the last is the constant."""
    text = f" {_DIGITS.sub('0', line[:_MOST].lower())} "
    grams = {text[at : at + width] for width in _WIDTHS for at in range(len(text) - width + 1)}
    places = sorted({zlib.crc32(gram.encode()) % SIZE for gram in grams})
    values = np.full(len(places) + 1, 1 / np.sqrt(max(len(places), 1)), np.float32)
    values[-1] = 1
    return np.array([*places, SIZE], np.int64), values


@cache
def model() -> Model:
    """Return gpuctl's own model, read once."""
    card = json.loads((FOLDER / "card.json").read_text())
    with np.load(FOLDER / "weights.npz", allow_pickle=False) as arrays:
        return Model(tuple(card["reasons"]), arrays["steps"] * arrays["scale"])
