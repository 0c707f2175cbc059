"""Walks through tar and zip archives without unpacking them: nothing is written, no link is followed.

Only regular members with plain relative names are offered; every other one is named with the reason why not.
"""

from __future__ import annotations

import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, BinaryIO, Protocol

from gpuctl.ingest.read.codecs import CHUNK, XZ_MEMORY, Budget, DamageError, Limits, codec_of
from gpuctl.ingest.read.streams import Pieces, Raw, Source

if TYPE_CHECKING:
    from typing import Self

_HEADER_LIMIT = 1 << 20
_LIST_LIMIT = 64 << 20
"""Bytes of a zip's list of members, which is read into memory whole: some 600 000 members."""
_SIP = 128
"""So few compressed bytes at a time of what `zipfile` decompresses all at once, as it does bzip2 and LZMA."""
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, NotImplementedError, OSError, ValueError, EOFError, RuntimeError, OverflowError),
    *(zlib.error, lzma.LZMAError, struct.error),
)
_BLOCK = tarfile.BLOCKSIZE
_ZERO_BLOCK = bytes(_BLOCK)
_NAMES_AND_NOTES = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


@dataclass(frozen=True)
class Member:
    """One entry of an archive.

    Attributes:
        name: as the archive spells it.
        size: bytes as stored in the archive, before any decompression of the member itself.
        refused: why it is not read; None if it may be.
        directory: true for a directory, which holds nothing itself.
    """

    name: str
    size: int
    refused: str | None
    directory: bool = False


class Archive(Protocol):
    """An archive read from front to back."""

    damage: str | None
    """Why reading ended before the archive's end, once it has."""
    budget: Budget
    """Of what its members decompress to."""

    def next(self) -> Member | None:
        """Go to the next member; None at the end."""

    def open(self) -> Source:
        """Open the member that `next` returned last; to be read before `next` is called again."""

    def close(self) -> None:
        """Close the file under it."""


def archive_kind(file: BinaryIO, path: str, limits: Limits) -> str | None:
    """Determine by its bytes whether a file is a ``tar``, perhaps compressed, or a ``zip``; else None."""
    file.seek(0)
    head = file.read(4)
    file.seek(0)
    if head in {b"PK\3\4", b"PK\5\6"}:
        return "zip"
    block = io.BufferedReader(Pieces(Raw(file, path), path, limits, hold=False), _BLOCK).read(_BLOCK)
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return None
    return "tar"


def open_archive(file: BinaryIO, kind: str, path: str, limits: Limits) -> Archive:
    """Start reading an archive of the kind that `archive_kind` found."""
    return Zip(file, path, limits) if kind == "zip" else Tar(file, path, limits)


class Tar:
    """A tar archive, compressed or not.

    Args:
        file: the archive, at its start.
        path: names it in errors.
        limits: past these a compressed archive is refused.
    """

    def __init__(self, file: BinaryIO, path: str, limits: Limits) -> None:
        self.damage: str | None = None
        self.budget = _budget(file, path, limits)
        file.seek(0)
        head = file.read(16)
        file.seek(0)
        self._pieces = Pieces(Raw(file, path), path, limits, hold=False) if codec_of(head) else None
        self._bytes = _Forward(io.BufferedReader(self._pieces, 1 << 18) if self._pieces else file)
        self._file = file
        self._here: tarfile.TarInfo | None = None
        self._tar: tarfile.TarFile | None = None

    def next(self) -> Member | None:
        """Go to the next member; None at the end, or where the archive is damaged."""
        try:
            if self._tar is None:
                self._tar = tarfile.TarFile(fileobj=self._bytes, tarinfo=_Header)  # type: ignore[arg-type]
            self._here = self._tar.next()
            # tarfile keeps every header it has seen; of an archive with a million members that is gigabytes
            self._tar.members.clear()  # type: ignore[attr-defined]
        except (tarfile.TarError, DamageError, OSError, ValueError, RecursionError) as error:
            self.damage = self._stream_damage() or f"damaged archive: {error}"
            return None
        if self._here is None:
            ending = self._ending()
            self.damage = self._stream_damage() or ending
            return None
        info = self._here
        return Member(info.name, info.size, _refusal(info), info.isdir())

    def open(self) -> Source:
        """Open the member that `next` returned last."""
        if self._here is None:
            raise ValueError("no member to open")
        return _Part(self._bytes, self._here.offset_data, self._here.size)

    def close(self) -> None:
        """Close the file under it."""
        self._file.close()

    def _stream_damage(self) -> str | None:
        if self._pieces is None:
            return None
        while self._bytes.read(CHUNK):
            pass  # the check sum of the compressed stream comes after the archive's own end
        return self._pieces.damage

    def _ending(self) -> str | None:
        last = self._bytes.last
        if last == _ZERO_BLOCK:
            return None
        if not last:
            return "truncated archive: its end mark is missing"
        return "damaged archive: no member begins where one should"


