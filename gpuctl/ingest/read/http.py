"""Fetches answers of a site's servers over HTTP: within limits of time and size, from the named host alone."""

from __future__ import annotations

from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.read.timed_http import Deadline, LateError, TimedHTTP, TimedHTTPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from http.client import HTTPMessage
    from typing import IO

ANSWER_LIMIT = 2 << 30
"""An answer of more bytes than this is given up on."""
TIMEOUT_S = 600.0
"""Within which an answer has to be there, whole."""
IDLE_S = 60.0
"""An answer of which nothing comes for so long is given up on, unless the user names a time."""
_CHUNK = 1 << 20
_PORTS = {"http": 80, "https": 443}


class Site:
    """A server that answers GET requests.

    Args:
        url: its address, from `address`.
        what: the kind of server, for errors: ``ResourceManager``.
        headers: of every request.
        timeout_s: seconds that each answer may take in all; None: `TIMEOUT_S`, of them `IDLE_S` without a byte.
        limit: most bytes of one answer.
    """

    def __init__(
        self, url: str, what: str, headers: Mapping[str, str], timeout_s: float | None, limit: int = ANSWER_LIMIT
    ) -> None:
        self.url, self._what, self._headers, self._limit = url, what, dict(headers), limit
        self._deadline = Deadline(timeout_s or TIMEOUT_S, timeout_s or IDLE_S)
        self._opener: OpenerDirector = build_opener(_SameHost, TimedHTTP(self._deadline), TimedHTTPS(self._deadline))

    def get(self, path: str) -> Iterator[bytes]:
        """Yield an answer in pieces.

        Raises:
            HTTPError: its status is not 200.
            InputError: the server cannot be reached, or the answer is cut off, late, or too large.
        """
        url, size = self.url + path, 0
        request = Request(url, headers={"Accept": "application/json", **self._headers})  # noqa: S310 (http or https)
        self._deadline.begin()
        try:
            with self._opener.open(request) as answer:
                while data := answer.read1(_CHUNK):
                    size += len(data)
                    if size > self._limit:
                        raise InputError(f"an answer of more than {self._limit} bytes", path=url)
                    yield data
                length = answer.headers.get("Content-Length")
            if length is not None and length.isdigit() and int(length) != size:
                raise InputError(f"the answer was cut off: {size} of {length} bytes", path=url, hint="try again")
        except HTTPError:
            raise
        except (URLError, HTTPException, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, TimeoutError):
                raise self._late(url, reason, size) from None
            raise InputError(
                f"cannot be fetched: {reason}", path=url, hint="check the address and the network"
            ) from None

    def _late(self, url: str, reason: TimeoutError, size: int) -> InputError:
        waited = (
            f"no whole answer within {self._deadline.total_s:g} s"
            if isinstance(reason, LateError)
            else f"nothing came for {self._deadline.idle_s:g} s"
        )
        return LateAnswerError(
            f"{waited}; {size:,} bytes had arrived",
            path=url,
            hint=f"is the {self._what} busy, or something else there? --timeout SECONDS gives each answer longer",
        )


class LateAnswerError(InputError):
    """An answer took too long."""


def address(url: str, what: str, example: str) -> str:
    """The address of a server, without a slash at its end.

    Args:
        url: as the user states it.
        what: the kind of server.
        example: of its address.

    Raises:
        UsageError: it is none of http or https, or has a user in it.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and bool(parts.hostname) and not parts.query and not parts.fragment
        _ = parts.port
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or not url.isascii() or " " in url:
        raise UsageError(f"--url {url!r}: not the address of a {what}", hint=f"give e.g. {example}, in ASCII")
    return url.rstrip("/")


def has_user(url: str) -> bool:
    """Whether an address has a user's name or password in it."""
    parts = urlsplit(url)
    return parts.username is not None or parts.password is not None


class _SameHost(HTTPRedirectHandler):
    """Follows redirections only to the host of the original request."""

    def redirect_request(  # noqa: PLR0917
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        try:
            elsewhere = _place(newurl) != _place(req.full_url)
        except ValueError:
            elsewhere = True
        if elsewhere:
            return None  # the redirection itself is then reported as the answer's status
        fp.close()  # else its body would be read whole, however long it is
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _place(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
