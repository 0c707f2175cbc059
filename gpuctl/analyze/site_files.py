"""The two small files in which a site says what its logs do not: quotas and racks."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.files import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_ROWS = 1_000_000


def read_quotas(path: Path) -> dict[str, float]:
    """Read a CSV with columns ``vc`` (or ``queue``) and ``quota_gpus``: GPUs of each queue's quota.

    Raises:
        InputError: a column or value is missing, a quota is not a number of at least 0, or a queue comes twice.
    """
    quotas: dict[str, float] = {}
    for line, (queue, text) in _rows(path, ("vc", "queue"), "quota_gpus"):
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
        InputError: a column or value is missing, or a machine comes twice.
    """
    racks: dict[str, str] = {}
    for line, (machine, rack) in _rows(path, ("machine",), "rack"):
        if machine in racks:
            raise InputError(
                f"machine {machine!r} is in a second rack", path=str(path), line=line, hint="keep one of them"
            )
        racks[machine] = rack
    return racks


def _rows(path: Path, keys: tuple[str, ...], value: str) -> Iterator[tuple[int, tuple[str, str]]]:
    wanted = f"a header with the columns {' or '.join(keys)} and {value}"
    hint = f"expected a CSV with {wanted}"
    data = read_whole(path, hint=hint)
    try:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), skipinitialspace=True)
        names = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = names
        key = next((k for k in keys if k in names), None)
        if key is None or value not in names:
            found = ", ".join(names)[:200] or "(none)"
            raise InputError(f"found the columns {found}, expected {wanted}", path=str(path), line=1)
        for row in reader:
            if reader.line_num > MOST_ROWS:
                raise InputError(f"more than {MOST_ROWS} lines", path=str(path), hint=hint)
            got = ((row[key] or "").strip(), (row[value] or "").strip())
            if not all(got):
                raise InputError(f"no {key} or no {value} in this row", path=str(path), line=reader.line_num)
            yield reader.line_num, got
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", path=str(path), hint=hint) from error
