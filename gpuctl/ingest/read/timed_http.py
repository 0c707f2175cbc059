"""HTTP with a total time limit: a socket's own limit restarts with every byte."""

from __future__ import annotations

import io
import time
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.request import HTTPHandler, HTTPSHandler

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from urllib.request import Request


class LateError(TimeoutError):
    """The answer took too long."""


class Deadline:
    """Time limits of answers, in all and between bytes.

    Args:
        total_s: seconds from `begin` to the last byte.
        idle_s: seconds without a byte.
    """

    def __init__(self, total_s: float, idle_s: float) -> None:
        self.total_s, self.idle_s = total_s, min(idle_s, total_s)
        self._end = time.monotonic() + total_s

    def begin(self) -> None:
        """Start the time of the next answer."""
        self._end = time.monotonic() + self.total_s

    def left(self) -> float:
        """Seconds that may be waited for the next byte.

        Raises:
            LateError: none.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise LateError
        return min(left, self.idle_s)


class _Bytes(io.RawIOBase):
    """A socket's bytes, each waited for no longer than the deadline states."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline
        self._file: io.RawIOBase = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int | None:  # type: ignore[override]
        self._sock.settimeout(self._deadline.left())
        try:
            return self._file.readinto(buffer)
        except TimeoutError:
            self._deadline.left()
            raise

    def close(self) -> None:
        self._file.close()
        super().close()


class _Response(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: Deadline, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Bytes(sock, deadline))


class TimedHTTP(HTTPHandler):
    """Opens ``http:`` addresses.

    Args:
        deadline: of all answers.
    """

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: Request) -> HTTPResponse:
        """Open one, within the time that is left."""
        return self.do_open(_timed(HTTPConnection, self._deadline), req)


class TimedHTTPS(HTTPSHandler):
    """Opens ``https:`` addresses.

    Args:
        deadline: of all answers.
    """

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, req: Request) -> HTTPResponse:
        """Open one, within the time that is left."""
        return self.do_open(_timed(HTTPSConnection, self._deadline), req)


def _timed(kind: type[HTTPConnection], deadline: Deadline) -> Callable[..., HTTPConnection]:
    def make(host: str, **named: Any) -> HTTPConnection:
        connection = kind(host, **{**named, "timeout": deadline.left()})
        connection.response_class = partial(_Response, deadline=deadline)  # type: ignore[assignment]
        return connection

    return make
