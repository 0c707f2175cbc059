"""Reads what a message is about (a shape, an argument, a file, the network, memory, a version, a permission, ...).

A linear model over words, groups of letters, the class of the error, and the library that raised it; an array and a
card, made by `tools/learn_reasons.py` from the recordings, the signatures' examples and messages of libraries. It
never overrules a signature that knows the wording: it reads only what the tables would otherwise guess by a class.
"""

from __future__ import annotations

import json
import re
import zlib
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuctl.joblogs.structure.library_areas import area, library

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = Path(__file__).parent
SIZE = 1 << 14
FEATURES = (
    "words, pairs of words, 3- to 5-grams of characters, class, words of the class, library, area; "
    f"CRC-32 modulo {SIZE}"
)
NEAR = 0.5
"""A second reading with this share of the first one's odds makes the first a perhaps."""
_DIGITS = re.compile(r"\d+")
_PATHS = re.compile(r"[\w.~/-]+")
_WORDS = re.compile(r"[a-z_]{2,24}|0|[<>=!]=?|[()\[\]:%]")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CLASS = re.compile(
    r"(?:\w{1,40}: )?(?P<path>(?:[^\W\d]\w{0,80}\.){0,10})(?P<name>[A-Z]\w{0,80}?"
    r"(?:Error|Exception|Failure|Failed|Fault|Exit|Interrupt|Timeout|Defect|[a-z]))(?::\s+|$)"
)
_WIDTHS = (3, 4, 5)
_MOST = 400
_STEPS = 127


class Message(NamedTuple):
    """A message to be read.

    Attributes:
        text: its lines, joined by blanks, without the class in front.
        name: the error's class without its module; empty if it has none.
        library: the library that raised it, or whose class it is; empty if unknown or the user's own.
        area: the reason that this part of the library indicates (`library_areas.area`).
    """

    text: str
    name: str = ""
    library: str = ""
    area: str = ""


class Reading(NamedTuple):
    """What a message is about.

    Attributes:
        reason: slug.
        confidence: share of such readings that are right, measured on tools that the model had not seen.
        second: the reason that is almost as likely; None if there is none.
    """

    reason: str
    confidence: float
    second: str | None


class Model(NamedTuple):
    """A softmax regression.

    Attributes:
        reasons: slugs.
        weights: (`SIZE` + 1, reasons); the last row is the constant.
        odds: odds of the likeliest reason, rising, at which the confidence is measured.
        shares: the confidence at each.
    """

    reasons: tuple[str, ...]
    weights: NDArray[np.float32]
    odds: tuple[float, ...] = (0.0, 1.0)
    shares: tuple[float, ...] = (0.0, 1.0)

    def likely(self, message: Message) -> NDArray[np.float64]:
        """Return the odds of each reason, 0 to 1."""
        places, values = features(message)
        scores = (self.weights[places] * values[:, None]).sum(axis=0, dtype=np.float64)
        odds = np.exp(scores - scores.max())
        return np.asarray(odds / odds.sum(), np.float64)

    def read(self, message: Message) -> Reading:
        """Return the likeliest reason of a message, with its confidence."""
        odds = self.likely(message)
        second, best = (int(place) for place in np.argsort(odds, kind="stable")[-2:])
        near = odds[second] >= NEAR * odds[best]
        confidence = float(np.interp(odds[best], self.odds, self.shares))
        return Reading(self.reasons[best], confidence, self.reasons[second] if near else None)

    def save(self, folder: Path, card: dict[str, Any]) -> None:
        """Write ``weights.npz`` (8-bit steps, one scale per reason) and ``card.json``."""
        scale = np.maximum(np.abs(self.weights).max(axis=0), 1e-12) / _STEPS
        steps = np.round(self.weights / scale).astype(np.int8)
        np.savez_compressed(folder / "weights.npz", steps=steps, scale=scale.astype(np.float32))
        calibration = {"odds": self.odds, "shares": self.shares}
        (folder / "card.json").write_text(json.dumps({"reasons": self.reasons, **calibration, **card}, indent=1) + "\n")


def message(text: str, frame: str | None = None) -> Message:
    """Take a message apart.

    Args:
        text: as a program printed it, without stamps and levels, its lines joined by blanks.
        frame: path of the innermost file of its traceback.
    """
    found = _CLASS.match(text)
    where = area(frame) or ""
    if found is None:
        return Message(text, library=library(frame) or "", area=where)
    of_class = found["path"].split(".")[0]
    return Message(text[found.end() :], found["name"], library(frame) or of_class, where)


def _last_part(path: re.Match[str]) -> str:
    return path[0].rstrip("/").rsplit("/", 1)[-1]


def features(message: Message) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the features of a message: (indices of the weights, values); the last is the constant."""
    text = _DIGITS.sub("0", _PATHS.sub(_last_part, message.text[:_MOST])).lower()
    words = _WORDS.findall(text)
    padded = f" {text} "
    letters = {padded[at : at + width] for width in _WIDTHS for at in range(len(padded) - width + 1)}
    whole = {f"w:{word}" for word in words}
    whole |= {f"b:{first} {second}" for first, second in pairwise(words)}
    facts = {f"k:{message.name}", f"l:{message.library}", f"a:{message.area}"}
    facts |= {f"kw:{part.lower()}" for part in _CAMEL.findall(message.name)}
    sums: dict[int, float] = {}
    for group, weight in ((letters, 1.0), (whole, 1.0), (facts, 1.0)):
        value = weight / max(len(group), 1) ** 0.5
        for gram in group:
            place = zlib.crc32(gram.encode("utf-8", "replace")) % SIZE
            sums[place] = sums.get(place, 0.0) + value
    places = sorted(sums)
    return (
        np.array([*places, SIZE], np.int64),
        np.array([*(sums[place] for place in places), 1.0], np.float32),
    )


def read(text: str, frame: str | None = None) -> Reading:
    """Read a message with gpuctl's own model, arguments as for `message`; of messages that differ in numbers, one."""
    return _read(_DIGITS.sub("0", text[:_MOST]), frame)


@lru_cache(4096)
def _read(text: str, frame: str | None) -> Reading:
    return model().read(message(text, frame))


@cache
def model() -> Model:
    """Return gpuctl's own model, read once."""
    card = json.loads((FOLDER / "card.json").read_text())
    with np.load(FOLDER / "weights.npz", allow_pickle=False) as arrays:
        weights = arrays["steps"] * arrays["scale"]
    return Model(tuple(card["reasons"]), weights, tuple(card["odds"]), tuple(card["shares"]))
