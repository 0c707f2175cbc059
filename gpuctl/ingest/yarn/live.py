"""Asks a live ResourceManager for what it shows over REST, and keeps the answers as files that can be ingested."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.error import HTTPError

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.read.http import ANSWER_LIMIT, Site, has_user
from gpuctl.ingest.read.http import address as http_address

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHAT = ("info", "apps", "nodes", "scheduler", "metrics")
"""What is requested, under ``/ws/v1/cluster/``."""


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
        timeout_s: seconds that each answer may take in all; None: as `Site` has it.
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
    site = Site(base, "ResourceManager", {}, timeout_s, limit)
    files = []
    for what in WHAT:
        file = folder / f"yarn-{what}-{stamp}.json"
        _get(site, f"/ws/v1/cluster/{what}", file)
        files.append(file)
    return files


def address(url: str) -> str:
    """The address of a ResourceManager, without a slash at its end.

    Raises:
        UsageError: it is none of http or https, or has a user in it.
    """
    usable = http_address(url, "ResourceManager", "http://rm:8088")
    if has_user(usable):
        raise UsageError("--url with a user name or password in it", hint="use a proxy that logs in instead")
    return usable


def _get(site: Site, path: str, file: Path) -> None:
    url = site.url + path
    part = file.with_suffix(".part")
    head = b""
    try:
        with part.open("wb") as out:
            for data in site.get(path):
                head = head or data[:100].lstrip()
                out.write(data)
        if not head.startswith(b"{"):
            raise InputError("the answer is not a JSON object", path=url, hint="is this a ResourceManager's address?")
        part.rename(file)
    except HTTPError as error:
        explanation = _exception(error)
        error.close()
        raise InputError(f"HTTP status {error.code}{explanation}", path=url, hint=_hint(error.code)) from None
    finally:
        part.unlink(missing_ok=True)


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
