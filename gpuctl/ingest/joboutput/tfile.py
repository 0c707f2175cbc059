"""YARN's aggregated logs as they lie on HDFS: Hadoop's TFile, a file of compressed blocks with an index at its end.

Read as Hadoop's classes BCFile, TFile, Chunk (org.apache.hadoop.io.file.tfile) and AggregatedLogFormat
(org.apache.hadoop.yarn.logaggregation) read it. Of the compressions, ``none``, ``gz`` (a zlib stream a block) and
``zstd`` are known; LZO needs libraries that gpuctl does not bring.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.ingest.joboutput.containertext import Section
from gpuctl.ingest.read.codecs import DamageError, Limits, decompress

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = bytes.fromhex("d111d36891b5d7b639df414092bae150")
_TRAILER = struct.Struct(">qHH16s")
_INDEX = "BCFile.index"
_RESERVED = frozenset({"VERSION", "APPLICATION_ACL", "APPLICATION_OWNER"})
_READABLE = ("none", "gz", "zstd")
_CHUNK = 1 << 18
_INDEX_LIMIT = 1 << 26
_KEY_LIMIT = 1 << 16
HINT = "have Hadoop print it, and ingest the text: yarn logs -applicationId APPLICATION > APPLICATION.log"


class _Region(NamedTuple):
    offset: int
    size: int


def sections(file: BinaryIO, path: str, limits: Limits | None = None) -> Iterator[Section]:
    """Yield the logs of all containers in such a file.

    Args:
        file: seekable.
        path: names it in errors.
        limits: past these, a block that decompresses to far more than it takes up is refused.

    Raises:
        InputError: its index is missing or damaged, or it is compressed by what cannot be read.
        DamageError: a block is damaged.
    """
    limits = limits or Limits()
    size = file.seek(0, io.SEEK_END)
    name, region = _index(file, size, path)
    data = _Block(file, _inside(region, size, path), name, path, limits)
    try:
        compression = _string(data)
        regions = [_region(data) for _ in range(_count(data))]
    except DamageError as error:
        raise _damaged(path, f"its index cannot be read: {error}") from error
    _check(compression, path)
    for block in regions:
        yield from _records(_Block(file, _inside(block, size, path), compression, path, limits))


def _index(file: BinaryIO, size: int, path: str) -> tuple[str, _Region]:
    """Find the index of the data blocks: how it is compressed, and where it is."""
    if size < len(MAGIC) + _TRAILER.size:
        raise _damaged(path, "it is too short")
    file.seek(size - _TRAILER.size)
    offset, major, minor, magic = _TRAILER.unpack(file.read(_TRAILER.size))
    if magic != MAGIC:
        raise _damaged(path, "it ends before its index: was it copied while it was written?")
    if major != 1:
        raise InputError(f"a BCFile of version {major}.{minor}, known is 1", path=path, hint=HINT)
    if not len(MAGIC) <= offset < size or size - offset > _INDEX_LIMIT:
        raise _damaged(path, f"its index is said to be at byte {offset} of {size}")
    data = _Block(file, _Region(offset, size - _TRAILER.size - offset), "none", path, Limits())
    try:
        for _ in range(_count(data)):
            name, compression, region = _string(data), _string(data), _region(data)
            if name == f"data:{_INDEX}":
                _check(compression, path)
                return compression, region
    except DamageError as error:
        raise _damaged(path, f"its index cannot be read: {error}") from error
    raise _damaged(path, f"it has no {_INDEX}")


def _check(compression: str, path: str) -> None:
    if compression not in _READABLE:
        shown = compression.upper() if compression.isalnum() else "an unknown method"
        raise InputError(f"aggregated logs compressed with {shown}, which gpuctl cannot read", path=path, hint=HINT)


def _inside(region: _Region, size: int, path: str) -> _Region:
    if region.offset < 0 or region.size < 0 or region.offset + region.size > size:
        raise _damaged(path, f"a block is said to be at byte {region.offset}, {region.size} long, of {size}")
    return region


def _damaged(path: str, why: str) -> InputError:
    return InputError(f"damaged aggregated logs (TFile): {why}", path=path, hint=HINT)


class _Range:
    """A part of a file. Several may share it: each seeks before it reads."""

    def __init__(self, file: BinaryIO, region: _Region) -> None:
        self._file, self._at, self._left = file, region.offset, region.size
        self.taken = 0

    def read(self, size: int, /) -> bytes:
        """Return exactly `size` bytes, fewer only at the end."""
        self._file.seek(self._at)
        data = self._file.read(min(size, self._left))
        self._at, self._left, self.taken = self._at + len(data), self._left - len(data), self.taken + len(data)
        return data


class _Block:
    """The decompressed bytes of one block."""

    def __init__(self, file: BinaryIO, region: _Region, compression: str, path: str, limits: Limits) -> None:
        self._raw = _Range(file, region)
        self._limits, self._path = limits, path
        self._out = 0
        self._ready, self._at = b"", 0
        zstd = "zstd" if compression == "zstd" else None
        self._pieces = _inflate(self._raw) if compression == "gz" else decompress(self._raw, zstd)

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the block's end.

        Raises:
            DamageError: the bytes are not what they should be.
            InputError: they are far more than they should be.
        """
        if self._at == len(self._ready):
            self._ready, self._at = next(self._pieces, b""), 0
            self._out += len(self._ready)
            self._limits.check(self._out, self._raw.taken, self._path)
        data = self._ready[self._at : self._at + size]
        self._at += len(data)
        return data

    def exactly(self, size: int) -> bytes:
        """Return `size` bytes.

        Raises:
            DamageError: there are fewer.
        """
        parts = []
        while size:
            part = self.read(size)
            if not part:
                raise DamageError("truncated")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _inflate(raw: _Range) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    try:
        while data := stream.unconsumed_tail or raw.read(_CHUNK):
            if piece := stream.decompress(data, _CHUNK):
                yield piece
    except zlib.error as error:
        raise DamageError(f"a damaged block: {error}") from error


