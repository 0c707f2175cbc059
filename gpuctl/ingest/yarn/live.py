"""Asks a live ResourceManager for what it shows over REST, and keeps the answers as files that can be ingested."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.yarn.timed_http import Deadline, LateError, TimedHTTP, TimedHTTPS

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.client import HTTPMessage
    from pathlib import Path
    from typing import IO

WHAT = ("info", "apps", "nodes", "scheduler", "metrics")
"""What is requested, under ``/ws/v1/cluster/``."""
ANSWER_LIMIT = 2 << 30
"""An answer of more bytes than this is given up on."""
TIMEOUT_S = 600.0
"""Within which an answer has to be there, whole."""
IDLE_S = 60.0
"""An answer of which nothing comes for so long is given up on, unless the user names a time."""
_CHUNK = 1 << 20
_PORTS = {"http": 80, "https": 443}


def fetch(
    url: str,
    folder: Path,
    *,
    timeout_s: float | None = None,
    limit: int = ANSWER_LIMIT,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> list[Path]:
    """Fetch a cluster's applications, nodes and scheduler from its ResourceManager.

    Args:
        url: its web address, e.g. ``http://rm:8088``; a path in it becomes a prefix (for proxies), a redirection to
            another host, port or scheme is refused.
        folder: where the answers go, made if absent; as ``yarn-<what>-<UTC time>.json``, byte for byte.
        timeout_s: seconds that each answer may take in all; None: `TIMEOUT_S`, of them `IDLE_S` without a byte.
        limit: most bytes of one answer.
        now: the time that goes into the names.

    Returns:
        the files, in the order of `WHAT`.

    Raises:
        UsageError: the address is none of http or https.
        InputError: the ResourceManager cannot be reached, or does not answer as one would.
    """
    base = address(url)
    folder.mkdir(parents=True, exist_ok=True)
    stamp = now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    deadline = Deadline(timeout_s or TIMEOUT_S, timeout_s or IDLE_S)
    opener = build_opener(_SameHost, TimedHTTP(deadline), TimedHTTPS(deadline))
    files = []
    for what in WHAT:
        file = folder / f"yarn-{what}-{stamp}.json"
        _get(opener, f"{base}/ws/v1/cluster/{what}", file, deadline, limit)
        files.append(file)
    return files


def address(url: str) -> str:
    """The address of a ResourceManager, without a slash at its end.

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
        raise UsageError(
            f"--url {url!r}: not the address of a ResourceManager", hint="give e.g. http://rm:8088, in ASCII"
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError("--url with a user name or password in it", hint="use a proxy that logs in instead")
    return url.rstrip("/")


def _get(opener: OpenerDirector, url: str, file: Path, deadline: Deadline, limit: int) -> None:
    request = Request(url, headers={"Accept": "application/json"})  # noqa: S310 (checked: http or https)
    part = file.with_suffix(".part")
    size, head = 0, b""
    deadline.begin()
    try:
        with opener.open(request) as answer, part.open("wb") as out:
            while data := answer.read1(_CHUNK):
                size += len(data)
                head = head or data[:100].lstrip()
                if size > limit:
                    raise InputError(f"an answer of more than {limit} bytes", path=url)
                out.write(data)
            length = answer.headers.get("Content-Length")
        if length is not None and length.isdigit() and int(length) != size:
            raise InputError(f"the answer was cut off: {size} of {length} bytes", path=url, hint="try again")
        if not head.startswith(b"{"):
            raise InputError("the answer is not a JSON object", path=url, hint="is this a ResourceManager's address?")
        part.rename(file)
    except HTTPError as error:
        explanation = _exception(error)
        error.close()
        raise InputError(f"HTTP status {error.code}{explanation}", path=url, hint=_hint(error.code)) from None
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            raise _late(url, reason, deadline, size) from None
        raise InputError(f"cannot be fetched: {reason}", path=url, hint="check the address and the network") from None
    finally:
        part.unlink(missing_ok=True)


def _late(url: str, reason: TimeoutError, deadline: Deadline, size: int) -> InputError:
    waited = (
        f"no whole answer within {deadline.total_s:g} s"
        if isinstance(reason, LateError)
        else f"nothing came for {deadline.idle_s:g} s"
    )
    return InputError(
        f"{waited}; {size:,} bytes had arrived",
        path=url,
        hint="is the ResourceManager busy, or something else there? --timeout SECONDS gives each answer longer",
    )


def _exception(error: HTTPError) -> str:
    """What the ResourceManager states is wrong: ``{"RemoteException": {"message": …}}``."""
    try:
        message = json.loads(error.read(65_536))["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError, OSError, RecursionError):
        return ""
    return f": {message[:200]}" if isinstance(message, str) and message.isprintable() else ""


def _hint(status: int) -> str:
    if status in {401, 403}:
        return "the ResourceManager wants a login (Kerberos?), which gpuctl does not have: fetch the answers with curl"
    if status in {301, 302, 303, 307, 308}:
        return "the standby of a pair points to the active one: give that one's address"
    return "is it the address of a ResourceManager?"


class _SameHost(HTTPRedirectHandler):
    """Follows redirections only to where the request went in the first place."""

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
