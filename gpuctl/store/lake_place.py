"""The place of a store's lake: a local directory with a file that names its store, or a prefix in object storage.

The store records the place of its lake, but the store may be untrusted: a directory that it names is only used if the
file there has the store's own id, and object storage only if the user names it in ``GPUCTL_LAKE``.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from gpuctl.core.errors import StoreError, UsageError

VARIABLE = "GPUCTL_LAKE"
"""Environment variable: where the lake of the store at hand is, if not if the store states."""
ANEW = "put the files back from a copy, or make store and lake again: gpuctl ingest LOGDIR --db FILE --lake DIR"
"""What to do about a lake that lacks files, or has other ones."""
MARKER = "gpuctl-lake.json"
_REMOTE = re.compile(r"(s3|gs|gcs|r2|https?)://[^/]")
_GLOB = frozenset("*?[]{}")
_SMALL = 4096


class LakeError(StoreError):
    """The lake of a store is missing or differs from what the store states; the store itself may be sound."""


@dataclass(frozen=True)
class Place:
    """The location of a lake.

    Attributes:
        path: an absolute path with all links followed, or an address that ends without a slash.
        remote: it is in object storage, which is only read.
    """

    path: str
    remote: bool

    def file(self, name: str) -> str:
        """Return the path or address of a file of the lake."""
        return f"{self.path}/{name}"


def parse_place(text: str) -> Place:
    """Return the place that the user names.

    Raises:
        UsageError: DuckDB would not take it as the name of one directory.
    """
    remote = _REMOTE.match(text) is not None
    path = text.rstrip("/") if remote else os.path.realpath(text)
    if _GLOB & set(path) or not path.isprintable() or (not remote and "://" in text):
        raise UsageError(
            f"{text!r}: no place for a lake: a directory, or s3://, gs://, r2://, http:// or https:// with a path",
            hint="choose a path without * ? [ ] { } and control characters",
        )
    return Place(path, remote)


def recorded(store: Path, location: str) -> Place:
    """Return the place that the user names, else the one that a store records."""
    elsewhere = os.environ.get(VARIABLE)
    return parse_place(elsewhere or os.path.join(os.path.realpath(store.parent), location))  # noqa: PTH118 - text of a store


def location(store: Path, place: Place) -> str:
    """Return how a store records a local place: relative, so that store and lake can be moved together."""
    return os.path.relpath(place.path, os.path.realpath(store.parent))


def read_marker(place: Place) -> tuple[str, int] | None:
    """Return the store id of a lake and how often it was opened for writing; None if there is no lake."""
    try:
        with Path(place.file(MARKER)).open("rb") as file:
            found = json.loads(file.read(_SMALL))
        return str(found["id"]), int(found["writes"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_marker(place: Place, store_id: str, writes: int) -> None:
    """Record the store to which a lake belongs.

    Raises:
        StoreError: it cannot be written.
    """
    new = Path(place.file(MARKER + ".new"))
    try:
        new.write_text(json.dumps({"id": store_id, "writes": writes}) + "\n", "utf-8")
        new.replace(place.file(MARKER))
    except OSError as error:
        raise StoreError(f"{place.path}: {error.strerror}", hint="name another directory with --lake") from error


def is_free(place: Place) -> bool:
    """Return whether a local place is an empty directory or does not exist.

    Raises:
        StoreError: it is not a directory, or cannot be read.
    """
    try:
        return not [one for one in Path(place.path).iterdir() if one.name != MARKER + ".new"]
    except FileNotFoundError:
        return True
    except OSError as error:
        raise StoreError(f"{place.path}: {error.strerror}", hint="name another directory with --lake") from error


def only_read(place: Place, telemetry: str = "") -> UsageError:
    """Return the error for telemetry that would be written to a lake in object storage.

    Args:
        place: location of the lake.
        telemetry: a file with telemetry; empty: unknown.
    """
    return UsageError(
        f"{place.path}: a lake in object storage is only read{telemetry and f', and {telemetry} is telemetry'}",
        hint="ingest with the lake in a directory, then copy that directory there",
    )


def missing(store: Path, place: Place, why: str) -> LakeError:
    """Return the error for a missing lake of a store."""
    return LakeError(
        f"{store}: its telemetry is in the lake {place.path}, {why}",
        hint=f"put it back, or name its new place: gpuctl ingest --db {store} --lake DIR",
    )


def unreadable(store: Path, place: Place, reason: str) -> LakeError:
    """Return the error for a lake whose files DuckDB cannot read."""
    if place.remote:
        hint = f"check {VARIABLE}, the network and the credentials (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL ...)"
    else:
        hint = ANEW if place.path in reason else f"see which files are damaged: gpuctl doctor --db {store}"
    return LakeError(f"{store}: its lake {place.path} cannot be read: {reason}"[:500], hint=hint)