def _records(block: _Block) -> Iterator[Section]:
    while first := block.read(1):
        size = _number(block, first)
        if not 0 <= size <= _KEY_LIMIT:
            raise DamageError(f"a key of {size} bytes")
        key = _java_text(block.exactly(size))
        value = _Value(block)
        if key not in _RESERVED:
            yield from _logs(key, value)
        while value.read(_CHUNK):
            pass


def _logs(container: str, value: _Value) -> Iterator[Section]:
    while name := value.text():
        length = value.text() or ""
        if not (length.isascii() and length.isdigit() and len(length) < 19):
            raise DamageError(f"a log of {length[:40]!r} bytes")
        log = _Bounded(value, int(length))
        yield Section(container, name, io.BufferedReader(log, _CHUNK))
        while log.part(_CHUNK):
            pass


class _Value:
    """A value of a record: chunks, each behind its length; the length of all but the last is negative."""

    def __init__(self, block: _Block) -> None:
        self._block = block
        self._left = 0
        self._last = False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end."""
        while not self._left:
            if self._last:
                return b""
            self._left = _number(self._block)
            self._last = self._left >= 0
            self._left = abs(self._left)
        data = self._block.read(min(size, self._left))
        if not data:
            raise DamageError("truncated")
        self._left -= len(data)
        return data

    def text(self) -> str | None:
        """Read a text behind its length of two bytes; None at the end."""
        head = self._up_to(2)
        if not head:
            return None
        size = int.from_bytes(head, "big")
        data = self._up_to(size)
        if len(head) < 2 or len(data) < size:
            raise DamageError("truncated")
        return data.decode("utf-8", "replace")

    def _up_to(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (part := self.read(size - len(data))):
            data += part
        return data


class _Bounded(io.RawIOBase):
    """The bytes of one log."""

    def __init__(self, value: _Value, size: int) -> None:
        self._value = value
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        data = self.part(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def part(self, size: int) -> bytes:
        """Return the next bytes, at most so many; none at the end."""
        if not self._left:
            return b""
        data = self._value.read(min(size, self._left))
        self._left = self._left - len(data) if data else 0
        return data


def _number(block: _Block, first: bytes = b"") -> int:
    """Read a number in the variable length of TFile (class Utils, readVLong)."""
    lead = int.from_bytes(first or block.exactly(1), "big", signed=True)
    if lead >= -32:
        return lead
    # so many bytes follow, and so much is taken off the first
    for least, more, offset in ((-72, 1, 52), (-104, 2, 88), (-120, 3, 112)):
        if lead >= least:
            return (lead + offset) << (8 * more) | int.from_bytes(block.exactly(more), "big")
    size = lead + 129
    if not 4 <= size <= 8:
        raise DamageError("no number")
    return int.from_bytes(block.exactly(size), "big", signed=True)


def _count(block: _Block) -> int:
    count = _number(block)
    if not 0 <= count <= _INDEX_LIMIT // 3:
        raise DamageError(f"{count} entries")
    return count


def _region(block: _Block) -> _Region:
    offset, size, _raw = _number(block), _number(block), _number(block)
    return _Region(offset, size)


def _string(block: _Block) -> str:
    size = _number(block)
    if not 0 <= size <= _KEY_LIMIT:
        raise DamageError(f"a text of {size} bytes")
    return block.exactly(size).decode("utf-8", "replace")


def _java_text(data: bytes) -> str:
    """A text behind its length of two bytes, as Java's writeUTF writes it."""
    size = int.from_bytes(data[:2], "big")
    if len(data) < 2 or len(data) != size + 2:
        raise DamageError("a key that is not text")
    return data[2:].decode("utf-8", "replace")
