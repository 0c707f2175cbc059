"""Takes single values out of decoded JSON."""

from __future__ import annotations

from gpuctl.ingest.yarn.resources import number_of

_LONGEST_TEXT = 16_384
_NONE = frozenset({"", "null", "N/A", "n/a"})


def text_of(value: object) -> str | None:
    """Return a text, cut at 16 384 characters; None for what is none and for YARN's ways to write none."""
    return value[:_LONGEST_TEXT] if isinstance(value, str) and value not in _NONE else None


def whole_of(value: object) -> int | None:
    """Return a whole number of at most 31 bits; None for all else."""
    number = number_of(value)
    return int(number) if number is not None and abs(number) < 2**31 and number == int(number) else None
