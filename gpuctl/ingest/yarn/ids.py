"""Reads the ids that YARN gives to applications, their attempts and their containers."""

from __future__ import annotations

import re
from typing import NamedTuple

_APPLICATION = re.compile(r"application_\d{1,19}_\d{4,10}", re.ASCII)
_ATTEMPT = re.compile(r"appattempt_(\d{1,19}_\d{4,10})_(\d{6,9})", re.ASCII)
_CONTAINER = re.compile(r"container_(?:e\d{1,9}_)?(\d{1,19}_\d{4,10})_(\d{2,6})_(\d{6,18})", re.ASCII)


class AttemptId(NamedTuple):
    """An attempt: its application, and its number counted from 0 (YARN counts from 1)."""

    job: str
    attempt: int


class ContainerId(NamedTuple):
    """A container: its application, its attempt counted from 0, and its number within the attempt (from 1).

    Container ids carry an epoch (``container_e02_…``) once the ResourceManager was restarted with its state kept.
    """

    job: str
    attempt: int
    number: int


def is_application(text: str) -> bool:
    """Whether this is an application id, e.g. ``application_1542189090588_0002``."""
    return _APPLICATION.fullmatch(text) is not None


def attempt_id(text: str) -> AttemptId | None:
    """Read an attempt id, e.g. ``appattempt_1542189090588_0002_000001``; None if it is none."""
    found = _ATTEMPT.fullmatch(text)
    if found is None or int(found[2]) == 0:
        return None
    return AttemptId(f"application_{found[1]}", int(found[2]) - 1)


def container_id(text: str) -> ContainerId | None:
    """Read a container id, e.g. ``container_e02_1531732078765_0387_01_000003``; None if it is none."""
    found = _CONTAINER.fullmatch(text)
    if found is None or int(found[2]) == 0:
        return None
    return ContainerId(f"application_{found[1]}", int(found[2]) - 1, int(found[3]))
