"""A learned rule for deferrable jobs: plain arrays, by a net that the compiled loop runs, or by one of NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.deferrable.slots import Outcome, Rule, simulate
from gpuctl.learn.saved import net_of
from gpuctl.predictors import card
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.replay.policies.osdec.weights import read_weights

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
"""What the small net goes by, see `gpuctl.replay.policies.osdec.slot_kernel.fill_features`."""

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
        return Model(Rule(kernel.NET, 50, read_weights(path)), {})
    folder = card.load_folder(path, KIND)
    if folder.card.get("features") != list(FEATURES):
        raise InputError("its features are not those that this gpuctl knows", path=str(path / card.CARD), hint=_HINT)
    net = net_of(folder, (len(FEATURES),), 1)
    rule_of(net, str(path))
    return Model(Rule(kernel.NET, 50, read_weights(path)), folder.card)


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
