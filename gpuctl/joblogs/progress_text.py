"""Words, numbers and timestamps of lines of training progress: meanings of names, times of lines.

Every expression here has bounded repeats without nesting: the time per line is linear in its length.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from datetime import tzinfo

NUMBER = (
    r"[-+]?(?:\d{1,18}(?:,\d{3}){0,4}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,4})?"
    r"|[-+]?(?:[nN][aA][nN]|[iI][nN][fF](?:inity)?)"
)
"""A number as programs print it: ``0.12``, ``6.5E+00``, ``1,234``, ``nan``, ``-inf``."""

Kind = Literal["epoch", "epochs", "step", "steps", "loss", "other", "elapsed", "nothing"]


class Name(NamedTuple):
    """The meaning of the name before a number.

    Attributes:
        kind: ``loss`` if lower is better, ``other`` for accuracies and the like, ``nothing`` if not a metric.
        rank: the lowest among several of the kind in one line is used.
        valid: whether it names validation or test data.
        train: whether it names training data.
    """

    kind: Kind
    rank: int = 9
    valid: bool = False
    train: bool = False


VALID_WORDS = frozenset(("val", "valid", "validation", "validate", "validating", "eval", "evaluation", "test", "dev"))
_TRAIN_WORDS = frozenset(("train", "training", "trn"))
_PART_WORDS = frozenset(("lm", "avg", "average", "mean", "total", "batch", "running", "epoch", "d", "g"))
_WHOLE_WORDS = _PART_WORDS - {"d", "g"} | {"step", "value", "per", "sample"}
_NOT_A_LOSS = frozenset(
    (
        *("scale", "scaler", "scaling", "weight", "weights", "time", "times", "lr", "rate", "coef", "coeff"),
        *("coefficient", "factor", "ratio", "type", "fn", "func", "count", "counts", "mask", "s", "ms", "sec", "secs"),
        *("seconds", "tol", "tolerance", "threshold", "delta", "patience", "best", "min", "max", "lowest", "final"),
        *("initial", "prev", "previous", "target", "std", "var", "packet", "packets", "data", "size", "acc", "id"),
    )
)
_LIKE_LOSSES = frozenset(
    (
        *("nll", "ce", "xent", "crossentropy", "perplexity", "ppl", "bpb", "bpc", "rmse", "mse", "mae", "mape"),
        *("rmsle", "l1", "l2", "huber", "poisson", "quantile", "cost", "criterion", "objective"),
        *("deviance", "elbo"),
    )
)
_ERRORS = frozenset(("error", "err", "errs"))  # error rates, the complement of an accuracy
_OTHERS = frozenset(
    (
        "acc",
        "accuracy",
        "merror",
        "top1",
        "top5",
        "auc",
        "map",
        "map50",
        "map50-95",
        "f1",
        "bleu",
        "ndcg",
        "iou",
        "miou",
        "dice",
    )
)
_EPOCHS = frozenset(("epochs", "epoch", "ep"))
_STEPS = frozenset(("step", "iter", "iteration", "it", "update", "updates", "batch", "minibatch", "round", "up"))
_TOTALS = frozenset(("max", "num", "total", "n"))
_ELAPSED = frozenset(("wall", "elapsed", "elapsed_s", "elapsed_time", "wall_time", "walltime", "total_time"))
_NO_COUNTER = _NOT_A_LOSS - {"max"} | {"per", "seen", "samples", "tokens", "duration", "loss", "every", "sizes"}

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PARTS = re.compile(r"[^a-z0-9@]+")
NOTHING = Name("nothing")
_NAMES: dict[str, Name] = {}
_MOST_NAMES = 4096


def name_of(word: str) -> Name:
    """Return the meaning of a name before a number, e.g. ``val_loss``, ``train loss``, ``Acc@1``, ``lr``."""
    known = _NAMES.get(word)
    if known is None:
        if len(_NAMES) >= _MOST_NAMES:  # a log may have any number of names
            _NAMES.clear()
        known = _NAMES[word] = _meaning(word)
    return known


def _meaning(word: str) -> Name:
    plain = word.replace("'s", "")
    parts = [part for part in _PARTS.split(_CAMEL.sub("_", plain).lower()) if part]
    words = frozenset(parts) | frozenset(_PARTS.split(plain.lower()))  # trainLoss is two words, mAP is one
    if not parts:
        return NOTHING
    if "_".join(parts) in _ELAPSED:
        return Name("elapsed")
    if not words & _NOT_A_LOSS:
        valid = bool(words & VALID_WORDS) or parts[-1] in {"valloss", "validloss", "testloss", "evalloss"}
        train = not valid and (bool(words & _TRAIN_WORDS) or parts[-1] == "trainloss")
        losses = [part for part in parts if part.endswith(("loss", "losses"))]
        if losses:
            part_of_it = words - VALID_WORDS - _TRAIN_WORDS - _WHOLE_WORDS - frozenset(losses)
            return Name("loss", (2 if part_of_it else 0) + (parts[-1] == "epoch"), valid, train)
        if words & _LIKE_LOSSES or words >= {"cross", "entropy"}:
            return Name("loss", 4, valid, train)
        if (
            words & _OTHERS
            or (words & _ERRORS and (valid or train))
            or any(part.startswith(("acc@", "top")) for part in parts)
        ):
            return Name("other", 0, valid, train)
    return _counter(parts)


def _counter(parts: list[str]) -> Name:
    words = frozenset(parts)
    total = bool(words & _TOTALS)
    if words & _NO_COUNTER:
        return NOTHING
    if words & _EPOCHS:
        return Name("epochs") if total or "epochs" in words else Name("epoch", len(parts))
    if words & {"steps", "iters", "iterations"}:
        return Name("steps") if total else Name("step", 8)
    if words & _STEPS:
        if total and "updates" not in words:
            return Name("steps")
        return Name("step", 6 if "batch" in words else len(parts))
    return NOTHING


def joins(word: str) -> bool:
    """Return whether a word before a metric's name belongs to it: ``val`` in ``val loss``, ``best`` in ``best acc``."""
    if "=" in word or ":" in word:
        return False
    parts = frozenset(_PARTS.split(word.lower()))
    return bool(parts & (VALID_WORDS | _TRAIN_WORDS | _PART_WORDS | _NOT_A_LOSS))


