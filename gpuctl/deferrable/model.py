"""A learned rule for deferrable jobs: plain arrays, by a net that the compiled loop runs, or by one of NumPy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.files import read_whole
from gpuctl.deferrable import slot_kernel as kernel
from gpuctl.deferrable.slots import Outcome, Rule, simulate
from gpuctl.learn.saved import net_of
from gpuctl.predictors import card

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.deferrable.cases import Case
    from gpuctl.learn.nets import Net

    Floats = NDArray[np.float64]

KIND = "deferrable"
FEATURES = (
    "spare_10", "spare_50", "spare_90", "spare_now", "window_left", "days_left", "slots", "gpus", "above_usual",
    "rise", "sin_day", "cos_day", "waiting", "fits_50",
)  # fmt: skip
"""What the small net goes by, see `gpuctl.deferrable.slot_kernel.fill_features`."""

MOST_HIDDEN = 256
_HINT = "train the model again, or ask its author for the whole folder"


@dataclass(frozen=True)
class Model:
    """A rule that was learned.

    Attributes:
        rule: what the compiled loop runs.
        card: what its folder says of it; empty: it came from a file of weights.
    """

    rule: Rule
    card: dict[str, Any]

    def run(self, case: Case, evict: str) -> Outcome:
        """What comes of a case."""
        return simulate(case, self.rule, evict)


def load(path: Path) -> Model:
    """Load a model: a folder that ``gpuctl deferrable train`` wrote, or a JSON file with the arrays w, b and v.

    Raises:
        InputError: it is none, or something in it is not what it should be.
    """
    if path.is_file() and path.suffix.lower() == ".json":
        return Model(_of_json(path), {})
    folder = card.load_folder(path, KIND)
    if folder.card.get("features") != list(FEATURES):
        raise InputError("its features are not those that this gpuctl knows", path=str(path / card.CARD), hint=_HINT)
    net = net_of(folder, (len(FEATURES),), 1)
    return Model(rule_of(net, str(path)), folder.card)


def layers(hidden: int) -> list[dict[str, Any]]:
    """The layers of the small net."""
    return [{"kind": "linear", "outputs": hidden}, {"kind": "softsign"}, {"kind": "linear", "outputs": 1}]


def rule_of(net: Net, path: str = "") -> Rule:
    """The rule of a small net.

    Raises:
        InputError: it has other layers.
    """
    kinds = [layer["kind"] for layer in net.layers]
    if kinds != ["linear", "softsign", "linear"]:
        raise InputError("expected a net of two linear layers with softsign between them", path=path, hint=_HINT)
    w, b, v, v0 = (net.weights[name].astype(np.float64) for name in ("0.weight", "0.bias", "2.weight", "2.bias"))
    return Rule(kernel.NET, 50, (np.ascontiguousarray(w.T), b, v[0], v0))


def _of_json(path: Path) -> Rule:
    data = read_whole(path, most=4 * 2**20, hint="expected a JSON object with the arrays w, b and v")
    try:
        found = json.loads(data)
        w, b, v = (np.array(found[name], np.float64) for name in ("w", "b", "v"))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"is no JSON object with the arrays w, b and v: {error}", path=str(path), hint=_HINT) from None
    sound = w.shape == (kernel.FEATURES, b.size) and v.shape == b.shape and b.ndim == 1 and 0 < b.size <= MOST_HIDDEN
    if not sound or not all(np.isfinite(each).all() for each in (w, b, v)):
        raise InputError(
            f"w is {list(w.shape)}, b {list(b.shape)}, v {list(v.shape)}: expected finite numbers, w "
            f"[{kernel.FEATURES}, n], b and v [n], n at most {MOST_HIDDEN}",
            path=str(path), hint=_HINT,
        )  # fmt: skip
    return Rule(kernel.NET, 50, (w, b, v, np.zeros(1)))
