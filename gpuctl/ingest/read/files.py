"""From the paths a user names to the byte streams in them; files that are not read are listed with the reason.

Directories are walked in sorted order, archives in their own order. Nothing is written, links out of a named
directory are not followed, and what is found is opened as the regular file that it was when it was found.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.path_checks import resolved
from gpuctl.ingest.core.format import Place
from gpuctl.ingest.read.archives import Archive, archive_kind, open_archive
from gpuctl.ingest.read.codecs import SUFFIXES, Limits
from gpuctl.ingest.read.streams import LogStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_MEMBER = "!"
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


@dataclass(frozen=True)
class Candidate:
    """A file, or a member of an archive, that may be a log.

    Attributes:
        path: absolute and without links, the ledger's name for it; ``archive!member`` in archives.
        shown: the same, as the user's own spelling of the path leads to it.
        name: the last part of its name, without a compression suffix.
        file: the file on disk, links resolved.
        size: bytes on disk (in the archive, for members), before decompression.
        position: which entry of its archive it is, from 0; None for a file of its own.
        inside: as in `Place`.
        named: whether it is one of the paths that the user named, not a file of a directory or an archive.
    """

    path: str
    shown: str
    name: str
    file: Path
    size: int
    position: int | None = None
    inside: str = ""
    named: bool = False


@dataclass(frozen=True)
class NotRead:
    """Something that was found and is not read.

    Attributes:
        shown: its path.
        why: the reason.
        failed: true if it should have been readable (no permission, damaged archive).
    """

    shown: str
    why: str
    failed: bool = False


@dataclass
class Opener:
    """Opens candidates; keeps the archive it read last open, so that its next member need not be searched for.

    Attributes:
        limits: past these, compressed input is refused.
    """

    limits: Limits = field(default_factory=Limits)
    _archive: Archive | None = None
    _file: Path | None = None
    _at: int = -1
    _fresh: bool = False

    def members(self, file: Path, kind: str, path: str, shown: str) -> Iterator[Candidate | NotRead]:
        """Walk an archive and identify each entry. The entry yielded last can be opened at no cost.

        Raises:
            InputError: the archive decompresses to far more than it takes up.
        """
        archive = self._start(file, kind, path)
        while (member := archive.next()) is not None:
            self._at += 1
            self._fresh = True
            name = clean(member.name)
            inside = f"{shown}{_MEMBER}{name}"
            if member.refused:
                yield NotRead(inside, clean(member.refused))
            elif PurePosixPath(name).name.startswith("."):
                yield NotRead(inside, "hidden")
            elif not member.directory:
                yield Candidate(f"{path}{_MEMBER}{name}", inside, plain_name(name), file, member.size, self._at)
        self._fresh = False
        if archive.damage:
            yield NotRead(shown, f"{archive.damage}; members after that place are lost", failed=True)

    def open(self, candidate: Candidate, on_bytes: Callable[[int], None] | None = None) -> LogStream:
        """Open a candidate as a decompressed stream.

        Args:
            candidate: as `walk` found it.
            on_bytes: called with the number of bytes read (before decompression), after each read.

        Raises:
            InputError: it is not there any more, is no longer a regular file, or may not be read.
        """
        stream = self._open(candidate, on_bytes)
        stream.place = Place(candidate.inside or candidate.name, candidate.path)
        return stream

    def _open(self, candidate: Candidate, on_bytes: Callable[[int], None] | None) -> LogStream:
        if candidate.position is None:
            return LogStream(open_regular(candidate.file), candidate.shown, self.limits, on_bytes)
        archive = self._archive
        passed = self._at > candidate.position or (self._at == candidate.position and not self._fresh)
        if archive is None or self._file != candidate.file or passed:
            with open_regular(candidate.file) as file:
                kind = archive_kind(file, candidate.shown, self.limits)
            archive = self._start(candidate.file, kind or "tar", candidate.shown)
        while self._at < candidate.position:
            if archive.next() is None:
                raise InputError("the archive has changed since it was listed", path=candidate.shown)
            self._at += 1
        self._fresh = False
        return LogStream(archive.open(), candidate.shown, self.limits, on_bytes, archive.budget)

    def close(self) -> None:
        """Close the archive that is still open."""
        if self._archive is not None:
            self._archive.close()
            self._archive = None

    def _start(self, file: Path, kind: str, path: str) -> Archive:
        self.close()
        self._archive = open_archive(open_regular(file), kind, path, self.limits)
        self._file = file
        self._at = -1
        return self._archive


def walk(paths: Sequence[Path], opener: Opener, *, exclude: Sequence[Path] = ()) -> Iterator[Candidate | NotRead]:
    """Find every file and archive member under some paths, in an order that does not depend on the disk.

    Args:
        paths: files and directories.
        opener: goes through the archives.
        exclude: files that are not logs (the trace store itself).

    Raises:
        InputError: one of the paths does not exist.
    """
    for path in paths:
        if not path.exists():
            raise InputError("no such file or directory", path=clean(path), hint="check the path")
    seen: dict[tuple[int, int], str] = {}
    barred = {resolved(p) for p in exclude}
    for path in paths:
        top = resolved(path)
        for found in _walk(path, top, opener, seen, barred):
            if isinstance(found, Candidate):
                named = found.position is None and found.file == top
                yield replace(found, inside=_inside(found, top), named=named)
            else:
                yield found


def open_regular(file: Path) -> BinaryIO:
    """Open a regular file for reading; never waits for a pipe and never follows a link.

    Raises:
        InputError: it is not there, is something else, or may not be read.
    """
    try:
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", path=clean(file)) from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise InputError("is no longer a regular file", path=clean(file))
    return os.fdopen(number, "rb")


def plain_name(name: str) -> str:
    """Return the last part of a name, without the suffix of a compression."""
    last = PurePosixPath(name).name
    suffix = next((s for s in SUFFIXES if last.lower().endswith(s)), "")
    return last[: len(last) - len(suffix)] or last


def _inside(found: Candidate, top: Path) -> str:
    """Where a candidate really lies below a directory, links followed; of a file that was named itself, its name."""
    file = clean(found.file)
    below = PurePosixPath(file.removeprefix(clean(top)).strip("/") or PurePosixPath(file).name)
    if found.position is not None:
        below = below.parent / found.path[len(file) + len(_MEMBER) :]
    return str(below.with_name(plain_name(below.name))) if below.name else found.name


def reason(error: InputError) -> str:
    """The error and its hint without the file's name, for output that already shows the path."""
    place = "" if error.path is None else error.path if error.line is None else f"{error.path}:{error.line}"
    line = "" if error.line is None else f"line {error.line}: "
    hint = f"; {error.hint}" if error.hint else ""
    return line + error.message.removeprefix(f"{place}: ") + hint


