"""The text that ``yarn logs -applicationId`` prints, cut into the logs of containers; wordings of Hadoop 2 and 3.

Each log stands behind a few lines that name its container, its name and its length::

    Container: container_1528800000000_0001_01_000002 on node01:45454
    ==================================================================
    LogType:stderr
    LogLength:1234
    Log Contents:

The length states where it ends, so that whatever a job prints cannot pass for another log. Only if fewer bytes follow
(``yarn logs -size`` prints a part and shows the whole length) its end is found by the line ``End of LogType:stderr``.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.ingest.yarn.ids import container_id

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = re.compile(
    rb"^Container: (container_\w{1,100}) on \S{1,300}[ \t]*\r?\n(?:[^=\n][^\n]{0,200}\n){0,4}={3,400}\r?\n",
    re.MULTILINE,
)
_CONTAINER = re.compile(rb"Container: (container_\w{1,100}) on \S{1,300}\s*")
_NAME = re.compile(rb"LogType: ?(\S[^\r\n]{0,254})\s*")
_LENGTH = re.compile(rb"LogLength: ?(\d{1,18})\s*")
_CONTENTS = frozenset({b"Log Contents:", b"LogContents:"})
_AFTER = re.compile(rb"[^\n]{0,1000}(?:\n\**\r?(?=\n|\Z))*\n?(?:\Z|LogType:|Container: (container_\w{1,100}) on )")
_BEHIND = re.compile(rb"(?:\r?\n){0,3}(?:End of LogType:|LogType:|Container: |\Z)")
_CHUNK = 1 << 18
_AHEAD = 4096


class Section(NamedTuple):
    """One log in the text.

    Attributes:
        container: its id; empty if none was named before.
        name: of the log, e.g. ``stderr``.
        stream: its bytes; to be read before the next section is requested.
    """

    container: str
    name: str
    stream: BinaryIO


def recognised_by(head: bytes) -> str | None:
    """State by what such a text is recognised; None if it is none."""
    found = _HEADER.search(head)
    return f"line Container: {found[1].decode('ascii', 'replace')[:60]} on ..." if found else None


class ContainerText:
    """Reads such a text from front to back.

    Args:
        stream: the text.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.lines = 0
        """Lines read so far that are in no log: those that name containers and logs, and whatever stands between."""
        self._stream = stream
        self.data, self.at = b"", 0
        """Bytes at hand, and the first that was not taken yet."""
        self.over = False
        self.container = ""

    def sections(self) -> Iterator[Section]:
        """Yield the logs, one after another."""
        name, length = "", -1
        while line := self._line():
            self.lines += 1
            if found := _CONTAINER.fullmatch(line):
                self.container, name, length = found[1].decode("ascii", "replace"), "", -1
            elif found := _NAME.fullmatch(line):
                name, length = found[1].decode("utf-8", "replace").strip(), -1
            elif found := _LENGTH.fullmatch(line):
                length = int(found[1])
            elif line.strip() in _CONTENTS and name and length >= 0:
                content = _Content(self, name.encode(), length)
                yield Section(self.container, name, io.BufferedReader(content, _CHUNK))
                while content.part(_CHUNK):
                    pass
                name, length = "", -1

    def fill(self, size: int) -> None:
        """Read on until `size` bytes are at hand, or the end."""
        while len(self.data) - self.at < size and not self.over:
            more = self._stream.read(max(_CHUNK, size))
            self.over = not more
            self.data, self.at = self.data[self.at :] + more, 0

    def take(self, size: int) -> bytes:
        """Take bytes that are at hand."""
        taken = self.data[self.at : self.at + size]
        self.at += len(taken)
        return taken

    def _line(self) -> bytes:
        """Take the next line; of one that is longer than what is looked at, its parts."""
        self.fill(_AHEAD)
        end = self.data.find(b"\n", self.at, self.at + _CHUNK)
        return self.take(end + 1 - self.at if end >= 0 else _CHUNK)


class _Content(io.RawIOBase):
    """The bytes of one log."""

    def __init__(self, text: ContainerText, name: bytes, length: int) -> None:
        self._text = text
        self._end = b"End of LogType:" + name
        self._left = length
        self._at_start = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        data = self.part(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def part(self, size: int) -> bytes:
        """Return the next bytes, at most so many; none at the end."""
        size = min(size, self._left)
        if not size:
            return b""
        text = self._text
        text.fill(size + _AHEAD)
        end = self._early_end(size)
        if end is not None:
            self._left = 0
            return text.take(end)
        data = text.take(size)
        # a line break before the mark belongs to the mark: it may be the last byte at hand
        if data.endswith(b"\n") and 1 < len(data) < self._left and text.data.startswith(self._end, text.at):
            text.at -= 1
            data = data[:-1]
        self._left = self._left - len(data) if data else 0
        self._at_start = False
        return data

    def _early_end(self, size: int) -> int | None:
        """Where the log ends before its length states so; None if it does not within the next `size` bytes."""
        text, mark = self._text, b"\n" + self._end
        if size == self._left and len(text.data) - text.at >= size and _BEHIND.match(text.data, text.at + size):
            return None
        stop = text.at + size + len(mark)
        at = text.data.find(mark, text.at, stop)
        if self._at_start and text.data.startswith(self._end, text.at):
            at = text.at
        while 0 <= at < text.at + size:
            behind = at + text.data.startswith(b"\n", at) + len(self._end)
            after = _AFTER.match(text.data, behind, behind + _AHEAD // 2)
            if after is not None and self._own(after[1]) and (after[1] or after[0].endswith(b":") or text.over):
                return at - text.at
            at = text.data.find(mark, at + 1, stop)
        return None

    def _own(self, container: bytes | None) -> bool:
        """Whether what follows is of the same application: a job may print what YARN printed of another one."""
        if container is None:
            return True
        here, there = container_id(self._text.container), container_id(container.decode("ascii", "replace"))
        return here is not None and there is not None and here.job == there.job
