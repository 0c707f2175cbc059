"""Every error that a user may see, and the exit code with which it ends the program."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the ``gpuctl`` program; the contract of ``docs/reference/cli.md``."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    BAD_INPUT = 3
    STORE = 4
    MISSING_DEPENDENCY = 5
    BUG = 70
    INTERRUPTED = 130


class GpuctlError(Exception):
    """Base of all errors meant for the user: what is wrong, and what to do about it.

    Args:
        message: what is wrong, where, and what was expected.
        hint: what the user can do now.
    """

    exit_code = ExitCode.BUG

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(GpuctlError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = ExitCode.USAGE


class InputError(GpuctlError):
    """An input file or directory cannot be read in the expected format.

    Args:
        message: what is wrong.
        path: the file.
        line: 1-based line number, if known.
        hint: what the user can do now.
    """

    exit_code = ExitCode.BAD_INPUT

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        place = f"{path}:{line}: " if path and line is not None else f"{path}: " if path else ""
        super().__init__(place + message, hint=hint)
        self.path = path
        self.line = line


class StoreError(GpuctlError):
    """The trace store is locked, is not a store, or has another version."""

    exit_code = ExitCode.STORE


class DependencyError(GpuctlError):
    """An optional dependency is not installed."""

    exit_code = ExitCode.MISSING_DEPENDENCY


def is_bug(error: BaseException) -> bool:
    """Return whether gpuctl did not raise this error on purpose: any other exception, or a panic of a Rust library.

    A panic is not an `Exception` in Python; Ctrl-C and exceptions that end the process are not bugs.
    """
    return type(error).__name__ == "PanicException" or (
        isinstance(error, Exception) and not isinstance(error, GpuctlError)
    )


def bug_of(error: BaseException, what: str) -> str:
    """Return the error that reports a bug which one file has triggered.

    Args:
        error: what was raised.
        what: was being done with the file, e.g. ``reading it as swf``.
    """
    first_line = next(iter(str(error).splitlines()), "")[:200]
    return (
        f"{what} failed with {type(error).__name__}{f': {first_line}' if first_line else ''}; this is a bug in gpuctl: "
        "please report it, with the output of gpuctl --debug ingest"
    )
