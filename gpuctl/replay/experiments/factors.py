"""Lists of values as a command line has them: ``0.8:1.4:0.1``, ``1..10``, ``0,2,4``."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from gpuctl.core.errors import UsageError

MOST = 10_000
"""Most values of a list, so that a typing error does not fill the disk."""


def values(text: str, what: str) -> tuple[str, ...]:
    """Return the values that a list names, in its order, each once.

    Args:
        text: values with commas between them. ``A:B:S`` stands for A, A + S, … up to and including B, ``A..B`` for the
            whole numbers from A to B.
        what: the option, for errors.

    Raises:
        UsageError: it names no value, too many, or an invalid range.
    """
    found: dict[str, None] = {}
    for part in (one.strip() for one in text.split(",")):
        if not part:
            raise UsageError(f"{what} {text}: a value is missing between two commas", hint="0.8,1,1.2 or 0.8:1.4:0.1")
        for value in _part(part, what):
            found.setdefault(value)
            if len(found) > MOST:
                raise UsageError(f"{what} {text}: more than {MOST:,} values", hint="give a larger step")
    return tuple(found)


def _part(text: str, what: str) -> tuple[str, ...]:
    if ".." in text:
        first, _, last = text.partition("..")
        return _steps(_number(first, text, what, whole=True), _number(last, text, what, whole=True), Decimal(1), text)
    if text.count(":") == 2:
        low, high, step = (_number(one, text, what) for one in text.split(":"))
        return _steps(low, high, step, text)
    return (text,)


def _steps(first: Decimal, last: Decimal, step: Decimal, text: str) -> tuple[str, ...]:
    if step <= 0 or last < first:
        raise UsageError(f"{text}: expected FIRST:LAST:STEP that ascends", hint="0.8:1.4:0.1, or 1..10")
    count = int((last - first) / step) + 1
    if count > MOST:
        raise UsageError(f"{text}: {count:,} values, more than {MOST:,}", hint="give a larger step")
    return tuple(f"{(first + k * step).normalize():f}" for k in range(count))


def _number(text: str, whole_text: str, what: str, *, whole: bool = False) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or abs(number) > 10**15 or (whole and number != number.to_integral_value()):
        kind = "a whole number" if whole else "a number"
        hint = "1..10 is for whole numbers; others need a step: 0.8:1.4:0.1" if whole else "0.8:1.4:0.1, or 1..10"
        raise UsageError(f"{what} {whole_text}: {text.strip() or 'nothing'!r} is not {kind}", hint=hint)
    return number
