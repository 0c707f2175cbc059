"""Tree boosting on chunks of rows that come over the network: LightGBM, a few trees a chunk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.pickyman.loader import pack, unpack

if TYPE_CHECKING:
    from labs.pickyman.loader import Peer

Array = np.ndarray[Any, np.dtype[Any]]
ROUNDS = 6
"""Trees grown on a chunk, by each worker."""
WINDOW = 24
"""Chunks whose trees make up the model; older trees go, so that an epoch costs the same late as early."""
COLUMNS = 28


class Trees:
    """Boosting in the order of the chunks; a worker's share in a model of two is half of the sum.

    Args:
        width: leaves of a tree.
        peer: the other worker, whose trees go into the model too.
    """

    def __init__(self, width: int, peer: Peer | None) -> None:
        import lightgbm

        self._lightgbm, self._peer = lightgbm, peer
        self._settings = {
            "objective": "binary", "num_leaves": width, "learning_rate": 0.05, "num_threads": 1,
            "verbosity": -1, "min_data_in_leaf": 10,
        }  # fmt: skip
        self._texts: list[str] = []
        self._grown: list[Any] = []

    def step(self, x: Array, y: Array) -> None:
        """Grow trees on a chunk, and add them to the model."""
        start = self._scores(x)
        data = self._lightgbm.Dataset(x, label=y, init_score=start, free_raw_data=True)
        text = self._lightgbm.train(self._settings, data, num_boost_round=ROUNDS).model_to_string()
        texts = [text] if self._peer is None else sorted([text, self._peer.swap(text.encode()).decode()])
        self._add(texts)

    def loss(self, x: Array, y: Array) -> float:
        """Mean log loss."""
        scores = self._scores(x)
        return float(np.mean(np.logaddexp(0, scores) - y * scores))

    def state(self, meta: dict[str, Any]) -> bytes:
        """The model as a checkpoint."""
        return pack(meta, [], json.dumps(self._texts))

    def load(self, data: bytearray) -> dict[str, Any]:
        """Take the model of a checkpoint; returns what else is in it."""
        meta, _, text = unpack(data)
        self._add(json.loads(text))
        return meta

    def _scores(self, x: Array) -> Array:
        share = 1.0 if self._peer is None else 0.5
        total = np.zeros(len(x))
        for model in self._grown:
            total += model.predict(x, raw_score=True, num_threads=1)
        return total * share

    def _add(self, texts: list[str]) -> None:
        self._texts = [*self._texts, *texts][-WINDOW:]
        self._grown = [*self._grown, *(self._lightgbm.Booster(model_str=text) for text in texts)][-WINDOW:]
