"""An evolution strategy in NumPy: searches a net's weights by trial, if the score has no gradient.

After Salimans et al. (2017): weights are tried with noise and with its mirror image, ranks replace scores, and Adam
follows the estimated gradient.
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
    """Settings of the search.

    Attributes:
        generations: number of generations.
        pairs: pairs of noise and its mirror image per generation.
        noise: standard deviation of the noise added to weights.
        rate: learning rate of Adam.
        decay: share by which weights shrink per generation.
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
    """Search for weights with a high score; the same arguments give the same weights, after any number of stops.

    Args:
        net: initial net; means and deviations of its ``scale`` layers stay fixed.
        score: score of a net in a generation; higher is better. Within a generation it must use the same cases for all
            nets; for generation -1 the cases that select the best among the first, the last and every tenth net.
        how: settings of the search.
        data_digest: identifies the data of `score`, so that the folder of another search is rejected.
        checkpoint: folder to save the state in and resume from; None: none.
        progress: called with the generations done and the total.

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
class SearchResult:
    """Result of a search.

    Attributes:
        weights: the best weights.
        curve: one row per generation.
        cpu_s: seconds of CPU, including those before a stop.
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
) -> SearchResult:
    """Search for an array of weights, whatever they parametrize; otherwise as `evolve`.

    Args:
        weights: initial weights.
        score: score of weights in a generation, see `evolve`.
        how: settings of the search.
        settings: a value for JSON that identifies the data of `score`.
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
    return SearchResult(arrays["best"], curve, before + time.process_time() - begin)


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
    """Evaluate one generation and take a step; return the row of the curve."""
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
    """Return the ranks of scores, from -0.5 to 0.5; equal scores share a rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(scores).reshape(scores.shape) - 1, np.float64) / max(scores.size - 1, 1) - 0.5
