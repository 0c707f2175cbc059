"""The two small files in which a site says what its logs do not: quotas and racks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.small_csv import rows

if TYPE_CHECKING:
    from pathlib import Path


def read_quotas(path: Path) -> dict[str, float]:
    """Read a CSV with columns ``vc`` (or ``queue``) and ``quota_gpus``: GPUs of each queue's quota.

    Raises:
        InputError: a column or value is missing, a quota is not a number of at least 0, or a queue comes twice.
    """
    quotas: dict[str, float] = {}
    for line, (queue, text) in rows(path, ("vc", "queue"), "quota_gpus"):
        try:
            quota = float(text)
        except ValueError:
            quota = math.nan
        if not quota >= 0:
            raise InputError(f"quota_gpus is {text!r}, expected a number of GPUs, 0 or more", path=str(path), line=line)
        if queue in quotas:
            raise InputError(f"queue {queue!r} has a second quota", path=str(path), line=line, hint="keep one of them")
        quotas[queue] = quota
    return quotas


def read_racks(path: Path) -> dict[str, str]:
    """Read a CSV with columns ``machine`` and ``rack``.

    Raises:
        InputError: a column or value is missing, or a node comes twice.
    """
    racks: dict[str, str] = {}
    for line, (machine, rack) in rows(path, ("machine",), "rack"):
        if machine in racks:
            raise InputError(
                f"node {machine!r} is in a second rack", path=str(path), line=line, hint="keep one of them"
            )
        racks[machine] = rack
    return racks
