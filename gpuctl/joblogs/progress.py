"""Reads training progress from a job's own output: epochs, steps, losses and other metrics.

`PATTERNS` pick candidate lines in the one pass over a log; `Parser` reads those lines. docs/how-to/progress.md lists
the supported programs and the sources of their wordings.

A line with several metrics yields one training loss and one validation loss (the total before its parts), or, without a
loss, one other metric. Of ``0.12 (0.15)``, a value and its running mean, the first is used, in a validation the second.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING

from gpuctl.core.durations import progress_time
from gpuctl.joblogs.evidence import Step
from gpuctl.joblogs.progress_line import MOST_EPOCHS, Line, LineMetric, body, pairs, steps_of
from gpuctl.joblogs.progress_marks import PATTERNS as MARKS
from gpuctl.joblogs.progress_marks import marks_of
from gpuctl.joblogs.progress_text import NUMBER, Name, count, name_of, number, stamp

if TYPE_CHECKING:
    from datetime import tzinfo

LINE_LIMIT = 4096
"""Characters of a line that are looked at."""

PATTERNS: tuple[bytes, ...] = (
    # a loss and its number, in any of the ways to write that
    rb"(?i)loss(?:es)?(?: is| value)?[\"']?(?: ?[:=] {0,4}|[ \t]{1,4})[\"'\[(]?(?:tensor\(|np\.float\d\d\(|array\()?"
    rb"[-+]?(?:\d|\.\d|nan|inf)",
    rb"(?i)loss (?:train|val): {0,2}\d",
    rb"(?i)loss[_-](?:step|epoch|[dg])[\"']?(?: ?[:=] {0,4}|[ \t]{1,4})[-+]?(?:\d|nan|inf)",
    # an epoch and its number: headings, bars, everything that prints its loss under another name
    rb"(?i)epoch(?:\([a-z]{3,5}\))?[\"']?[ \t:=#\[(]{0,6}\d",
    # tqdm's bars, with and without a known end
    rb"\d:\d\d<",
    rb"\d(?:it|steps?|batch(?:es)?) \[\d\d:",
    # the bars of Keras and Rich, after colours were taken out
    rb"\d/(?:\d{1,9}|Unknown) {1,3}(?:\[[=>.]{3}|\xe2\x94\x81|- \d|- ETA|\d{1,6}s )",
    rb"\d:\d\d:\d\d \xe2\x80\xa2 ",
    # metrics that are losses by other names
    rb"(?i)(?:ppl|perplexity|nll|xent|entropy|rmse|mse|mae|mape|rmsle|merror|deviance|bpb|objective|cost)[\"']?"
    rb"(?: ?[:=] {0,4}| )[-+]?(?:\d|nan|inf)",
    # rounds of boosting
    rb"(?i)\[\d{1,7}\]\t[a-z]",
    rb"\[Info\] Iteration:\d",
    # Caffe prints the iteration of a test on the preceding line; darknet
    rb"Iteration \d{1,9}, Testing net",
    rb"\d, \d{1,6}\.\d{1,8} avg",
    # tables: the heading, and rows of at least two numbers
    rb"(?i)^[ |]{0,12}(?:epoch|iter|iteration|step)[ \t|]{2,12}[a-z_]{3}",
    *MARKS,
    rb"^[ |]{0,12}\d{1,7}(?:/\d{1,7})?[ \t|]{2,16}-?\d{1,7}(?:\.\d{1,8}[ \t|]{2,16}-?\d{1,7}\.|(?:\.\d{1,3})?G[ \t|])",
)
"""Hyperscan expressions, multiline, all other flags inside; in every candidate line one of them finds something."""

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_BAR = re.compile(
    r"\d{1,3}%(?:\|[^|]{0,300}\|)?\s{0,8}([\d.]{1,12}[kMGT]?)/([\d.]{1,12}[kMGT]?|\?)\s{0,4}\[([\d:]{1,12})<[^,\]]{1,24}"
    r"(?:, {1,4}[\d.?]{1,12}(?:([a-zA-Z]{1,12})/s|s/([a-zA-Z]{1,12})))?"
)
_COUNT_BAR = re.compile(
    r"(?<![\d.])(\d[\d.]{0,11}[kMGT]?)(it|steps?|batch(?:es)?) \[([\d:]{1,12})"
    r"(?:, {1,4}[\d.?]{1,12}(?:\w{1,12}/s|s/\w{1,12}))?"
)
_RICH_BAR = re.compile(r"(\d{1,9})/(\d{1,9}) (\d{1,4}:\d\d:\d\d) • [-\d:]{1,12}")
_BAR_UNITS = frozenset(
    [
        "it",
        "its",
        "batch",
        "batches",
        "step",
        "steps",
        "epoch",
        "epochs",
        "iter",
        "iters",
        "sample",
        "samples",
        "example",
        "examples",
        "img",
        "imgs",
        "seq",
    ]
)
_TRAINING_BAR = re.compile(r"epoch|train|step|iter(?!at(?:or|ing))|batch|fit", re.IGNORECASE)
_EPOCHS_BAR = re.compile(r"epochs?\W{0,4}$", re.IGNORECASE)
_OTHER_BAR = re.compile(r"sanity|valid|test|predict|eval|load|download|map|token", re.IGNORECASE)
_DESC_OF = re.compile(r"[\[(](\d{1,6})/(\d{1,6})[\])]")
_KERAS = re.compile(
    r"(?:^|[\s:\]])(\d{1,9})/(\d{1,9}|Unknown|None)\s{1,3}"
    r"(?:\[[=>.]{1,80}\]|[━╸╺]{1,80}|(?=- (?:\d|ETA))|(?=\d{1,6}s ))"
    r"(?: ?-)? {0,2}(?:ETA: [\d:]{1,9}s?|(\d{1,7})s)?"
)
_TWO_OF = re.compile(r"\[(\d{1,6})/(\d{1,6})\]\s?\[(\d{1,9})/(\d{1,9})\]")
_BRACKET = re.compile(r"\[\s{0,8}(\d{1,9})\s?/\s{0,8}(\d{1,9})\s?[\](]")
_ROUND = re.compile(r"\[(\d{1,7})\]\s")
_TWO = re.compile(r"\[(\d{1,6}),\s{0,8}(\d{1,9})\]\s{1,4}(?=[a-z]{0,8} ?loss)", re.IGNORECASE)
_BOOSTED = re.compile(rf"([A-Za-z][\w@.'-]{{0,60}})(?: ([\w@.-]{{1,40}}))? ?: ?({NUMBER})(?!\w)")
_BOOST_INFO = re.compile(r"Iteration:(\d{1,9}), ")
_CNTK = re.compile(
    r"Epoch\[ {0,6}(\d{1,6}) of (\d{1,6})\](?:-Minibatch\[ {0,8}(?:\d{1,9}- {0,8})?(\d{1,9})[^\]]{0,24}\])?:"
    rf" {{1,2}}(?:\[(Training|Validat)[^\]]{{0,16}}\] {{1,2}})?([A-Za-z][\w.]{{0,60}}) = ({NUMBER})(?!\w)"
)
_DARKNET = re.compile(rf"^\s{{0,4}}(\d{{1,9}}): ({NUMBER}), {NUMBER} avg(?: loss)?, ")
_CAFFE_TEST = re.compile(r"Iteration (\d{1,9}), Testing net")
_RAISED = re.compile(r"[A-Za-z_][\w.]{0,100}(?:Error|Exception): ")
_HEADING = re.compile(
    r"[\W_]{0,60}"
    r"(?:(?:start(?:ing|ed|ing of)?|begin(?:ning)?|training|train|running|finished|end of|completed)[ :]{1,3}){0,2}"
    r"epoch\s{0,3}[:#=]?\s{0,3}[\[(#]?\s{0,6}(\d{1,7})(?!\w)(?!\.\d)(?:\s{0,3}(?:/|of)\s{0,6}(\d{1,7}))?",
    re.IGNORECASE,
)
_HEADING_REST = re.compile(
    r"[\])]?[\W_]{0,80}(?:(?:started|starts|begins?|finished|completed?|done|took|ended)\b.{0,80})?$"
)
_HEADING_WORDS = frozenset(("epoch", "iter", "iteration", "step"))


class Parser:
    """Reads the candidate lines of one log, in their order.

    Some lines depend on previous ones: Keras prints the epoch above its bars, tables name their columns once.

    Args:
        zone: of timestamps without one.
    """

    def __init__(self, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self._epoch: float | None = None
        self._epochs: float | None = None
        self._bar_total: str | None = None  # of the Keras bar that has completed in this epoch
        self._bar_second = "", ""
        self._columns: list[Name] = []
        self._column_names: list[str] = []
        self._testing_at: int | None = None

    def read(self, line: str, line_no: int) -> list[Step]:
        """Read one candidate line.

        Args:
            line: one line, or one piece between carriage returns; only its first `LINE_LIMIT` characters are used.
            line_no: 1-based, passed on.

        Returns:
            Nothing if the line shows no training, or is one of several updates of a bar within a second and not the
            last; else one step, or two with the same line number for a training and a validation loss.
        """
        text = line[:LINE_LIMIT]
        if "\x1b" in text:
            text = _ANSI.sub("", text)
        if "\b" in text:
            text = text.replace("\b", "")
        if "\\" in text:  # a message inside JSON
            text = text.replace("\\t", " ").replace("\\n", " ").replace('\\"', '"')
        steps = [*self._read(text, line_no), *marks_of(text, line_no)]
        if steps:
            ts = stamp(text, self._zone)
            if ts is not None:
                return [Step(*step[:-1], ts) for step in steps]
        return steps

    def _read(self, text: str, line_no: int) -> list[Step]:
        if "<" in text or "it/s" in text or "s/it" in text or "it [" in text:
            steps = self._bar(text, line_no)
            if steps is not None:
                return steps
        if self._columns:
            steps = self._row(text, line_no)
            if steps:
                return steps
        if "/" in text and ("━" in text or "[=" in text or "[>" in text or "s - " in text or "Unknown" in text):
            bar = _KERAS.search(text)
            if bar and "poch" not in text[max(bar.start() - 8, 0) : bar.start()]:
                return self._keras(text, bar, line_no)
        if ("Error: " in text or "Exception: " in text) and _RAISED.match(body(text)):
            return []
        if "train_runtime" in text:  # Hugging Face's last line: the loss is the mean over the whole training
            return []
        if "\t" in text or "[Info] Iteration:" in text:
            steps = _boosting(text, line_no)
            if steps:
                return steps
        if " = " in text and "poch[" in text and "RateSearch" not in text:
            cntk = _CNTK.search(text)
            if cntk:
                return _of_cntk(cntk, line_no)
        return self._plain(text, line_no)

    def _plain(self, text: str, line_no: int) -> list[Step]:
        line = Line()
        pairs(text, line)
        metrics = line.metrics()
        if not metrics:
            heading = _HEADING.match(body(text)) if "poch" in text or "POCH" in text else None
            if heading:
                self._heading(heading)
            return self._without_metric(text, heading, line_no)
        if line.epoch is None or line.step is None:
            self._fill(text, line)
        counted = line.epoch is not None or line.step is not None
        if line.epoch is None:
            line.epoch, line.epochs = self._epoch, self._epochs
        elif line.epoch != self._epoch and "{" not in text:
            self._epoch, self._epochs = line.epoch, line.epochs
        if not counted:
            metrics = [found for found in metrics if found.clear] if line.epoch is not None else _alone(text, metrics)
        return steps_of(line, metrics, line_no)

    def _fill(self, text: str, line: Line) -> None:
        """Parse counters without a name: ``[1,  2000] loss``, ``[100] loss=0.3``, ``loss: 0.3  [ 64/60000]``."""
        if line.epoch is None and line.step is None:
            two = _TWO.search(text)
            if two:
                line.epoch, line.step = float(two[1]), int(two[2])
                return
            four = _TWO_OF.search(text)
            if four:
                line.epoch, line.epochs, line.step, line.steps = (
                    float(four[1]),
                    float(four[2]),
                    int(four[3]),
                    int(four[4]),
                )
                return
        if line.step is None:
            bracket = _BRACKET.search(text)
            if bracket and int(bracket[1]) <= int(bracket[2]):
                line.step, line.steps = int(bracket[1]), int(bracket[2])
            elif line.epoch is None:
                numbered = _ROUND.match(body(text))
                if numbered:
                    line.step = int(numbered[1])
        if line.step is None and self._testing_at is not None and "Test net output" in text:
            line.step = self._testing_at

    def _heading(self, found: re.Match[str]) -> None:
        epoch = float(found[1])
        if epoch < MOST_EPOCHS:
            self._epoch, self._epochs = epoch, float(found[2]) if found[2] else None
            self._bar_total = None

    def _without_metric(self, text: str, heading: re.Match[str] | None, line_no: int) -> list[Step]:
        if heading:
            words = heading.string
            if _HEADING_REST.match(words, heading.end()) and float(heading[1]) < MOST_EPOCHS:
                return [Step(line_no, self._epoch, self._epochs)]
        darknet = _DARKNET.match(text) if " avg" in text else None
        if darknet:
            return [Step(line_no, step=int(darknet[1]), metric="loss", value=number(darknet[2]))]
        if "Testing net" in text:
            testing = _CAFFE_TEST.search(text)
            self._testing_at = int(testing[1]) if testing else None
        else:
            self._table_heading(text)
        return []

    def _bar(self, text: str, line_no: int) -> list[Step] | None:
        mark = text.find("<")
        at = text.rfind("%", 0, max(mark, 0))
        if at >= 3 and not text.startswith("100", at - 3):
            second = text[: at - 3], text[mark - 5 : mark]
            if second == self._bar_second:
                return []  # a bar may be printed ten times per second
            self._bar_second = second
        bar, total, unit = _BAR.search(text), None, "it"
        if bar:
            done, total, elapsed = bar[1], count(bar[2]), bar[3]
            unit = bar[4] or bar[5] or "it"
        else:
            bar = _RICH_BAR.search(text) or _COUNT_BAR.search(text)
            if not bar:
                return None
            done, elapsed = bar[1], bar[3]
            total = int(bar[2]) if bar[2].isdecimal() else None
        if self._columns and "/" in text[: bar.start()]:
            rows = self._row(text[: bar.start()].rstrip(" :"), line_no)
            if rows:
                return rows
        line = Line()
        before = text[: bar.start()]
        pairs(before, line)
        pairs(text[bar.end() :], line)
        metrics = line.metrics()
        if unit.lower() not in _BAR_UNITS and unit.lower() not in {"ba", "ex"}:
            return []
        what = body(before).strip()
        if not metrics and what and (_OTHER_BAR.search(what) or not _TRAINING_BAR.search(what)):
            return []
        step = count(done)
        if line.epoch is None and _EPOCHS_BAR.search(what) and step is not None:
            line.epoch, line.epochs, step, total = float(step), float(total) if total else None, line.step, line.steps
        elif line.epoch is None:
            of = _DESC_OF.search(what)
            line.epoch, line.epochs = (float(of[1]), float(of[2])) if of else (self._epoch, self._epochs)
        line.step, line.steps, line.elapsed = step, total, progress_time(elapsed)
        if step is not None and total is not None and step < total:
            # Lightning shows the last epoch's validation loss with this epoch's batches
            metrics = [found for found in metrics if not found.kind.valid]
        return steps_of(line, metrics, line_no) or [
            Step(line_no, line.epoch, line.epochs, line.step, line.steps, None, None, line.elapsed)
        ]

    def _keras(self, text: str, bar: re.Match[str], line_no: int) -> list[Step]:
        done, total, seconds = bar.groups()
        line = Line()
        pairs(text[bar.end() :], line)
        metrics = line.metrics()
        if not metrics and "step" not in text[bar.end() - 8 :] and "ETA" not in text:
            return []
        if self._bar_total is not None and (done != total or self._bar_total != total):
            return []  # another bar in the same epoch: an evaluation, whose loss is not this epoch's
        if done == total:
            self._bar_total = total
            line.elapsed = float(seconds) if seconds else None
        line.step, line.steps = int(done), int(total) if total.isdecimal() else None
        if line.epoch is None:
            line.epoch, line.epochs = self._epoch, self._epochs
        return steps_of(line, metrics, line_no) or [
            Step(line_no, line.epoch, line.epochs, line.step, line.steps, None, None, line.elapsed)
        ]

    def _table_heading(self, text: str) -> None:
        words = text.replace("|", " ").split()
        if 3 <= len(words) <= 40 and words[0].lower() in _HEADING_WORDS:
            names = [name_of(word) for word in words]
            if any(name.kind == "loss" for name in names) and not any(word[0].isdigit() for word in words):
                self._columns, self._column_names = names, words

    def _row(self, text: str, line_no: int) -> list[Step]:
        cells = text.replace("|", " ").split()
        if len(cells) != len(self._columns) or not cells[0][0].isdigit():
            return []
        line = Line()
        for cell, name, kind in zip(cells, self._column_names, self._columns, strict=True):
            printed, _, total = cell.rstrip(":").partition("/")
            if kind.kind == "nothing" or not printed[-1:].isalnum():
                continue
            try:
                value = number(printed)
            except ValueError:
                return []
            if kind.kind in {"loss", "other"}:
                line.metric(LineMetric(name, value, kind, 0, clear=True))
            else:
                line.counter(kind, value, total if total.isdecimal() else None, None, None)
        return steps_of(line, line.metrics(), line_no)


def _alone(text: str, metrics: list[LineMetric]) -> list[LineMetric]:
    """Return a loss without any counter if the line begins with it, as in ``val_loss: 0.31``."""
    head = len(text) - len(body(text))
    return [found for found in metrics if found.clear and found.start - head <= len(found.name)]


def _boosting(text: str, line_no: int) -> list[Step]:
    """Parse LightGBM's ``[10] valid_0's l2: 0.24``, XGBoost's ``[10] train-rmse:0.24``, LightGBM's own program."""
    head = _BOOST_INFO.search(text) or _ROUND.match(text, len(text) - len(body(text)))
    if not head:
        return []
    line = Line()
    line.step = int(head[1])
    found = [
        (f"{first} {second}" if second else first, printed)
        for first, second, printed in _BOOSTED.findall(text, head.end())
    ]
    for name, printed in found:
        kind = name_of(name)
        if kind.kind == "loss":
            line.metric(LineMetric(name, number(printed), kind, 0, clear=True))
    metrics = line.metrics()
    if not metrics and found and "\t" in text:
        metrics = [LineMetric(found[0][0], number(found[0][1]), Name("other"), 0, clear=True)]
    return steps_of(line, metrics, line_no)


def _of_cntk(found: re.Match[str], line_no: int) -> list[Step]:
    epoch, epochs, batch, what, name, value = found.groups()
    if name_of(name).kind != "loss":
        name = f"criterion {name}"  # CNTK first prints the network's own name of its training criterion
    if what == "Validat":
        name = f"validate {name}"
    return [Step(line_no, float(epoch), float(epochs), int(batch) if batch else None, None, name, number(value))]