def number(text: str) -> float:
    """Parse a printed number, ``,`` grouping thousands."""
    return float(text.replace(",", ""))


MOST = 1e15
"""No count that is believed is larger."""
_LARGE = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def count(text: str) -> int | None:
    """Parse a count of tqdm: ``45``, ``1.20k``, ``3.4M``; None for ``?`` and for absurdly large ones."""
    large = _LARGE.get(text[-1:])
    try:
        value = float(text[:-1]) * large if large else float(text)
    except ValueError:
        return None
    return round(value) if value < MOST else None


_STAMP = re.compile(
    r"(?<!\d)(?:(\d{4})[-/](\d\d)[-/](\d\d)|(\d\d)/(\d\d)/(\d{4}))[T ,]{1,2}(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r" ?(Z|UTC|[-+]\d\d:?\d\d(?!\d))?"
)
_C_STAMP = re.compile(r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 0-3]\d \d\d:\d\d:\d\d \d{4}")
_UNIX = re.compile(
    r"[\"'](?:ts|time|timestamp|created|time_unix|_timestamp)[\"']: ?(1\d{9}(?:\.\d{1,9})?|1\d{12})(?!\d)"
)
_HEAD = 96


def stamp(text: str, zone: tzinfo) -> float | None:
    """Return the line's own timestamp in seconds since 1970; None if it has none, or one without a year.

    Args:
        text: the line. All of a line with braces is searched, else its beginning.
        zone: of timestamps without one. In an hour that a clock change repeats, the earlier reading.
    """
    head = text if "{" in text else text[:_HEAD]
    years = "20" in head or "19" in head  # most lines have no year, and checking for one is far quicker than a search
    if not years and not ("{" in text and ("time" in head or "ts" in head or "created" in head)):
        return None
    found = _STAMP.search(head)
    if found:
        return _when(found, zone)
    if "{" in text:
        unix = _UNIX.search(text)
        if unix:
            seconds = float(unix[1])
            return seconds / 1000 if seconds > 1e11 else seconds
    named = _C_STAMP.search(head)
    if not named:
        return None
    try:
        return datetime.strptime(named[0], "%b %d %H:%M:%S %Y").replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError):
        return None


def _when(found: re.Match[str], zone: tzinfo) -> float | None:
    year, month, day, first, second, late_year, hour, minute, seconds, fraction, offset = found.groups()
    if late_year:  # month first, as in Python's examples and CNTK, unless impossible
        year, month, day = (late_year, first, second) if int(first) <= 12 else (late_year, second, first)
    if offset in {"Z", "UTC"}:
        zone = timezone.utc  # noqa: UP017 - mypy knows this one as a tzinfo everywhere
    elif offset:
        shift = timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:]))
        if shift >= timedelta(days=1):
            return None
        zone = timezone(-shift if offset[0] == "-" else shift)
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(seconds), tzinfo=zone)
        whole = moment.timestamp()
    except (ValueError, OverflowError):
        return None
    return whole + (int(fraction) / 10 ** len(fraction) if fraction else 0)
