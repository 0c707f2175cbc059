"""Checks arguments of the public functions: what types leave open is answered with an error that says what to do."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gpuctl.core.job_filter import JobFilter

PathOrText = str | PathLike[str]
_COMMA = re.compile(r"(?<!\\),")


def is_path(source: object) -> bool:
    """Whether it is a path or the text of one."""
    return isinstance(source, (str, PathLike))


def are_paths(source: object) -> bool:
    """Whether it is a list of at least one path."""
    return isinstance(source, (list, tuple)) and bool(source) and all(map(is_path, source))


def path_of(given: object, what: str = "path") -> Path:
    """Return a path; ``~`` is the user's home, as in a shell.

    Raises:
        UsageError: it is no path.
    """
    if not isinstance(given, (str, PathLike)):
        raise UsageError(f"{what}: expected a path, not {type(given).__name__}", hint="a string or a pathlib.Path")
    if not os.fspath(given):
        raise UsageError(f"{what}: expected a path, not an empty text", hint='"." is the current folder')
    # unlike Path.expanduser it leaves the name of an unknown user as it is
    return Path(os.path.expanduser(given))  # noqa: PTH111


def paths_of(source: object) -> list[Path]:
    """One path or several, as a list.

    Raises:
        UsageError: it is neither.
    """
    if is_path(source):
        return [path_of(source)]
    if isinstance(source, (list, tuple)) and are_paths(source):
        return [path_of(each) for each in source]
    shown = "an empty list" if isinstance(source, (list, tuple)) and not source else type(source).__name__
    raise UsageError(f"expected a path or a list of paths, not {shown}", hint='"logs/" or ["logs/a", "logs/b"]')


def number(name: str, value: object, least: float = -math.inf, most: float = math.inf) -> float:
    """Return an argument that is a number.

    Raises:
        UsageError: it is none, or not from `least` to `most`.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) <= most:
        limits = "" if math.isinf(least) else f" from {least:g} to {most:g}" if math.isfinite(most) else f" ≥ {least:g}"
        raise UsageError(f"{name}={value!r}: expected a number{limits}", hint=f"without quotes, such as {name}=5")
    return float(value)


def listed(name: str, value: object) -> list[Any]:
    """Return an argument that is a list.

    Raises:
        UsageError: it is a single value.
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise UsageError(f"{name}={value!r}: expected a list", hint=f"{name}=[{value!r}]")
    return list(value)


def mapping(name: str, value: object) -> dict[str, Any]:
    """Return an argument that is a dict; None is an empty one.

    Raises:
        UsageError: it is something else.
    """
    if value is not None and not isinstance(value, Mapping):
        raise UsageError(f"{name}: expected a dict, not {type(value).__name__}", hint=f'{name}={{"NAME": VALUE}}')
    return {str(key): each for key, each in (value or {}).items()}


def one_of(name: str, value: object, known: Sequence[object]) -> None:
    """Check an argument that is one of a few values.

    Raises:
        UsageError: it is none of them.
    """
    if value not in known:
        texts = [each for each in known if isinstance(each, str)]
        hint = meant(str(value), texts, f"one of {', '.join(texts)}")
        raise UsageError(f"{name}={value!r}: no such value", hint=hint)


def check_names(given: Collection[str], known: Collection[str]) -> None:
    """Check names of further keyword arguments.

    Raises:
        TypeError: one of them does not exist, as Python says of any other function.
    """
    strange = next((name for name in given if name not in known), None)
    if strange is not None:
        raise TypeError(f"unexpected keyword argument {strange!r}; {meant(strange, sorted(known))}")


def job_filter(where: Mapping[str, object] | None) -> JobFilter:
    """The filter that a mapping of its options makes. A text may name several, separated by commas; a list has names.

    Raises:
        UsageError: a key or value makes no sense.
    """
    from gpuctl.core.job_filter import NAMES, parse

    lists, single = (*NAMES, "state"), ("gpus", "since", "until")
    options: dict[str, Any] = {}
    for key, value in mapping("where", where).items():
        if key not in {*lists, *single}:
            raise UsageError(f"where: no filter {key!r}", hint=meant(key, [*lists, *single]))
        if isinstance(value, (list, tuple)) and not value:
            raise UsageError(f"where: {key} is an empty list", hint=f"without {key!r} every job matches")
        if key in single:
            options[key] = str(value)
        elif isinstance(value, str) or not isinstance(value, Iterable):
            options[key] = [str(value)]
        else:
            options[key] = [_COMMA.sub(r"\\,", str(each)) for each in value]
    return parse(**options)
