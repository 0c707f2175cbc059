"""Conditions on metrics for ``gpuctl report --fail-if``: parsed, and compared with measured values.

A condition is ``METRIC OP NUMBER`` or ``METRIC OP baseline``, the latter with ``* NUMBER``, ``+ NUMBER`` or ``-
NUMBER`` after it; OP is one of ``> >= < <= == !=``. ``METRIC{label=value}`` selects the value with that label,
``{label=*}`` each of them; without braces, the value that has no labels, or all if each has some. ``{result=NAME}``
selects one of several results.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.core.storable_text import storable
from gpuctl.core.suggestions import meant
from gpuctl.reports.metrics import METRICS, written

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpuctl.reports.metrics import Value

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
TOTAL = "all"
"""A label's value for the total: matched only if named, never by ``{label=*}``."""
RESULT = "result"
"""Label allowed in every condition: the result to check, if a report has several."""
_FORM = (
    'expected METRIC OP NUMBER, as "queueing.p95_wait_h > 2" or "queueing.p95_wait_h{queue=research} > baseline * 1.1"'
)
_CONDITION = re.compile(
    r"\s*(?P<name>[a-z][a-z0-9_.]{0,80})\s*(?P<labels>\{.{0,2000}\})?\s*(?P<op>>=|<=|==|!=|>|<)\s*"
    r"(?:(?P<number>[-+]?[0-9.eE+-]{1,40})|baseline(?:\s*(?P<sign>[*+-])\s*(?P<by>[0-9.eE+-]{1,40}))?)\s*",
    re.ASCII | re.DOTALL,
)
_LABEL = re.compile(r'\s*([a-z_]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^",{}]*)\s*(,|$)', re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """One condition; if it holds, the report fails.

    Attributes:
        text: as given by the user.
        name: of the metric.
        labels: wanted labels; ``*`` for any value.
        op: one of `OPERATORS`.
        limit: the number; if there is a `sign`, the operand applied to the baseline.
        baseline: whether it compares with the baseline.
        sign: ``*``, ``+``, ``-``, or empty for the baseline itself.
    """

    text: str
    name: str
    labels: Mapping[str, str]
    op: str
    limit: float
    baseline: bool
    sign: str


@dataclass(frozen=True)
class Check:
    """A condition compared with one value.

    Attributes:
        condition: the condition.
        result: name of the result checked.
        key: metric and labels; as in the condition if there is no value.
        value: the measured value; None if there is none.
        limit: the limit; None if there is no such baseline.
        failed: whether the condition holds, or could not be evaluated.
    """

    condition: Condition
    result: str
    key: str
    value: float | None
    limit: float | None
    failed: bool


def parse(text: str) -> Condition:
    """Parse a condition.

    Raises:
        UsageError: it is not a condition, or names no metric.
    """
    # an argument that is not UTF-8 holds lone surrogates
    text = storable(text)
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UsageError(f"--fail-if {text[:200]!r}: not a condition", hint=_FORM)
    known = {metric.name: metric for metric in METRICS}
    if found["name"] not in known:
        hint = meant(found["name"], known, "gpuctl report --metrics lists them")
        raise UsageError(f"--fail-if {text[:200]!r}: there is no metric {found['name']}", hint=hint)
    labels = _labels(found["labels"] or "", text)
    there = {label for metric in METRICS if metric.name == found["name"] for label in metric.labels}
    wrong = next((label for label in labels if label not in there and label != RESULT), None)
    if wrong is not None:
        hint = f"it has: {', '.join(sorted(there))}" if there else "it has none"
        raise UsageError(f"--fail-if {text[:200]!r}: {found['name']} has no label {wrong}", hint=hint)
    return Condition(
        text=text.strip(),
        name=found["name"],
        labels=labels,
        op=found["op"],
        limit=_number(found["number"] or found["by"] or "0", text),
        baseline=found["number"] is None,
        sign=found["sign"] or "",
    )


def _labels(text: str, whole: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at, inner = 0, text[1:-1]
    while at < len(inner):
        part = _LABEL.match(inner, at)
        if part is None or part[1] in found:
            raise UsageError(
                f"--fail-if {whole[:200]!r}: labels are not NAME=VALUE pairs", hint="expected {label=value,...}"
            )
        value = part[2].strip()
        found[part[1]] = re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL) if value.startswith('"') else value
        at = part.end()
    return found


def _number(text: str, whole: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"--fail-if {whole[:200]!r}: {text} is not a finite number", hint=_FORM)
    return number


def relabelled(condition: Condition, change: Callable[[str, str], str]) -> Condition:
    """Return a condition with other values of its labels.

    Args:
        condition: the condition.
        change: maps a label and its value to the new value; not called for ``*``.
    """
    labels = {label: text if text == "*" else change(label, text) for label, text in condition.labels.items()}
    # an operator precedes any number, and follows all braces
    rest = condition.text[condition.text.rfind("}") + 1 if condition.labels else len(condition.name) :]
    return replace(condition, labels=labels, text=f"{written(condition.name, tuple(labels.items()))} {rest.strip()}")


def rekeyed(key: str, change: Callable[[str, str], str]) -> str:
    """Return a metric's name with other values of its labels, as in a table of metrics; without labels, unchanged."""
    name, brace, labels = key.partition("{")
    try:
        found = _labels(brace + labels, key) if brace and labels.endswith("}") else {}
    except UsageError:
        return key
    return written(name, [(label, change(label, text)) for label, text in found.items()]) if found else key


def check(
    condition: Condition, result: str, values: Sequence[Value], before: Mapping[str, float] | None
) -> list[Check]:
    """Evaluate a condition on the values of one result.

    Args:
        condition: which.
        result: the result's name.
        values: all its measured values.
        before: the baseline's values by key; None if there is no baseline.

    Returns:
        one check per selected value; if there is none, one failed check without a value.

    Raises:
        UsageError: the condition refers to a missing baseline.
    """
    if condition.baseline and before is None:
        raise UsageError(f"--fail-if {condition.text!r}: there is no baseline", hint="add --baseline FILE.json")
    checks = []
    for value in _meant(condition, values):
        limit = _limit(condition, before, value.key)
        bad = value.value is None or limit is None or OPERATORS[condition.op](value.value, limit)
        checks.append(Check(condition, result, value.key, value.value, limit, bad))
    key = written(condition.name, tuple((label, text) for label, text in condition.labels.items() if label != RESULT))
    return checks or [Check(condition, result, key, None, _limit(condition, before, key), True)]


def _limit(condition: Condition, before: Mapping[str, float] | None, key: str) -> float | None:
    if not condition.baseline:
        return condition.limit
    old = (before or {}).get(key)
    if old is None or not condition.sign:
        return old
    by = condition.limit
    limit = old * by if condition.sign == "*" else old + by if condition.sign == "+" else old - by
    return limit if math.isfinite(limit) else None


def _meant(condition: Condition, values: Sequence[Value]) -> list[Value]:
    named = [value for value in values if value.metric.name == condition.name]
    wanted = {label: text for label, text in condition.labels.items() if label != RESULT}
    if not wanted:
        plain = [value for value in named if not value.labels]
        return plain or [value for value in named if TOTAL not in dict(value.labels).values()]
    return [
        value
        for value in named
        if set(wanted) <= {label for label, _ in value.labels}
        and all(
            wanted.get(label, "*") == text or (wanted.get(label, "*") == "*" and text != TOTAL)
            for label, text in value.labels
        )
    ]
