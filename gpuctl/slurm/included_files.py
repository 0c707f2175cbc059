"""The statements of slurm.conf, including those of included files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.slurm.conf import statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

MOST_INCLUDED = 100
_INCLUDE = re.compile(r"include\s+(.+)", re.IGNORECASE)


def conf_statements(stream: BinaryIO, open_include: Callable[[str], BinaryIO] | None) -> Iterator[tuple[str, str]]:
    """Yield the location and text of each statement; an ``Include`` is replaced by the statements of its file.

    Args:
        stream: of slurm.conf.
        open_include: opens the file that an ``Include`` names; None: it is rejected.

    Raises:
        InputError: a statement cannot be parsed, or an ``Include`` cannot be followed: the file does not exist, it was
            included before, or there are more than `MOST_INCLUDED`.
    """
    yield from _of_file("slurm.conf", stream, open_include, [])


def _of_file(
    title: str, stream: BinaryIO, open_include: Callable[[str], BinaryIO] | None, included: list[str]
) -> Iterator[tuple[str, str]]:
    for statement in statements(stream):
        where = f"{title}, line {statement.line_no}"
        if statement.fault:
            raise InputError(f"{where}: {statement.fault}")
        other = _INCLUDE.fullmatch(statement.text)
        if other is None:
            yield where, statement.text
            continue
        if open_include is None:
            raise InputError(f"{where}: names another file: put its contents in its place")
        name = other[1].strip().strip('"')
        # a second inclusion is a cycle, or would repeat all of its settings
        if name in included or len(included) >= MOST_INCLUDED:
            what = "a second time" if name in included else f"after {MOST_INCLUDED} others"
            raise InputError(f"{where}: includes {name} {what}")
        included.append(name)
        try:
            inner = open_include(name)
        except InputError as bad:
            raise InputError(f"{where}: {bad}", hint=bad.hint) from None
        with inner:
            yield from _of_file(name, inner, open_include, included)
