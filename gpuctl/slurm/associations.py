"""Slurm's associations: the users of an account, with shares and limits."""

from __future__ import annotations

from typing import NamedTuple

from gpuctl.slurm.limits import NO_LIMITS, Limits

USE_PARENT = -1
"""Shares of an association whose jobs compete with those of the account above it."""


class Association(NamedTuple):
    """One of Slurm's associations.

    Attributes:
        account: its account; the root's is ``root``.
        user: its user; None for the account's own.
        parent: the account above an account; None for a user's, which belongs to ``account``, and for the root.
        shares: ``Fairshare``; `USE_PARENT` for ``parent``.
        priority: ``Priority``; None if it has none, which counts as 0.
        partition: the one partition it is for, or None.
        limits: limits on its jobs: its own, and ``Max`` limits of the accounts above if it has none.
        qos: QOS that its jobs may use, its own or those of the accounts above; None if unstated.
        default_qos: QOS of jobs that name none; None if unstated.
    """

    account: str
    user: str | None = None
    parent: str | None = None
    shares: int = 1
    priority: int | None = None
    partition: str | None = None
    limits: Limits = NO_LIMITS
    qos: tuple[str, ...] | None = None
    default_qos: str | None = None