class Zip:
    """A zip archive.

    Args:
        file: the archive, seekable.
        path: names it in errors.
        limits: past these a member, or all of them together, are refused.
    """

    def __init__(self, file: BinaryIO, path: str, limits: Limits) -> None:
        self.damage: str | None = None
        self.budget = _budget(file, path, limits)
        self._file = file
        self._path = path
        self._zip: zipfile.ZipFile | None = None
        self._next = 0

    def next(self) -> Member | None:
        """Go to the next member; None at the end, or where the archive is damaged."""
        try:
            if self._zip is None:
                self._zip = zipfile.ZipFile(_Sips(self._file))
        except _ZIP_ERRORS as error:
            self.damage = f"damaged archive: {error}"
            return None
        entries = self._zip.filelist
        if self._next >= len(entries):
            return None
        info = entries[self._next]
        self._next += 1
        return Member(info.filename, info.file_size, _zip_refusal(info), info.is_dir())

    def open(self) -> Source:
        """Open the member that `next` returned last."""
        if self._zip is None:
            raise ValueError("no member to open")
        info = self._zip.filelist[self._next - 1]
        try:
            if info.compress_type == zipfile.ZIP_LZMA and (need := _lzma_memory(self._file, info)) > XZ_MEMORY:
                return _Broken(
                    f"it needs {need >> 20} MiB of memory to be decompressed; refused past {XZ_MEMORY >> 20}"
                )
            return _Inflated(self._zip.open(info), info, self.budget, f"{self._path}!{info.filename}")
        except _ZIP_ERRORS as error:
            return _Broken(f"damaged archive: {error}")

    def close(self) -> None:
        """Close the file under it."""
        self._file.close()


class _Sips:
    """A file for `zipfile` that is never read into memory whole, whatever length its directory states."""

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell, self.seekable, self.close = file.seek, file.tell, file.seekable, file.close
        self._file = file
        self._length = file.seek(0, os.SEEK_END)

    def read(self, size: int = -1) -> bytes:
        left = self._length - self._file.tell()
        size = left if size < 0 else max(0, min(size, left))
        if size > _LIST_LIMIT:
            raise zipfile.BadZipFile(f"a list of members of more than {_LIST_LIMIT >> 20} MiB")
        return self._file.read(size)


class _Inflated:
    """One member of a zip archive, decompressed within the limits, and in bounded memory."""

    def __init__(self, member: IO[bytes], info: zipfile.ZipInfo, budget: Budget, path: str) -> None:
        self._member = member
        self._taken = info.compress_size
        self._budget = budget
        self._path = path
        self._out = 0
        self._sips = info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
        if self._sips:
            member.MIN_READ_SIZE = _SIP  # type: ignore[attr-defined]

    def read(self, size: int, /) -> bytes:
        try:
            data = self._sipped(size) if self._sips else self._member.read(size)
        except _ZIP_ERRORS as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DamageError(f"damaged archive: {error}") from error
        self._out += len(data)
        self._budget.limits.check(self._out, self._taken, self._path)
        self._budget.take(len(data))
        return data

    def close(self) -> None:
        self._member.close()

    def _sipped(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size and (piece := self._member.read1(min(_SIP, size - len(data)))):  # type: ignore[attr-defined]
            data += piece
        return bytes(data)


def _lzma_memory(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Bytes that a member compressed with LZMA declares to need: where its local header ends, its properties begin."""
    file.seek(info.header_offset + 26)
    name, extra = struct.unpack("<HH", file.read(4))
    file.seek(name + extra, os.SEEK_CUR)
    return int.from_bytes(file.read(9)[5:], "little")


def _budget(file: BinaryIO, path: str, limits: Limits) -> Budget:
    return Budget(limits, file.seek(0, os.SEEK_END), path)


class _Header(tarfile.TarInfo):
    """A tar header whose long names and notes, which are read into memory whole, cannot be long."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.type in _NAMES_AND_NOTES and not 0 <= header.size <= _HEADER_LIMIT:
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        if header.size < 0:
            raise tarfile.ReadError("a member of negative size")
        return header

    def _proc_gnusparse_10(self, member: tarfile.TarInfo, *_: object) -> None:
        # sparse members are not read: the map, which tarfile would put into a list, may be of any length
        member.sparse = b""


class _Forward:
    """A file for `tarfile` that only goes forward, and remembers the last block it gave."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at = 0
        self.last = b""

    def tell(self) -> int:
        return self._at

    def seek(self, to: int) -> int:
        if to < self._at:
            raise io.UnsupportedOperation("an archive is read from front to back only")
        if self._file.seekable():
            self._at = self._file.seek(to)
        while self._at < to and self.read(min(to - self._at, 1 << 18)):
            pass
        return self._at

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._at += len(data)
        self.last = data[-_BLOCK:]
        return data


class _Part:
    """One member of a tar archive; gives what is there of it, then `DamageError` where the archive ends too early."""

    def __init__(self, file: _Forward, start: int, size: int) -> None:
        self._file = file
        self._left = size
        file.seek(start)

    def read(self, size: int, /) -> bytes:
        data = self._file.read(min(size, self._left))
        if not data and self._left and size:
            raise DamageError("truncated archive")
        self._left -= len(data)
        return data

    def close(self) -> None:
        """Leave the archive open for the next member."""


class _Broken:
    """A member that cannot be opened."""

    def __init__(self, why: str) -> None:
        self._why = why

    def read(self, size: int, /) -> bytes:
        raise DamageError(self._why)

    def close(self) -> None:
        """Nothing is open."""


def _refusal(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return f"a link to {info.linkname}: links in archives are not followed"
    if info.issparse():
        return "a sparse member"
    if not info.isfile() and not info.isdir():
        return "a device, pipe or other special member"
    return _name_refusal(info.name)


def _zip_refusal(info: zipfile.ZipInfo) -> str | None:
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return "a link: links in archives are not followed"
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        return "a device, pipe or other special member"
    if info.flag_bits & 1:
        return "encrypted"
    return _name_refusal(info.filename)


def _name_refusal(name: str) -> str | None:
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ":" in parts[0][1:2]:
        return "its name is absolute"
    if ".." in parts:
        return "its name has .. in it"
    return None
