"""The small files in which a site states facts that its logs lack: quotas, racks, prices and runs."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.small_csv import rows, table

if TYPE_CHECKING:
    from pathlib import Path


def read_quotas(path: Path) -> dict[str, float]:
    """Read a CSV with columns ``vc`` (or ``queue``) and ``quota_gpus``: GPUs of each queue's quota.

    Raises:
        InputError: a column or value is missing, a quota is not a number of at least 0, or a queue occurs twice.
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
    """Read a CSV with columns ``node`` (``machine`` until version 0.2) and ``rack``.

    Raises:
        InputError: a column or value is missing, or a node occurs twice.
    """
    racks: dict[str, str] = {}
    for line, (machine, rack) in rows(path, ("node", "machine"), "rack"):
        if machine in racks:
            raise InputError(
                f"node {machine!r} is in a second rack", path=str(path), line=line, hint="keep one of them"
            )
        racks[machine] = rack
    return racks


class Price(NamedTuple):
    """The price of a GPU-hour of a type.

    Attributes:
        gpu_type: the type, in lower case.
        price: price of one GPU-hour.
        account: account; None: all accounts without their own price.
        from_date: its first day; None: from the beginning.
        to_date: the day after its last one; None: to the end.
    """

    gpu_type: str
    price: Decimal
    account: str | None = None
    from_date: date | None = None
    to_date: date | None = None


_PRICES = ("gpu_type", "price_per_gpu_hour", "account", "from", "to")
_HIGHEST = 10**6


def read_prices(path: Path) -> tuple[Price, ...]:
    """Read a CSV with columns ``gpu_type``, ``price_per_gpu_hour`` and optionally ``account``, ``from``, ``to`` (days).

    Raises:
        InputError: a column or value is missing, a price or a day is invalid, or two prices of a type overlap.
    """
    found: list[Price] = []
    for line, cells in table(path, _PRICES[:2], _PRICES[2:]):
        try:
            price = _price(cells)
        except ValueError as error:
            raise InputError(str(error), path=str(path), line=line) from None
        rival = next((one for one in found if _both_hold(one, price)), None)
        if rival is not None:
            whose = f" for account {price.account}" if price.account else ""
            problem = (
                f"a second price of {price.gpu_type!r}{whose} at the same time: {rival.price:f} and {price.price:f}"
            )
            raise InputError(problem, path=str(path), line=line, hint="set from and to, or keep one of them")
        found.append(price)
    return tuple(found)


def _price(cells: dict[str, str]) -> Price:
    """Return the price in a row.

    Raises:
        ValueError: it is not a price.
    """
    text = cells["price_per_gpu_hour"]
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal("NaN")
    if not (price.is_finite() and 0 <= price < _HIGHEST and price == round(price, 6)):
        raise ValueError(
            f"price_per_gpu_hour is {text!r}, expected a number from 0 to {_HIGHEST} with up to 6 decimals"
        )
    days = []
    for name in ("from", "to"):
        try:
            days.append(date.fromisoformat(cells[name]) if cells[name] else None)
        except ValueError:
            raise ValueError(f"{name} is {cells[name]!r}, expected a day such as 2026-10-01") from None
    if days[0] and days[1] and days[0] >= days[1]:
        raise ValueError(f"from {days[0]} is not before to {days[1]}")
    return Price(cells["gpu_type"].lower(), price, cells["account"] or None, *days)


def _both_hold(one: Price, other: Price) -> bool:
    def before(end: date | None, start: date | None) -> bool:
        return end is not None and start is not None and end <= start

    return (one.gpu_type, one.account) == (other.gpu_type, other.account) and not (
        before(one.to_date, other.from_date) or before(other.to_date, one.from_date)
    )


def read_runs(path: Path) -> dict[str, str]:
    """Read a CSV with columns ``job`` (the job's id) and ``run``: jobs that are one run.

    Raises:
        InputError: a column or value is missing, or a job comes twice.
    """
    runs: dict[str, str] = {}
    for line, (job, run) in rows(path, ("job",), "run"):
        if job in runs:
            raise InputError(f"job {job!r} is in a second run", path=str(path), line=line, hint="keep one of them")
        runs[job] = run
    return runs
