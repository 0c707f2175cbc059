"""The byte stream that a format's loader reads: decompressed, hashed on the way, cut at its last sound line."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from gpuctl.core.errors import InputError
from gpuctl.ingest.read.codecs import CHUNK, Budget, DamageError, Limits, Reader, codec_of, decompress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.ingest.core.format import Place

HOLD_LIMIT = 1 << 20
"""A line longer than this is passed on before its end is known to be there."""
_BOM = b"\xef\xbb\xbf"


class Source(Reader, Protocol):
    """A file or archive member from its start."""

    def close(self) -> None:
        """Give it up."""


class Raw:
    """The bytes as they lie on disk (or in the archive), counted and hashed while they are read.

    Args:
        file: gives exactly what is requested, less only at its end.
        path: names it in errors.
        on_bytes: called with the number of bytes read, after each read.
    """

    def __init__(self, file: Reader, path: str, on_bytes: Callable[[int], None] | None = None) -> None:
        self._file = file
        self._path = path
        self._hash = hashlib.sha256()
        self._on_bytes = on_bytes
        self._back = b""
        self.bytes = 0

    def read(self, size: int, /) -> bytes:
        """Read exactly `size` bytes, fewer at the end.

        Raises:
            DamageError: an archive around these bytes is damaged.
            InputError: the disk gives an error.
        """
        if self._back:
            data, self._back = self._back[:size], self._back[size:]
            return data + (self.read(size - len(data)) if len(data) < size else b"")
        try:
            data = self._file.read(size)
        except (EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error) as error:
            raise DamageError(f"damaged archive: {error}") from error
        except OSError as error:
            raise InputError(f"cannot be read further: {error.strerror or error}", path=self._path) from error
        self._hash.update(data)
        self.bytes += len(data)
        if self._on_bytes is not None:
            self._on_bytes(len(data))
        return data

    def peek(self, size: int) -> bytes:
        """Return the next bytes without taking them."""
        self._back = self.read(size)
        return self._back

    def digest(self) -> str:
        """Read on to the end and return the SHA-256 of everything, as hexadecimal digits."""
        try:
            while self.read(CHUNK):
                pass
        except DamageError:
            pass  # what can be read of a cut-off member is what its digest is of
        return self._hash.hexdigest()


class Pieces(io.RawIOBase):
    """A raw stream over decompressed pieces; ends, with `damage` set, where they stop being sound.

    Args:
        raw: the bytes before decompression.
        path: names them in errors.
        limits: past these the stream is refused.
        hold: keep back an unfinished line until more of it is known to be sound, so that damage never lets half
            a row through; a UTF-8 byte-order mark is taken off.
        budget: of the archive that the stream is a member of.
    """

    def __init__(self, raw: Raw, path: str, limits: Limits, *, hold: bool, budget: Budget | None = None) -> None:
        self.raw = raw
        self.damage: str | None = None
        self.tail = b""
        """The part held back of the line in which the damage is."""
        self.lines = 0
        """Line ends passed on so far."""
        self.out = 0
        self._path = path
        self._limits = limits
        self._budget = budget
        self._hold = hold
        self._long_line = False
        self._held = b""
        self._ready = memoryview(b"")
        self._pieces = self._sound()

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Put the next sound bytes into `buffer`; 0 at the end.

        Raises:
            InputError: the limits are passed, or the disk gives an error.
        """
        if not self._ready:
            self._ready = memoryview(next(self._pieces, b""))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        """Give up what is held at once: the generator holds this object, which Python would find much later."""
        super().close()
        self._pieces, self._ready, self._held = iter(()), memoryview(b""), b""

    def blocks(self) -> Iterator[bytes]:
        """Yield all that `readinto` has not given yet, piece by piece as it is decompressed."""
        if self._ready:
            ready, self._ready = bytes(self._ready), memoryview(b"")
            yield ready
        yield from self._pieces

    def _sound(self) -> Iterator[bytes]:
        try:
            for piece in self._checked(codec_of(self.raw.peek(16))):
                whole = self._whole_lines(piece) if self._hold else piece
                if whole:
                    yield whole
        except DamageError as damage:
            self.damage = str(damage)
            if self._hold and self.lines and not self._long_line:
                self.tail, self._held = self._held, b""
        if self._held:
            yield self._held

    def _checked(self, codec: str | None) -> Iterator[bytes]:
        for piece in decompress(self.raw, codec):
            self.out += len(piece)
            self._limits.check(self.out, self.raw.bytes, self._path)
            if self._budget is not None and codec is not None:
                self._budget.take(len(piece))
            yield piece

    def _whole_lines(self, piece: bytes) -> bytes:
        if self.out == len(piece):
            piece = piece.removeprefix(_BOM)
        ends = _line_ends(piece)
        if ends:
            self.lines += ends
            self._long_line = False
            cut = piece.rindex(b"\n") + 1
            whole = b"".join((self._held, memoryview(piece)[:cut]))
            self._held = piece[cut:]
            return whole
        self._held += piece
        if len(self._held) <= HOLD_LIMIT:
            return b""
        self._long_line = True
        whole, self._held = self._held, b""
        return whole


