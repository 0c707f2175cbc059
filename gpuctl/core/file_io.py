"""Reads files whole, up to a limit and never blocking forever, and writes them whole or not at all."""

from __future__ import annotations

import os
import select
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.path_checks import resolved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_SMALL = 64 << 20
"""Bytes of a configuration file, of a site's small table, of a model's card."""
MOST_TOML = 4 << 20
"""A parsed TOML file takes some hundred times as much memory."""
MOST_TABLE = 1 << 30
"""Bytes of a table of jobs."""
IDLE_S = 30.0
"""Seconds within which a pipe must deliver something …"""
PIPE_S = 300.0
"""… and seconds within which it must end."""
_CHUNK = 1 << 20


def read_whole(
    path: Path, *, most: int = MOST_SMALL, begins: bytes = b"", follow: bool = True, hint: str | None = None
) -> bytes:
    """Read a file, a pipe or a device to its end.

    Args:
        path: its path.
        most: most bytes that it may have.
        begins: required first byte, white space aside; of a file that begins otherwise, only the beginning is read.
        follow: follow a symbolic link.
        hint: what was expected, and what to do.

    Raises:
        InputError: it cannot be read, has more than `most` bytes, or is a pipe without a writer.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    pieces: list[bytes] = []
    size = 0
    try:
        number = os.open(path, flags)
        try:
            kind = os.fstat(number)
            if stat.S_ISREG(kind.st_mode) and kind.st_size > most:
                raise _large(path, most, hint)
            source = _Pipe(path, number) if stat.S_ISFIFO(kind.st_mode) else _Device(number)
            while data := source.read(min(_CHUNK, most + 1 - size)):
                pieces.append(data)
                size += len(data)
                if size > most:
                    raise _large(path, most, hint)
                if begins and len(pieces) == 1 and not data.lstrip().startswith(begins):
                    break
        finally:
            os.close(number)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise InputError(f"cannot be read: {reason}", path=str(path), hint=hint) from error
    return b"".join(pieces)


def read_head(path: Path, size: int) -> bytes:
    """Return the first bytes of a regular file, up to `size`; nothing of anything else, such as a pipe.

    Raises:
        OSError: it cannot be read.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        return file.read(size) if stat.S_ISREG(os.fstat(number).st_mode) else b""


def parse_toml(data: bytes, place: str, hint: str | None = None) -> dict[str, Any]:
    """Parse the text of a TOML file.

    Args:
        data: the text.
        place: names the file in errors.
        hint: what was expected.

    Raises:
        InputError: it is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8"))
    # an integer of more than 4300 digits also raises ValueError
    except ValueError as error:
        raise InputError(f"is not valid TOML: {str(error)[:200]}", path=place, hint=hint) from error
    except RecursionError:
        raise InputError("is nested too deeply", path=place, hint=hint) from None


def _large(path: Path, most: int, hint: str | None) -> InputError:
    limit = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most:,} bytes"
    return InputError(
        f"is larger than {limit}, the maximum for such a file",
        path=str(path),
        hint=hint or "is this the right file?",
    )


class _Device:
    """A regular file, or a device, from which a read may block without limit, as from a terminal."""

    def __init__(self, number: int) -> None:
        os.set_blocking(number, True)
        self._number = number

    def read(self, size: int) -> bytes:
        return os.read(self._number, size)


class _Pipe:
    """A pipe, from which data must arrive from time to time."""

    def __init__(self, path: Path, number: int) -> None:
        self._path, self._number = path, number
        self._end = time.monotonic() + PIPE_S
        self._some = False
        self._poll = select.poll()
        self._poll.register(number, select.POLLIN)

    def read(self, size: int) -> bytes:
        while True:
            try:
                data = os.read(self._number, size)
            except BlockingIOError:
                data = None
            # at its very beginning there may not be a writer yet
            if data or (data is not None and self._some):
                self._some = True
                return data
            left = min(IDLE_S, self._end - time.monotonic())
            found = self._poll.poll(left * 1000) if left > 0 else []
            if not found:
                raise InputError(
                    "is a pipe that did not end",
                    path=str(self._path),
                    hint=f"data must arrive at least every {IDLE_S:g} s and be complete within {PIPE_S:g} s: write "
                    "it to a file first",
                )
            if not found[0][1] & select.POLLIN:
                return b""


def write_atomically(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file so that it is either complete or absent.

    Args:
        path: the file; an existing one is replaced at the end, but a device or a pipe is written to.
        write: writes the bytes to the stream that it receives.

    Raises:
        UsageError: the file cannot be written; nothing is left behind.
    """
    path = resolved(path)  # the target of a link
    if path.exists() and not path.is_file():
        _write_through(path, write)
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("xb") as file:
            write(file)
        draft.replace(path)
    except OSError as error:
        _forget(draft)
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}", hint="choose another path") from error
    except BaseException:
        _forget(draft)
        raise


def _write_through(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write to a device or a pipe, as of ``>(gzip > FILE)``: it already exists and cannot be replaced."""
    try:
        with path.open("wb") as file:
            write(file)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}", hint="choose another path") from error


def _forget(draft: Path) -> None:
    with suppress(OSError):
        draft.unlink(missing_ok=True)
