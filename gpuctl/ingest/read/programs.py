"""Runs other programs with limits on their time and output, and leaves none of them running."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

MOST_BYTES = 256 << 20
"""Bytes that a program may print if all of it is held in memory."""
_CHUNK = 1 << 18
_MOST_ERROR_BYTES = 10_000
_REAP_S = 5.0
_LOOK_S = 0.05


def output(
    command: Sequence[str], *, timeout_s: float, settings: Mapping[str, str], what: str = "", most: int = MOST_BYTES
) -> bytes:
    """Return all that a program prints; arguments and errors as of `stream`."""
    return b"".join(stream(command, timeout_s=timeout_s, settings=settings, what=what, most=most))


def stream(
    command: Sequence[str], *, timeout_s: float, settings: Mapping[str, str], what: str = "", most: int = MOST_BYTES
) -> Iterator[bytes]:
    """Run a program without a shell and yield what it prints, piece by piece.

    However this ends, by an error, by Ctrl-C or because reading stopped, the program and its process group have ended,
    too.

    Args:
        command: the program and its arguments.
        timeout_s: seconds that it has from its start to its end.
        settings: added to the environment.
        what: the request, for messages.
        most: bytes that it may print.

    Raises:
        InputError: it cannot be run, fails, takes too long or prints too much.
    """
    name, purpose = Path(command[0]).name, f" ({what})" if what else ""
    try:
        process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **settings},
            process_group=0,
        )
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise InputError(
            f"{command[0]} cannot be run: {reason}",
            hint="is it a program for this machine? a script begins with #! and its interpreter, as in #!/bin/sh",
        ) from error
    errors, size = bytearray(), 0
    with _ended(process):
        try:
            for piece in _pieces(process, errors, time.monotonic() + timeout_s):
                size += len(piece)
                if size > most:
                    raise InputError(
                        f"{name} printed more than {most >> 20} MiB{purpose} and was stopped",
                        hint=f"see what {name} prints when it is run by itself",
                    )
                yield piece
        except TimeoutError:
            raise InputError(
                f"{name} did not answer within {timeout_s:g} s{purpose} and was stopped",
                hint=f"run {name} by itself to see whether it answers; --timeout SECONDS gives it longer",
            ) from None
    if process.returncode:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        raise InputError(f"{name}: exit {process.returncode}: {lines[0][:500] if lines else 'no message'}")


def _pieces(process: subprocess.Popen[bytes], errors: bytearray, end: float) -> Iterator[bytes]:
    """What a program prints until it has ended; the first of its errors go into `errors`, the others nowhere.

    Raises:
        TimeoutError: `end` (of the monotonic clock) has come first.
    """
    if process.stdout is None or process.stderr is None:
        raise AssertionError
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        ready.register(process.stderr, selectors.EVENT_READ)
        printing = True
        # what it has started may hold its stderr open for longer; an open stdout may still bring rows
        while printing or process.poll() is None:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for key, _ in ready.select(left if printing else min(left, _LOOK_S)):
                data = os.read(key.fd, _CHUNK)
                if not data:
                    ready.unregister(key.fileobj)
                    printing &= key.fileobj is not process.stdout
                elif key.fileobj is process.stderr:
                    errors += data[: _MOST_ERROR_BYTES - len(errors)]
                else:
                    yield data


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End a program's process group and close its pipes; also if a signal ends this process meanwhile."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        _stop(process)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    main = threading.current_thread() is threading.main_thread()
    wanted = (signal.SIGTERM, signal.SIGHUP) if main else ()
    # in a group of its own the program gets none of the terminal's signals
    watched = [number for number in wanted if signal.getsignal(number) is signal.SIG_DFL]
    for number in watched:
        signal.signal(number, on_signal)
    try:
        yield
    except BaseException:
        _stop(process)
        raise
    finally:
        for number in watched:
            signal.signal(number, signal.SIG_DFL)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # one that hangs in the kernel cannot be waited for
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
