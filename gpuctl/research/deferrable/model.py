"""A learned rule for deferrable jobs: plain arrays, for a net in the compiled loop or in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.compiled import jit
from gpuctl.core.errors import InputError
from gpuctl.predictors import card
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.replay.policies.osdec.net_weights import read_weights
from gpuctl.research.deferrable.observation import SHAPES, Observer, flat
from gpuctl.research.deferrable.slots import Outcome, Rule, initial_state, outcome, simulate
from gpuctl.research.learn.saved import net_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.research.deferrable.cases import Case
    from gpuctl.research.learn.nets import Net

    Floats = NDArray[np.float64]

KIND = "deferrable"
FEATURES = (
    "spare_10", "spare_50", "spare_90", "spare_now", "window_left", "days_left", "slots", "gpus", "above_usual",
    "rise", "sin_day", "cos_day", "waiting", "fits_50",
)  # fmt: skip
"""Inputs of the small net, see `gpuctl.replay.policies.osdec.slot_kernel.fill_features`."""

OBSERVED = "the observation of gpuctl/Deferrable-v0, as one row"
"""Entry in the card of a model that uses this observation."""

_HINT = "train the model again, or ask its author for the complete folder"


@dataclass(frozen=True)
class Model:
    """A rule that was learned.

    Attributes:
        rule: the rule that the compiled loop runs.
        net: decides from whole observations if the rule is `slot_kernel.EXTERNAL`.
        card: card of its folder; empty: loaded from a file of weights.
    """

    rule: Rule
    card: dict[str, Any]
    net: Net | None = None

    def run(self, case: Case, evict: str) -> Outcome:
        """Simulate a case."""
        if self.net is None:
            return simulate(case, self.rule, evict)
        s, decide = initial_state(case, self.rule, evict), self.net.ready()
        observer = Observer(case, s)
        with jit.interpreted():
            offered = kernel.advance(s, -1)
            while offered >= 0:
                wait, start = decide(flat(observer.seen(offered))[None])[0]
                offered = kernel.advance(s, int(start > wait))
        return outcome(s)


def load(path: Path) -> Model:
    """Load a model: a folder that ``gpuctl deferrable train`` wrote, or a JSON file with the arrays w, b and v.

    Raises:
        InputError: it is no such model, or a part of it is invalid.
    """
    if path.is_file() and path.suffix.lower() == ".json":
        return Model(Rule(kernel.NET, 50, read_weights(path)), {})
    folder = card.load_folder(path, KIND)
    if folder.card.get("features") == OBSERVED:
        size = sum(int(np.prod(shape)) for shape in SHAPES.values())
        return Model(Rule(kernel.EXTERNAL), folder.card, net_of(folder, (size,), 2))
    if folder.card.get("features") != list(FEATURES):
        raise InputError(
            "its features differ from those of this gpuctl version", path=str(path / card.CARD), hint=_HINT
        )
    net = net_of(folder, (len(FEATURES),), 1)
    rule_of(net, str(path))
    return Model(Rule(kernel.NET, 50, read_weights(path)), folder.card)


def rule_of(net: Net, path: str = "") -> Rule:
    """The rule of a small net.

    Raises:
        InputError: its layers differ.
    """
    kinds = [layer["kind"] for layer in net.layers]
    if kinds != ["linear", "softsign", "linear"]:
        raise InputError("expected a net of two linear layers with softsign between them", path=path, hint=_HINT)
    w, b, v, v0 = (net.weights[name].astype(np.float64) for name in ("0.weight", "0.bias", "2.weight", "2.bias"))
    return Rule(kernel.NET, 50, (np.ascontiguousarray(w.T), b, v[0], v0))
