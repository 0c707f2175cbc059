"""Context that the checks of ``gpuctl doctor`` run in, and the findings that they return."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Status(StrEnum):
    """Outcome of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """Finding of one check: a row of the result.

    Attributes:
        check: its id, which stays the same from version to version.
        status: warn: commands run, but a figure or a run may be worse for it; fail: something will not work.
        evidence: what was found, with numbers and versions.
        fix: what to do; empty if the status is ok.
    """

    check: str
    status: Status
    evidence: str
    fix: str = ""


def finding(check: str, evidence: str, fix: str = "", status: Status = Status.WARN) -> Finding:
    """Return a finding that is ok without a fix, and of a status with one."""
    return Finding(check, status if fix else Status.OK, evidence, fix)


@dataclass(frozen=True)
class DoctorContext:
    """What is checked; tests may replace all of it.

    Attributes:
        db: a trace store.
        models: folders of saved models.
        reports: directory for reports; None if the user named none.
        root: parent of ``proc`` and ``sys``.
        environ: environment variables.
        now: seconds since 1970.
    """

    db: Path | None = None
    models: tuple[Path, ...] = ()
    reports: Path | None = None
    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: float = field(default_factory=time.time)


Check = Callable[[DoctorContext], Iterable[Finding]]
"""A check of one item; an item that does not exist has no finding."""


def abbreviate(names: Iterable[str], most: int = 3, separator: str = ", ", noun: str = "") -> str:
    """Join the first of some names, and count the others, with a noun if there is one."""
    listed = list(names)
    more = f" and {len(listed) - most} more{noun and ' ' + noun}" if len(listed) > most else ""
    return separator.join(listed[:most]) + more


def unwritable(directory: Path) -> str | None:
    """Return why no file can be created in a directory; None if one can. A file is created and removed."""
    try:
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".gpuctl-doctor-") as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return None
