"""The state of a training: plain arrays and a card in a folder, from which it resumes with the same result."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.predictors import card

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

KIND = "checkpoint"
EVERY_S = 10.0
"""Between two times that a training is saved."""


def digest_of(settings: Mapping[str, Any], arrays: Iterable[NDArray[Any]]) -> str:
    """Return a digest of all that a training depends on: a checkpoint with another one belongs to another training."""
    found = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for each in arrays:
        found.update(f"{each.dtype}{each.shape}".encode())
        found.update(np.ascontiguousarray(each).data)
    return found.hexdigest()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass
class Checkpoint:
    """The place to which a training is saved.

    Attributes:
        path: of the folder; None: nowhere.
        digest: of the training's inputs, by `digest_of`.
    """

    path: Path | None
    digest: str
    _saved_at: float = field(default_factory=time.monotonic)

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """Return the last saved state: a value for JSON, and arrays; None if there is none.

        Raises:
            InputError: it is of another training, or damaged.
        """
        if self.path is None or not self.path.exists() or not any(self.path.iterdir()):
            return None
        folder = card.load_folder(self.path, KIND)
        if folder.card.get("of") != self.digest:
            raise InputError(
                "is of a training with other data, settings or seed",
                path=str(self.path), hint="name another folder, or remove this one",
            )  # fmt: skip
        found: dict[str, Any] = folder.json("state.json")
        with self.restoring():
            curve, cpu_s = found["curve"], found["cpu_s"]
            if not isinstance(curve, list) or not all(isinstance(row, dict) for row in curve):
                raise TypeError("curve: expected a list of rows")
            if not all(_is_number(value) for row in curve for value in row.values()):
                raise TypeError("curve: expected numbers")
            if not _is_number(cpu_s) or cpu_s < 0:
                raise TypeError("cpu_s: expected seconds")
        return found, {name.removesuffix(".npy"): a for name, a in folder.files.items() if name.endswith(".npy")}

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Restore a saved state in this block: a missing array or a wrong shape is an error of the folder.

        Raises:
            InputError: the block found a value that no training has.
        """
        try:
            yield
        except (KeyError, IndexError, TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise InputError(
                f"holds no state that this training can go on from: {type(error).__name__}: {error}"[:300],
                path=str(self.path), hint="remove the folder to begin the training again",
            ) from error  # fmt: skip

    def save(self, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, now: bool = False) -> None:
        """Save if it is time; the folder always holds the last complete state.

        Args:
            state: a value for JSON.
            arrays: of one or two dimensions, by names of small letters, digits and ``_``.
            now: save even if it is not time.

        Raises:
            UsageError: the folder is not writable.
        """
        if self.path is None or (not now and time.monotonic() - self._saved_at < EVERY_S):
            return
        about = {"title": "A training under way", "what": "Its weights and how far it is.", "of": self.digest}
        files = {"state.json": dict(state)} | {f"{name}.npy": each for name, each in arrays.items()}
        card.save_folder(self.path, KIND, about, files)
        self._saved_at = time.monotonic()
