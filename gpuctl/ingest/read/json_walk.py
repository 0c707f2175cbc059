"""Finds an array in a JSON object, as Slurm's commands and kubectl print it, and goes through it piece by piece."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO, cast

from gpuctl.core.errors import InputError
from gpuctl.ingest.read.json_stream import Element, elements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD_LIMIT = 4 * 2**20
"""The array of jobs begins within this many bytes."""

_CHUNK = 2**18
_MEMBERS = ("meta", "errors", "warnings", "last_update", "last_backfill")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:]', re.DOTALL)
# A whole job begins with its account. So does its association, which goes on with the cluster.
_JOB_START = re.compile(
    r'\{\s{0,16}"account"\s{0,2}:\s{0,2}(?:null|"[^"\\]{0,32}")\s{0,2},\s{0,16}"(?:comment|allocation_nodes)"'
)


def jobs(stream: BinaryIO) -> Iterator[Element]:
    """Yield every element of the array ``jobs`` of an object, or of a bare array or run of objects.

    What follows the array is not looked at. Faults are those of `gpuctl.ingest.read.json_stream.elements`.

    Args:
        stream: decompressed bytes, UTF-8.

    Raises:
        InputError: there is no such array.
    """
    return members(stream, (b'"jobs"',), _JOB_START)


def members(stream: BinaryIO, names: Sequence[bytes], record_start: re.Pattern[str]) -> Iterator[Element]:
    """The same of an array of one of some names.

    Args:
        stream: decompressed bytes, UTF-8.
        names: the array's name, in its quotes.
        record_start: what its elements begin with; see `gpuctl.ingest.read.json_stream.elements`.

    Raises:
        InputError: there is no such array.
    """
    for element in elements(cast("BinaryIO", _Inner(stream, names)), record_start):
        if _after_array(element):
            return
        yield element


def _after_array(element: Element) -> bool:
    """Whether this is no element of the array, but the name of the object's next member or the object's end."""
    if element.fault is None:
        return isinstance(element.value, str) and element.value in _MEMBERS
    start = element.raw[1:].decode("utf-8", "replace")
    cut_name = element.raw.startswith(b'"') and any(name.startswith(start) for name in _MEMBERS)
    return cut_name or element.raw.strip() == b"}"


class _Inner:
    """A stream that begins where the array of jobs does; its line ends are those of the whole."""

    def __init__(self, stream: BinaryIO, names: Sequence[bytes]) -> None:
        self._stream = stream
        self._names = names
        self._ready: bytes | None = None

    def read(self, size: int) -> bytes:
        if self._ready is None:
            head = bytearray()
            at = None
            while at is None:
                data = self._stream.read(_CHUNK)
                head += data
                at = array_at(bytes(head), ended=not data or len(head) >= HEAD_LIMIT, names=self._names)
            self._ready = b"\n" * head.count(b"\n", 0, at) + bytes(head[at:])
        if self._ready:
            data, self._ready = self._ready, b""
            return data
        return self._stream.read(size)


def array_at(head: bytes, *, ended: bool, names: Sequence[bytes] = (b'"jobs"',)) -> int | None:
    """Find where the array of jobs (or of another name) begins: 0 where there is no object around it.

    Args:
        head: the beginning of a file.
        ended: whether that is all there will be.
        names: the array's name, in its quotes.

    Returns:
        an offset; None where more is needed to tell.

    Raises:
        InputError: there is no such array.
    """
    start = len(head) - len(head.removeprefix(b"\xef\xbb\xbf").lstrip())
    if head[start : start + 1] == b"[" or _JOB_START.match(head[start : start + 256].decode("utf-8", "replace")):
        return 0
    depth, words = 0, [b"", b""]
    for token in _TOKEN.finditer(head):
        mark = token[0]
        if mark in {b"{", b"["}:
            if mark == b"[" and depth == 1 and words[0] in names and words[1] == b":":
                return token.start()
            depth += 1
        elif mark in {b"}", b"]"}:
            depth -= 1
        words = [words[1], mark]
    if not ended:
        return None
    hint = "write it again with: sacct --json -a -D -S START -E END > FILE"
    if head.startswith((b"%YAML", b"---"), start):
        raise InputError("YAML is not read; sacct prints the same as JSON with --json instead of --yaml", hint=hint)
    found = head[start : start + 40].decode("utf-8", "replace")
    raise InputError(
        f"begins with {found!r}; expected an object with an array of jobs, as sacct --json prints", hint=hint
    )