def clean(path: Path | str) -> str:
    """Return a path as text that can be stored: bytes that are no UTF-8 are written as hexadecimal."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _walk(
    path: Path, root: Path, opener: Opener, seen: dict[tuple[int, int], str], barred: set[Path]
) -> Iterator[Candidate | NotRead]:
    shown = clean(path)
    try:
        real = path.resolve()
        status = real.stat()
    except (OSError, RuntimeError) as error:
        broken = path.is_symlink()
        yield NotRead(shown, "a broken link" if broken else f"cannot be examined: {error}", failed=not broken)
        return
    why = _unwanted(real, root, status, barred)
    first = seen.get((status.st_dev, status.st_ino))
    if why is None and first is not None:
        why = f"the same as {first}, which is read"
    seen.setdefault((status.st_dev, status.st_ino), shown)
    if why is not None:
        yield NotRead(shown, why)
    elif stat.S_ISDIR(status.st_mode):
        yield from _walk_directory(path, root, opener, seen, barred)
    else:
        yield from _one_file(path, real, status, opener)


def _unwanted(real: Path, root: Path, status: os.stat_result, barred: set[Path]) -> str | None:
    if not real.is_relative_to(root):
        return "a link out of the directory"
    if real in barred:
        return "the trace store"
    if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode):
        return None
    return next((kind for is_kind, kind in _KINDS if is_kind(status.st_mode)), "no regular file")


def _walk_directory(
    path: Path, root: Path, opener: Opener, seen: dict[tuple[int, int], str], barred: set[Path]
) -> Iterator[Candidate | NotRead]:
    try:
        names = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        yield NotRead(clean(path), f"cannot be listed: {error.strerror}", failed=True)
        return
    for name in names:
        if name.startswith("."):
            yield NotRead(clean(path / name), "hidden")
        else:
            yield from _walk(path / name, root, opener, seen, barred)


def _one_file(path: Path, real: Path, status: os.stat_result, opener: Opener) -> Iterator[Candidate | NotRead]:
    shown = clean(path)
    absolute = clean(real)
    try:
        with open_regular(real) as file:
            kind = archive_kind(file, shown, opener.limits)
        if kind is None:
            yield Candidate(absolute, shown, plain_name(path.name), real, status.st_size)
        else:
            yield from opener.members(real, kind, absolute, shown)
    except InputError as error:
        yield NotRead(shown, reason(error), failed=True)