def _line_ends(piece: bytes) -> int:
    import numpy as np

    # several times as fast as bytes.count
    return int(np.count_nonzero(np.frombuffer(piece, np.uint8) == ord("\n")))


class LogStream(io.BufferedReader):
    """What `Format.load` reads. Its bytes are decompressed; where they were damaged it just ends.

    Attributes:
        place: where the file lies, as it was found under a directory.

    Args:
        file: the file or archive member, from its start.
        path: names it in errors.
        limits: past these the stream is refused.
        on_bytes: called with the number of bytes read from `file`, after each read.
        budget: of the archive that it is a member of.
    """

    def __init__(
        self,
        file: Source,
        path: str,
        limits: Limits,
        on_bytes: Callable[[int], None] | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.place: Place | None = None
        self._file = file
        self._path = path
        self._pieces = Pieces(Raw(file, path, on_bytes), path, limits, hold=True, budget=budget)
        super().__init__(self._pieces, CHUNK)

    @property
    def name(self) -> str:
        """The path, as the user's spelling leads to it; ``archive!member`` in archives."""
        return self._path

    @property
    def truncated(self) -> bool:
        """True once reading has come to a place where the compressed bytes or the archive are damaged."""
        return self._pieces.damage is not None

    @property
    def damage(self) -> tuple[int, str, bytes] | None:
        """(line, what is wrong, first bytes of that line) if it is damaged, once reading has come there."""
        part = self._pieces
        return None if part.damage is None else (part.lines + 1, part.damage, part.tail)

    def blocks(self) -> Iterator[bytes]:
        """Yield the rest in pieces as they are decompressed, for readers that need not copy them again.

        All pieces but the first and the last are whole lines, unless a line is longer than `HOLD_LIMIT`.

        Raises:
            InputError: the rest decompresses to far more than it takes up.
        """
        if buffered := self.read1(CHUNK):
            yield buffered
        yield from self._pieces.blocks()

    def drain(self) -> None:
        """Read on to the end, so that damage anywhere is noticed.

        Raises:
            InputError: the rest decompresses to far more than it takes up.
        """
        while self.read(CHUNK):
            pass

    def digest(self) -> tuple[str, int]:
        """Read the undecompressed bytes to their end; return their SHA-256 and how many they are."""
        return self._pieces.raw.digest(), self._pieces.raw.bytes

    def close(self) -> None:
        """Close the file under it, too."""
        super().close()
        self._file.close()


class Peeked:
    """A stream of which the beginning was looked at.

    Args:
        head: what was taken of it.
        stream: gives the rest.
    """

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    @property
    def truncated(self) -> bool:
        """Whether the stream ended before its time, once it has ended."""
        return bool(getattr(self._stream, "truncated", False))

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes."""
        if not self._head:
            return self._stream.read(size)
        data, self._head = (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
        return data


def peeked(stream: BinaryIO, size: int = 1 << 16) -> tuple[bytes, BinaryIO]:
    """The beginning of a stream, and the same stream from its start."""
    head = stream.read(size)
    return head, cast("BinaryIO", Peeked(head, stream))


class HeadAgain:
    """A stream whose beginning was read already and is read again.

    Args:
        head: that beginning.
        stream: gives the rest.
    """

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    @property
    def truncated(self) -> bool:
        """Whether the stream ended before its time, once it has ended."""
        return bool(getattr(self._stream, "truncated", False))

    def read(self, size: int) -> bytes:
        """Read the head first, however long it is, then the rest."""
        head, self._head = self._head, b""
        return head or self._stream.read(size)
