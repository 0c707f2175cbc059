"""Makes the training data of the lab: shards of samples whose labels can be learnt; the same bytes every time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from labs.pickyman.models import CLASSES, DATA, VOCABULARY

if TYPE_CHECKING:
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]


def write(family: str, folder: Path, *, samples: int, shards: int, valid_shards: int) -> None:
    """Write shards of a family's data: all inputs of a shard, then all labels, raw and little-endian.

    Args:
        family: a key of ``DATA``.
        folder: where to; files that are there already are kept.
        samples: in a shard.
        shards: ``train-0000.bin`` and so on.
        valid_shards: ``valid-0000.bin`` and so on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for kind, count in (("train", shards), ("valid", valid_shards)):
        for number in range(count):
            file = folder / f"{kind}-{number:04d}.bin"
            if file.exists() and file.stat().st_size == samples * sum(DATA[family].row):
                continue
            x, y = _samples(family, np.random.default_rng([number, kind == "valid"]), samples)
            file.write_bytes(x.tobytes() + y.tobytes())


def _samples(family: str, rng: np.random.Generator, samples: int) -> tuple[Array, Array]:
    data = DATA[family]
    fixed = np.random.default_rng(7)
    if family == "transformer":  # text of a random grammar: the next letter depends on the last one
        after = fixed.integers(0, VOCABULARY, (VOCABULARY, 4))
        tokens = np.empty((samples, data.x_shape[0] + 1), np.uint16)
        tokens[:, 0] = rng.integers(0, VOCABULARY, samples)
        for at in range(data.x_shape[0]):
            tokens[:, at + 1] = after[tokens[:, at], rng.integers(0, 4, samples)]
        return tokens[:, :-1].copy(), tokens[:, 1:].copy()
    if family == "boosting":
        rows = rng.standard_normal((samples, *data.x_shape), dtype=np.float32)
        label = rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2] * 2) + rng.normal(0, 0.3, samples) > 0
        return rows, label.astype(data.y_type)[:, None]
    patterns = fixed.standard_normal((CLASSES, *data.x_shape))
    classes = rng.integers(0, CLASSES, samples)
    # faint enough to be learnt over several epochs
    x: Array = 0.2 * patterns[classes] + 2 * rng.standard_normal((samples, *data.x_shape), dtype=np.float32)
    if data.x_type == "uint8":
        x = np.clip(x * 30 + 128, 0, 255)
    return x.astype(data.x_type), classes.astype(data.y_type)[:, None]
