"""Goes through JSON documents piece by piece: objects with an array inside, arrays, and runs of objects.

Commands print their list inside an object: Slurm's as ``jobs`` or ``nodes``, kubectl as ``items``. The array may stand
before or after the object's other members, and several documents may follow one another.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.ingest.read.json_stream import (
    CUT_OFF,
    NOT_CLOSED,
    NOT_JSON,
    OBJECT_LIMIT,
    Element,
    Window,
    decoded,
    faulty,
    may_go_on,
    next_element,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]:]', re.DOTALL)
_KEY = re.compile(r'[\s,]*("(?:[^"\\]++|\\.)*+")\s*:\s*', re.DOTALL)
# A whole job begins with its account. So does its association, which goes on with the cluster.
_JOB_START = re.compile(
    r'\{\s{0,16}"account"\s{0,2}:\s{0,2}(?:null|"[^"\\]{0,32}")\s{0,2},\s{0,16}"(?:comment|allocation_nodes)"'
)


class Shape(NamedTuple):
    """What documents look like.

    Attributes:
        arrays: the names that the array inside an object may have.
        marks: keys of which a record that stands by itself has at least one.
        record_start: what a record begins with as a rule. It decides where reading goes on after damage, and nothing
            else: keys may come in any order.
        expected: what a file should hold, for the error if it holds something else. hint: what to do then.
    """

    arrays: frozenset[str]
    marks: frozenset[str]
    record_start: re.Pattern[str]
    expected: str
    hint: str


SACCT = Shape(
    frozenset({"jobs"}),
    frozenset({"job_id"}),
    _JOB_START,
    "an object with an array of jobs, as sacct --json prints",
    "write it again with: sacct --json -a -D -S START -E END > FILE",
)


def jobs(stream: BinaryIO) -> Iterator[Element]:
    """Yield every element of the arrays ``jobs``, of bare arrays, and objects of jobs that stand by themselves.

    Faults are those of `gpuctl.ingest.read.json_stream.elements`.

    Args:
        stream: decompressed bytes, UTF-8.

    Raises:
        InputError: there is no such array, and no job.
    """
    for _, found in documents(stream, SACCT):
        yield from found


def documents(
    stream: BinaryIO, shape: Shape, limit: int = OBJECT_LIMIT
) -> Iterator[tuple[Mapping[str, Any], Iterator[Element]]]:
    """Yield every document: the members around its array, and the array's elements.

    The members are complete only after the last element was taken; all elements must be taken before the next
    document. Of a bare array, and of a record by itself, there are no members.

    Args:
        stream: decompressed bytes, UTF-8.
        shape: what to look for.
        limit: most characters of one element or member.

    Raises:
        InputError: nothing in it has this shape.
    """
    window = Window(stream)
    begins, known = None, False
    while window.more(limit):
        begins = window.text[window.pos : window.pos + 40] if begins is None else begins
        char = window.text[window.pos]
        around: dict[str, Any] = {}
        if char == "[":
            window.advance(window.pos + 1)
            known = True
            yield around, _array(window, shape, limit)
        elif char == "]":
            window.advance(window.pos + 1)
        elif char == "{" and _has_array(window, shape, limit):
            known = True
            yield around, _members(window, shape, limit, around)
        else:
            by_itself = shape.record_start.match(window.text, window.pos) is not None
            element, whole = next_element(window, shape.record_start, limit)
            by_itself |= isinstance(element.value, dict) and not shape.marks.isdisjoint(element.value)
            if not (known or by_itself or (whole and element.fault)):
                raise _other(begins, shape)
            known = True
            yield around, iter((element,))
            if not whole:
                return
    if not known:
        raise _other(begins or "", shape)


def members(
    stream: BinaryIO, of: str, record_start: re.Pattern[str], limit: int = OBJECT_LIMIT
) -> Iterator[tuple[Mapping[str, Any], str, Element]]:
    """Yield the members of an object inside each document: ``{"Jobs": {"1": {...}, "2": {...}}, "time": 7}``.

    Args:
        stream: decompressed bytes, UTF-8.
        of: the name of that object.
        record_start: what a member begins with, its name in quotes; reading goes on there after damage.
        limit: most characters of one member.

    Returns:
        the document's other members before it, the member's name (empty where it cannot be read), and its value.
    """
    window = Window(stream)
    around: dict[str, Any] = {}
    inside = False
    while window.more(limit):
        char = window.text[window.pos]
        if char in "{}":
            window.advance(window.pos + 1)
            inside, around = inside and char == "{", around if inside or char == "{" else {}
            continue
        name = _key_here(window, limit)
        if name is None:
            element, whole = faulty(window, CUT_OFF if window.ended else NOT_JSON, record_start, limit)
            yield around, "", element
            # what follows the damage begins as a member does
            inside = True
        elif name == of and not inside and window.text[window.pos : window.pos + 1] == "{":
            window.advance(window.pos + 1)
            inside, whole = True, True
        else:
            element, whole = next_element(window, record_start, limit)
            if inside:
                yield around, name, element
            elif element.fault is None:
                around[name] = element.value
        if not whole:
            return


def _key_here(window: Window, limit: int) -> str | None:
    """Read the name of the member that begins here and go on to its value; None if there is none."""
    while (key := _KEY.match(window.text, window.pos)) is None or key.end() == len(window.text):
        if window.ended or window.held() > limit or (key is None and window.text[window.pos] != '"'):
            return None
        window.grow(limit)
    name = _name(key[1])
    if name is not None:
        window.advance(key.end())
    return name


def has_array(head: str, names: frozenset[str]) -> bool:
    """Whether an object that begins here has an array of one of these names among its own members, as far as visible.

    Args:
        head: text that begins with ``{``.
        names: of the array.
    """
    return _array_ahead(head, 0, names)


def _array_ahead(text: str, pos: int, names: frozenset[str]) -> bool:
    depth, words = 0, ["", ""]
    for token in _TOKEN.finditer(text, pos):
        mark = token[0]
        if mark in "{[":
            if mark == "[" and depth == 1 and words[1] == ":" and words[0][1:-1] in names:
                return True
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth <= 0:
                return False
        words = [words[1], mark]
    return False


def _has_array(window: Window, shape: Shape, limit: int) -> bool:
    """Whether the current object has the array; no more of it is held than needed."""
    while True:
        value, fault = decoded(window)
        if fault is None:
            return isinstance(value, dict) and any(isinstance(value.get(name), list) for name in shape.arrays)
        if _array_ahead(window.text, window.pos, shape.arrays):
            return True
        if isinstance(fault, RecursionError) or not may_go_on(fault, window) or window.ended or window.held() > limit:
            return False
        window.grow(limit)


def _array(window: Window, shape: Shape, limit: int) -> Iterator[Element]:
    """The elements up to the bracket that closes the array, which is passed."""
    damaged = False
    while window.more(limit):
        if window.text[window.pos] == "]":
            window.advance(window.pos + 1)
            return
        element, whole = next_element(window, shape.record_start, limit)
        damaged = element.fault is not None
        yield element
        if not whole:
            return
    if not damaged:
        yield Element(window.line, None, NOT_CLOSED, b"")


def _members(window: Window, shape: Shape, limit: int, around: dict[str, Any]) -> Iterator[Element]:
    """The elements of an object's arrays; its other members are put into `around`."""
    window.advance(window.pos + 1)
    arrays = 0
    while window.more(limit):
        if window.text[window.pos] == "}":
            window.advance(window.pos + 1)
            return
        while (key := _KEY.match(window.text, window.pos)) is None or key.end() == len(window.text):
            if window.ended or window.held() > limit:
                break
            window.grow(limit)
        name = _name(key[1]) if key is not None else None
        if key is not None and name in shape.arrays and window.text[key.end() : key.end() + 1] == "[":
            window.advance(key.end() + 1)
            arrays += 1
            yield from _array(window, shape, limit)
            continue
        if key is not None and key.end() < len(window.text):
            window.advance(key.end())
            element, whole = next_element(window, shape.record_start, limit)
        else:
            element, whole = faulty(window, CUT_OFF, shape.record_start, limit)
        if element.fault is None:
            around[name or ""] = element.value
        elif whole:
            # records follow the damage
            yield element
            arrays += 1
            yield from _array(window, shape, limit)
        else:
            if not arrays:
                yield element
            return


def _name(text: str) -> str | None:
    try:
        return str(json.loads(text))
    except ValueError:
        return None


def _other(begins: str, shape: Shape) -> InputError:
    if begins.startswith(("%YAML", "---")):
        return InputError("YAML is not read; print the same as JSON, with --json instead of --yaml", hint=shape.hint)
    return InputError(f"begins with {begins!r}; expected {shape.expected}", hint=shape.hint)
