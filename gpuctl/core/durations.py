"""Durations as programs and users write them. Each function reads one grammar exactly, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from gpuctl.core.errors import InputError, UsageError

_UNITS_S = (1, 60, 3600, 86_400)
"""Seconds of the parts of ``D:H:MM:SS``, the last part first."""
_ELAPSED = re.compile(r"(?:(\d{1,7})-)?(?:(\d{1,7}):)?(\d{1,7}):(\d{1,2})(?:\.(\d{1,9}))?", re.ASCII)
_ELAPSED_DAYS = re.compile(r"(\d{1,7})-(\d{1,2})(?::(\d{1,2}))?", re.ASCII)
_LIMIT = re.compile(r"(?:(\d{1,7})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")
_NO_LIMIT = frozenset({"infinite", "unlimited", "-1"})
_WALLTIME = re.compile(r"\d{1,6}(?::\d{1,6}){1,3}", re.ASCII)
_MINUTES = {"m": 1, "h": 60, "d": 1440}


def _total(parts: Iterable[str | None]) -> int:
    """Return the seconds of the parts of ``[[D:]H:]MM:SS``; a missing part is 0."""
    return sum(int(part or 0) * unit for part, unit in zip(reversed([*parts]), _UNITS_S, strict=False))


def slurm_elapsed(text: str) -> float | None:
    """Return the seconds of a time in Slurm's output: ``[D-][HH:]MM:SS[.mmm]`` or ``D-HH[:MM]``.

    None for ``UNLIMITED``, ``Partition_Limit`` and the like.
    """
    text = text.strip()
    match = _ELAPSED_DAYS.fullmatch(text)
    if match:
        return float(_total((*match.groups(), None)))
    match = _ELAPSED.fullmatch(text)
    return _total(match.groups()[:4]) + float(f"0.{match[5] or 0}") if match else None


def slurm_limit(name: str, text: str) -> int | None:
    """Return the seconds of a limit in Slurm's configuration: ``min``, ``min:s``, ``h:min:s`` or ``d-h[:min[:s]]``.

    Args:
        name: of the setting, for the message.
        text: the limit; None is returned for no limit.

    Raises:
        InputError: it is none of these.
    """
    if text.strip().lower() in _NO_LIMIT:
        return None
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{name}={text[:60]}: expected a time such as 30, 4:00:00 or 7-0")
    days, *parts = found.groups()
    there = [part for part in parts if part is not None]
    # after days the first part is hours; without them the last part is seconds, except a single number of minutes
    if days is not None:
        return _total((days, *parts))
    return _total(there if len(there) > 1 else (*there, None))


def pbs_walltime(text: str) -> int | None:
    """Return the seconds of a PBS time, ``[[D:]H:]MM:SS`` or a number of seconds; None for anything else."""
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    return _total(text.split(":")) if _WALLTIME.fullmatch(text) else None


def progress_time(text: str) -> float | None:
    """Return the seconds of a time in a progress bar, ``03``, ``01:03`` or ``26:01:03``; None for anything else."""
    seconds = 0
    for part in text.split(":"):
        if not part.isdecimal():
            return None
        seconds = seconds * 60 + int(part)
    return float(seconds)


def minutes_of_option(option: str, text: str) -> int:
    """Return the minutes of the value of an option: ``48h``, ``90m`` or ``2d``.

    Raises:
        UsageError: it is none of these.
    """
    unit = _MINUTES.get(text[-1:], 0)
    number = text[:-1]
    if not unit or not number.isdecimal() or not number.isascii() or not 0 < int(number) * unit <= 30 * 1440:
        raise UsageError(f"{option} {text[:30]}: expected a time of at most 30 days", hint="48h, 90m or 2d")
    return int(number) * unit


def clock_s(text: str) -> int:
    """Return the seconds since 1970 of a date and time without a zone.

    Raises:
        ValueError: the text is not a date and time.
    """
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
