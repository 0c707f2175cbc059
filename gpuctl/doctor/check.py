"""What the checks of ``gpuctl doctor`` are given and what they answer; the checks are the modules beside it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.store.database import Store


class Status(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """What one check found: a row of the result.

    Attributes:
        check: its id, which stays the same from version to version.
        status: warn: commands run, but a figure or a run may be worse for it; fail: something will not work.
        evidence: what was found, with numbers and versions.
        fix: what to do; empty where the status is ok.
    """

    check: str
    status: Status
    evidence: str
    fix: str = ""


@dataclass(frozen=True)
class Given:
    """What the checks look at; a test may make all of it up.

    Attributes:
        db: a trace store.
        models: folders of saved models.
        reports: where reports are to be written to; None where the user named no directory.
        root: below which ``proc`` and ``sys`` lie.
        environ: environment variables.
        now: seconds since 1970.
    """

    db: Path | None = None
    models: tuple[Path, ...] = ()
    reports: Path | None = None
    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: float = field(default_factory=time.time)


Check = Callable[[Given], Iterable[Finding]]
"""Looks at one thing; a thing that is not there to be looked at has no finding."""


@dataclass(frozen=True)
class Opened:
    """A store that is open for reading, and when the checks run (seconds since 1970)."""

    store: Store
    path: Path
    now: float


StoreCheck = Callable[[Opened], Iterable[Finding]]
"""Asks an open store one thing."""


def few(names: Iterable[str], most: int = 3) -> str:
    """The first of some names, and how many there are beside them."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def unwritable(directory: Path) -> str | None:
    """Why no file can be made in a directory; None where one can. One is made, and removed again."""
    try:
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".gpuctl-doctor-") as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return None
