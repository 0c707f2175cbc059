"""Parses one line of training output into counters and metrics written as a name and a number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.joblogs.evidence import Step
from gpuctl.joblogs.progress_text import MOST, NOTHING, NUMBER, Name, joins, name_of, number

if TYPE_CHECKING:
    from collections.abc import Iterable

_PAIR = re.compile(
    r"(?<![\w/.@-])([A-Za-z_][\w/.'@+-]{0,63}+)(?:\([\w -]{1,12}\))?(?: is| value)?"
    r"(?:[\"']?[ \t]{0,3}([:=#])[ \t]{0,12}|[ \t]{1,12}|(?=\[))"
    r"(?:tensor\(|np\.float\d\d\(|[aA]rray\()?[\"'\[(#]?[\[( ]{0,6}"
    rf"({NUMBER})(?!\w)"
    r"(?:[ \t]{0,3}(?:/|of)[ \t]{0,8}(\d{1,9})(?!\w))?"
    rf"(?: {{1,2}}\( {{0,6}}({NUMBER})\)(?!\w))?"
    r"(?:[\])]?[)]?[:,]?[ \t]{0,8}\[?[ \t]{0,6}(\d{1,9})[ \t]{0,3}/[ \t]{0,6}(\d{1,9})(?![\w.]))?"
)
_TESTS = re.compile(
    r"(?<![\w/.-])(?:val(?:id(?:at(?:ion|e|ing))?)?|eval(?:uat(?:ion|e|ing))?|test(?:ing)?|dev)(?![\w/.])"
    r"|Saving dict for|Test net output",
    re.IGNORECASE,
)
_METRICS = frozenset(("loss", "other"))
_TEST_STEMS = ("al", "est", "dev", "AL", "EST", "Sav")
_SPLITS = frozenset(("train", "test", "val", "eval"))
_PREFIX = re.compile(
    r"\s{0,12}(?:\[\d{1,5},\d{1,5}\](?:<\w{6}>)?:"
    r"|[\[(]?(?:default|rank|worker|node|gpu|task|process)[ _]?\d{0,5}[\])]?:"
    r"|[\[(]?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[^\s\]|-]{0,16}[\])]?(?: ?[-|:])?"
    r"|[\[(]?\d\d/\d\d/\d{4} \d\d:\d\d:\d\d[\])]?(?: ?[-|:])?"
    r"|[\[(]?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?[\])]?(?: ?[-|:])?"
    r"|[\[(]?(?:DEBUG|INFO|NOTICE|WARNING|WARN)[\])]?(?: ?[-|:])?"
    r"|[IW]\d{4} \d\d:\d\d:\d\d\.\d{1,6}\s{1,8}\d{1,9} [\w.]{1,60}:\d{1,6}\]"
    r"|[A-Za-z_][\w.]{0,40} [-|]|[-|]|\d{1,5}:(?= ))(?=\s|\S)",
    re.IGNORECASE,
)
_PREFIXES = 6
MOST_EPOCHS = 1e7  # above, it is a time in seconds since 1970


class LineMetric(NamedTuple):
    """A metric of a line.

    Attributes:
        name: as printed, with preceding words that belong to it.
        value: may be NaN or infinite.
        kind: meaning of the name.
        start: start of its last word.
        clear: whether a colon or an equals sign precedes the number, and the number has a fraction.
    """

    name: str
    value: float
    kind: Name
    start: int
    clear: bool


class Line:
    """Counters and metrics of one line."""

    __slots__ = ("_epoch_rank", "_step_rank", "elapsed", "epoch", "epochs", "other", "step", "steps", "train", "valid")

    def __init__(self) -> None:
        self.epoch: float | None = None
        self.epochs: float | None = None
        self.step: int | None = None
        self.steps: int | None = None
        self.elapsed: float | None = None
        self.train: LineMetric | None = None
        self.valid: LineMetric | None = None
        self.other: LineMetric | None = None
        self._epoch_rank = self._step_rank = 99

    def counter(self, kind: Name, value: float, total: str | None, inner: str | None, inner_total: str | None) -> None:
        """Record a count if its name is the best so far; the rest as in ``value/total [inner/inner_total]``."""
        if not -MOST < value < MOST:  # also for values that are not numbers
            return
        if kind.kind == "epoch" and kind.rank < self._epoch_rank and 0 <= value < MOST_EPOCHS:
            self._epoch_rank, self.epoch = kind.rank, value
            self.epochs = float(total) if total else self.epochs
            if inner and inner_total and int(inner) <= int(inner_total):
                self.step, self.steps, self._step_rank = int(inner), int(inner_total), 1
        elif kind.kind == "step" and kind.rank < self._step_rank and value.is_integer():
            self._step_rank, self.step = kind.rank, int(value)
            self.steps = int(total) if total else self.steps
        elif kind.kind == "epochs" and self.epochs is None and 0 < value < MOST_EPOCHS:
            self.epochs = value
        elif kind.kind == "steps" and self.steps is None and value.is_integer():
            self.steps = int(value)
        elif kind.kind == "elapsed":
            self.elapsed = value

    def metric(self, found: LineMetric) -> None:
        """Record a metric, if none of its kind is better."""
        kind = found.kind
        if kind.kind == "other":
            self.other = self.other or found
        elif kind.valid:
            if self.valid is None or kind.rank < self.valid.kind.rank:
                self.valid = found
        elif self.train is None or kind.rank < self.train.kind.rank:
            self.train = found

    def metrics(self) -> list[LineMetric]:
        """Return the training loss and the validation loss, or else one other metric if an epoch is stated."""
        losses = [found for found in (self.train, self.valid) if found is not None]
        return losses or ([self.other] if self.other is not None and self.epoch is not None else [])


def pairs(text: str, line: Line) -> None:
    """Collect every counter and metric of a text that is written as a name and a number."""
    first = last = -1
    split, parted = "", False
    for found in _PAIR.finditer(text):
        word = found[1]
        kind = name_of(word)
        start = found.start()
        if kind is NOTHING and word in _SPLITS and (parted or text[max(start - 5, 0) : start] == "loss "):
            parted = True  # litgpt: loss train: 1.062, val: 1.057
            word = f"loss {word}"
            line.metric(
                LineMetric(word, number(found[3]), name_of(word), start, found[2] is not None and "." in found[3])
            )
        elif kind is NOTHING:
            if (found[6] or found[4]) and word.lower() in _SPLITS:
                split = _split(found, line)
        elif kind.kind in _METRICS:
            word, kind = _joined(text, start, word.rstrip("'"), kind)
            if not kind.valid and not kind.train:
                before = _before(text, start, first, last) or split
                if before:
                    word, kind = f"{before} {word}", kind._replace(valid=True)
            if kind.kind in _METRICS:
                # in a validation, the running mean is the result; in training it lags
                printed = found[5] if kind.valid and found[5] else found[3]
                line.metric(LineMetric(word, number(printed), kind, start, found[2] is not None and "." in found[3]))
        else:
            if kind.kind == "epoch":
                kind = _joined(text, start, word, kind)[1]
            line.counter(kind, number(found[3]), found[4], found[6], found[7])
        if first < 0 and kind is not NOTHING:
            first = start
        last = found.end(3)


def _split(found: re.Match[str], line: Line) -> str:
    """Parse ``Train: 3 [ 10/391]`` and ``Test: [ 10/391]`` of timm and PyTorch's examples, with their metrics' kind."""
    if found[6]:
        line.counter(Name("epoch", 1), number(found[3]), None, found[6], found[7])
    else:
        line.counter(Name("step", 1), number(found[3]), found[4], None, None)
    word = found[1].lower()
    return "" if word == "train" else word


def _before(text: str, start: int, first: int, last: int) -> str:
    """Return the word that marks a metric as a validation's: just before it, or at the line's beginning."""
    # most lines have none, and this check is far quicker than a search
    if not any(stem in text for stem in _TEST_STEMS):
        return ""
    test_word = _TESTS.search(text, max(last, 0), start) or _TESTS.search(text, 0, first if first >= 0 else start)
    if not test_word:
        return ""
    return "eval" if test_word[0][0] == "S" else test_word[0].split()[0].lower()


def _joined(text: str, start: int, word: str, kind: Name) -> tuple[str, Name]:
    """Return the name with preceding words that belong to it: ``val loss``, ``best val loss``, ``valid_0's l2``."""
    at = start
    for _ in range(2):
        if at < 2 or text[at - 1] != " ":
            break
        before = text[max(0, at - 24) : at - 1].rsplit(None, 1)
        last = before[-1].lstrip("\"'([{|,;") if before and text[at - 2] != " " else ""
        if not last or not (last[-1].isalnum() or last[-1] == ".") or not joins(last):
            break
        word = f"{last} {word}"
        at -= len(last) + 1
    return (word, name_of(word)) if at != start else (word, kind)


def body(text: str) -> str:
    """Return the line without its prefix of timestamps, ranks, levels and logger names."""
    at = 0
    for _ in range(_PREFIXES):
        found = _PREFIX.match(text, at)
        if not found:
            break
        at = found.end()
    return text[at:].lstrip()


def steps_of(line: Line, metrics: Iterable[LineMetric], line_no: int) -> list[Step]:
    """Return one step for each metric."""
    return [
        Step(line_no, line.epoch, line.epochs, line.step, line.steps, found.name, found.value, line.elapsed)
        for found in metrics
    ]
