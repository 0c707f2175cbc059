"""An evolution strategy: a net's weights by trial, in NumPy alone, where what an action leads to has no gradient.

As Salimans et al. (2017): weights are tried with noise and with its mirror image, ranks take the place of scores, and
Adam goes up the estimated slope.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.research.learn.checkpoints import Checkpoint, digest_of
from gpuctl.research.learn.fitting import Fitted
from gpuctl.research.learn.saved import flat, unflat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.research.learn.nets import Net

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Evolution:
    """How weights are searched.

    Attributes:
        generations: of trials.
        pairs: of noise and its mirror image, in each.
        noise: standard deviation of what is added to weights.
        rate: of Adam.
        decay: share by which weights shrink, each generation.
        seed: of the noise.
    """

    generations: int = 60
    pairs: int = 16
    noise: float = 0.05
    rate: float = 0.02
    decay: float = 0.0
    seed: int = 1


def evolve(
    net: Net,
    score: Callable[[Net, int], float],
    how: Evolution,
    *,
    data_digest: str = "",
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Fitted:
    """Search for weights with a high score; the same call gives the same weights, after any number of stops.

    Args:
        net: to begin with; means and deviations of its layers ``scale`` stay.
        score: of a net in a generation, more is better. Within a generation it is to give all nets the same cases;
            for generation -1 those by which the best net is chosen, of the first, the last and every tenth.
        how: it is searched.
        data_digest: says what `score` depends on, so that a folder is not taken for that of another search.
        checkpoint: a folder in which its state is kept, and from which it goes on; None: none.
        progress: called with the generations that are done, of how many.

    Raises:
        InputError: the folder holds the state of another search.
    """
    settings = {"layers": list(net.layers), "inputs": list(net.inputs), "data": data_digest}
    free = flat({name: np.full(w.shape, name.rsplit(".", 1)[-1] not in {"mean", "std"})
                 for name, w in net.weights.items()}) > 0  # fmt: skip
    found = search(
        flat(net.weights), lambda theta, number: score(_with(net, theta), number), how, settings=settings, free=free,
        checkpoint=checkpoint, progress=progress,
    )  # fmt: skip
    return Fitted(_with(net, found.weights), found.curve, found.cpu_s)


@dataclass(frozen=True)
class Found:
    """What came of a search.

    Attributes:
        weights: the best.
        curve: one row a generation.
        cpu_s: seconds of CPU, those before a stop included.
    """

    weights: Floats
    curve: list[dict[str, float]]
    cpu_s: float


def search(
    weights: NDArray[np.floating[Any]],
    score: Callable[[Floats, int], float],
    how: Evolution,
    *,
    settings: Mapping[str, Any],
    free: NDArray[np.bool_] | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Found:
    """Search for a row of weights, whatever they are of; otherwise as `evolve`.

    Args:
        weights: to begin with.
        score: of weights in a generation, see `evolve`.
        how: it is searched.
        settings: a value for JSON that says what `score` depends on.
        free: weights that may change; None: all.
        checkpoint: see `evolve`.
        progress: see `evolve`.

    Raises:
        InputError: the folder holds the state of another search.
    """
    begin = time.process_time()
    place = Checkpoint(checkpoint, digest_of({**settings, **asdict(how)}, [weights]))
    theta = weights.astype(np.float64)
    may = np.ones(theta.size, np.bool_) if free is None else free
    arrays = {"theta": theta, "best": theta.copy(), "first": np.zeros(theta.size), "second": np.zeros(theta.size)}
    curve: list[dict[str, float]] = []
    before = 0.0
    found = place.load()
    if found is not None:
        curve, before = found[0]["curve"], found[0]["cpu_s"]
        with place.restoring():
            arrays = {name: _like(each, found[1][name]) for name, each in arrays.items()}
    while len(curve) < how.generations:
        progress(len(curve), how.generations)
        curve.append(_generation(score, how, number=len(curve), free=may, arrays=arrays, curve=curve))
        last = len(curve) == how.generations
        place.save({"curve": curve, "cpu_s": before + time.process_time() - begin}, arrays, now=last)
    return Found(arrays["best"], curve, before + time.process_time() - begin)


def _like(fresh: Floats, saved: Floats) -> Floats:
    if saved.shape != fresh.shape or not np.isfinite(saved).all():
        raise ValueError(f"expected {fresh.size:,} finite numbers in a row")
    return saved.astype(np.float64)


def _with(net: Net, theta: Floats) -> Net:
    return net.with_weights(unflat(theta.astype(np.float32), net.inputs, list(net.layers)))


def _generation(
    score: Callable[[Floats, int], float], how: Evolution, *, number: int, free: NDArray[np.bool_],
    arrays: dict[str, Floats], curve: list[dict[str, float]],
) -> dict[str, float]:  # fmt: skip
    """Try, and take a step; returns the row of the curve."""
    theta = arrays["theta"]
    draw = np.random.Generator(np.random.PCG64([how.seed, number]))
    noise = draw.standard_normal((how.pairs, theta.size)) * free
    scores = np.array([[score(theta + sign * how.noise * each, number) for sign in (1, -1)] for each in noise])
    slope = (_ranks(scores)[:, 0] - _ranks(scores)[:, 1]) @ noise / (2 * how.pairs * how.noise)
    arrays["first"] = 0.9 * arrays["first"] + 0.1 * slope
    arrays["second"] = 0.999 * arrays["second"] + 0.001 * slope**2
    first, second = arrays["first"] / (1 - 0.9 ** (number + 1)), arrays["second"] / (1 - 0.999 ** (number + 1))
    arrays["theta"] = theta + how.rate * first / (np.sqrt(second) + 1e-8) - how.decay * theta * free
    row = {"generation": number + 1, "score": float(scores.mean())}
    if number % 10 == 0 or number == how.generations - 1:
        known = [each["held_score"] for each in curve if "held_score" in each]
        row["held_score"] = score(arrays["theta"], -1)
        if not known or row["held_score"] > max(known):
            arrays["best"] = arrays["theta"].copy()
    return row


def _ranks(scores: Floats) -> Floats:
    """Ranks of scores, from -0.5 to 0.5; equal ones share theirs."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(scores).reshape(scores.shape) - 1, np.float64) / max(scores.size - 1, 1) - 0.5
