"""Decompresses a stream piece by piece, in bounded memory, and reports where the data are damaged.

Knows gzip, zstd, bzip2 and xz by their first bytes, several streams one after another included, and Parquet, whose
rows it gives as CSV. Knows nothing of files, archives or log formats.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpuctl.core.errors import InputError
from gpuctl.ingest.read import parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 1 << 18
"""Bytes requested at a time; no decompressed piece is longer."""
SUFFIXES = (".gz", ".zst", ".zstd", ".bz2", ".xz")
_WINDOW_LIMIT = 1 << 27
XZ_MEMORY = 1 << 28
"""Bytes that decompressing a stream of xz or LZMA may need."""
_ZSTD_BLOCK = 1 << 17
_ZSTD_MAGIC = 0xFD2FB528
_MAGICS = (
    ("gzip", re.compile(rb"\x1f\x8b\x08")),
    ("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")),
    ("bzip2", re.compile(rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)")),
    ("xz", re.compile(rb"\xfd7zXZ\x00")),
    ("parquet", re.compile(re.escape(parquet.MAGIC))),
)


class DamageError(Exception):
    """The bytes end early or are corrupt; everything before was sound."""


class Reader(Protocol):
    """Anything that gives exactly `size` bytes, fewer only at its end."""

    def read(self, size: int, /) -> bytes:
        """Read."""


@dataclass(frozen=True)
class Limits:
    """Limits beyond which a stream that decompresses to far more than its size is rejected.

    Attributes:
        ratio: decompressed bytes for each compressed one …
        floor: … but nothing below this many decompressed bytes is refused.
    """

    ratio: int = 200
    floor: int = 1 << 30

    def check(self, out: int, taken: int, path: str) -> None:
        """Refuse `out` bytes that came of `taken` bytes.

        Raises:
            InputError: both limits are passed.
        """
        if out > self.floor and out > self.ratio * max(taken, 1):
            raise InputError(
                f"{taken} bytes decompress to more than {out} ({out // max(taken, 1)} times as much); "
                f"refused past {self.ratio} times and {self.floor} bytes",
                path=path,
                hint="if these really are logs, decompress them first and ingest the plain file",
            )


class Budget:
    """What the members of an archive may decompress to, together, for what the archive takes up.

    Args:
        limits: past these it is refused.
        taken: bytes of the archive.
        path: names it in errors.
    """

    def __init__(self, limits: Limits, taken: int, path: str) -> None:
        self.limits = limits
        self._taken = taken
        self._path = path
        self._out = 0

    def take(self, size: int) -> None:
        """Count `size` more decompressed bytes.

        Raises:
            InputError: they are too many.
        """
        self._out += size
        self.limits.check(self._out, self._taken, self._path)


def codec_of(head: bytes) -> str | None:
    """Name the compression that a file's first bytes (10 are enough) show; None for plain bytes."""
    return next((name for name, magic in _MAGICS if magic.match(head)), None)


def decompress(raw: Reader, codec: str | None) -> Iterator[bytes]:
    """Yield the decompressed bytes in pieces of at most `CHUNK`.

    Args:
        raw: the compressed bytes, from their start.
        codec: as `codec_of` names it; None passes the bytes on as they are.

    Raises:
        DamageError: after everything sound has been yielded.
    """
    if codec is None:
        while data := raw.read(CHUNK):
            yield data
        return
    readers = {"zstd": lambda: _zstd(raw), "parquet": lambda: parquet.text(raw, CHUNK)}
    pieces = readers.get(codec, lambda: _streams(raw, codec))()
    while True:
        try:
            data = next(pieces, b"")
        except parquet.UnreadableError as error:
            raise DamageError(f"damaged Parquet: {error}") from error
        except (zlib.error, lzma.LZMAError, OSError, ValueError) as error:
            raise DamageError(f"damaged {codec} stream: {error}") from error
        if not data:
            return
        yield data


class _Unit(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


class _Gzip:
    """One gzip member with the interface of the bz2 and lzma decompressors."""

    def __init__(self) -> None:
        self._unit = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._unit.eof

    @property
    def unused_data(self) -> bytes:
        return self._unit.unused_data

    def decompress(self, data: bytes, max_length: int = CHUNK) -> bytes:
        return self._unit.decompress(self._unit.unconsumed_tail + data, max_length)


_UNITS: dict[str, Callable[[], _Unit]] = {
    "gzip": _Gzip,
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY),
}


def _streams(raw: Reader, codec: str) -> Iterator[bytes]:
    data = raw.read(CHUNK)
    while data:
        unit = _UNITS[codec]()
        while not unit.eof:
            out = unit.decompress(data, CHUNK)
            data = b""
            if out:
                yield out
            elif not unit.eof:
                data = raw.read(CHUNK)
                if not data:
                    raise DamageError(f"truncated {codec} stream")
        data = _after_padding(unit.unused_data, raw)
        if data and codec_of(data) != codec:
            raise DamageError(f"bytes after the end of the {codec} stream")


def _after_padding(data: bytes, raw: Reader) -> bytes:
    """The rest past any zero bytes, with enough of it to tell what it is."""
    data = data.lstrip(b"\0")
    while len(data) < 16 and (more := raw.read(CHUNK)):
        data = (data + more).lstrip(b"\0")
    return data


def _zstd(raw: Reader) -> Iterator[bytes]:
    # The library's own streams either decompress as much as they are fed at once, which a few bytes can blow up without
    # bound, or do not show a cut-off frame from a whole one. Fed one block at a time they do both.
    while magic := raw.read(4):
        number = int.from_bytes(magic, "little")
        if len(magic) == 4 and number & 0xFFFFFFF0 == 0x184D2A50:
            _pass(raw, int.from_bytes(_exactly(raw, 4), "little"))
        elif number == _ZSTD_MAGIC:
            yield from _zstd_frame(raw, magic)
        elif len(magic) < 4:
            raise DamageError("truncated zstd stream")
        else:
            raise DamageError("bytes after the end of the zstd stream")


def _zstd_frame(raw: Reader, magic: bytes) -> Iterator[bytes]:
    import zstandard

    unit = zstandard.ZstdDecompressor(max_window_size=_WINDOW_LIMIT).decompressobj()
    descriptor = _exactly(raw, 1)
    flags = descriptor[0]
    single = flags >> 5 & 1
    rest = (1 - single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
    pending = magic + descriptor + _exactly(raw, rest)
    last = False
    try:
        while not last:
            header = _exactly(raw, 3)
            block = int.from_bytes(header, "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            if kind == 3 or size > _ZSTD_BLOCK:
                raise DamageError("damaged zstd stream: no such block")
            pending += header + _exactly(raw, 1 if kind == 1 else size)
            if last and flags & 4:
                pending += _exactly(raw, 4)
            out = unit.decompress(pending)
            pending = b""
            for start in range(0, len(out), CHUNK):
                yield out[start : start + CHUNK]
    except zstandard.ZstdError as error:
        raise DamageError(f"damaged zstd stream: {error}") from error


def _exactly(raw: Reader, size: int) -> bytes:
    data = raw.read(size)
    if len(data) < size:
        raise DamageError("truncated zstd stream")
    return data


def _pass(raw: Reader, size: int) -> None:
    while size:
        size -= len(_exactly(raw, min(size, CHUNK)))
