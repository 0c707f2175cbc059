"""Slurm's usage and fair-share step by step, as its recordings tell them; what is compiled is the policy's."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuctl.replay.policies.slurm import fairshare_kernel as kernel
from gpuctl.replay.policies.slurm.usage import second_factor
from gpuctl.replay.policies.slurm.usage_kernel import charge, decayed_amount
from gpuctl.slurm.associations import USE_PARENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Floats, Ints
    from gpuctl.replay.policies.slurm.fairshare import Tree

    Bools = NDArray[np.bool_]


@dataclass
class Usage:
    """Raw usage of every association, kept as slurmctld keeps it.

    Attributes:
        parent: the association above each one, -1 for the root's.
        half_life_s: ``PriorityDecayHalfLife`` in seconds, 0 for none.
        raw: billed seconds of each association, decayed.
        last_s: the last calculation, seconds since the epoch; None before the first.
    """

    parent: Ints
    half_life_s: float
    raw: Floats = field(default_factory=lambda: np.zeros(0))
    last_s: float | None = None

    def __post_init__(self) -> None:
        if not len(self.raw):
            self.raw = np.zeros(len(self.parent))
        self._second = second_factor(self.half_life_s)

    def decay(self, now_s: float) -> None:
        """First half of a calculation: decay what was used before."""
        if self.last_s is not None and now_s > self.last_s and self._second != 1:
            self.raw *= max(self._second ** (now_s - self.last_s), sys.float_info.min)

    def charge_running(self, associations: Ints, starts_s: Floats, rates: Floats, now_s: float) -> None:
        """Second half of a calculation: add what the jobs that still run have used since the last one."""
        since = -math.inf if self.last_s is None else self.last_s
        for of, start, rate in zip(associations, starts_s, rates, strict=True):
            self.charge(of, now_s - max(start, since), rate)
        self.last_s = now_s

    def end(self, association: int, start_s: float, end_s: float, rate: float) -> None:
        """A job ends: add what it has used since the last calculation."""
        self.charge(association, end_s - (start_s if self.last_s is None else max(start_s, self.last_s)), rate)

    def charge(self, association: int, run_s: float, rate: float) -> None:
        """Add what a stretch of run time counts to an association and all above it."""
        if run_s > 0:
            charge(self.raw, self.parent, association, decayed_amount(run_s, rate, self._second))


class FairTree(NamedTuple):
    """What Fair Tree gives: arrays over associations.

    Attributes:
        effective: usage among siblings (``EffectvUsage``).
        level: level fair-share (``LevelFS``), infinity where nothing was used.
        factor: ``FairShare`` of users, from above 0 to 1; 0 for accounts, which have none.
    """

    effective: Floats
    level: Floats
    factor: Floats


def fair_tree(tree: Tree, raw: Floats, *, merge_tied: bool = False) -> FairTree:
    """Fair Tree's ranks of all users.

    Args:
        tree: the associations.
        raw: usage of each one, that of its children included.
        merge_tied: merge the children of sibling accounts with the same level, as its page says and slurmctld does not.
    """
    found = FairTree(*(np.zeros(len(tree.parent)) for _ in range(3)))
    kernel.fair_tree(
        tree.first, tree.children, tree.shares, tree.is_user, tree.fair_parent, tree.level_norm, merge_tied, raw, *found
    )
    return found


def norm_usage(raw: Floats) -> Floats:
    """Usage of each association as a part of all usage (``NormUsage``)."""
    return np.minimum(raw / raw[0], 1.0) if raw[0] else np.zeros(len(raw))


def classic_factor(effective: Floats, norm: Floats, dampening: int = 1) -> Floats:
    """The classic factor ``2 ** -(effective usage / shares / dampening)``; 0 without shares."""
    factor = np.zeros(len(norm))
    some = norm > 0
    factor[some] = 2.0 ** -((effective[some] / norm[some]) / dampening)
    return factor


class Classic:
    """The classic algorithm's effective usage, which slurmctld works out in parts and at several moments.

    A calculation is `calculate`. In between, and for what no waiting job has asked for, `user` works out what is stale.

    Attributes:
        tree: the associations.
        norm_usage: usage as a part of all usage, of the moment when it was worked out.
        effective: effective usage of that moment.
        stale: users whose values are of an earlier calculation.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.norm_usage = np.zeros(len(tree.parent))
        self.effective = np.zeros(len(tree.parent))
        self.stale = np.zeros(len(tree.parent), bool)

    def calculate(
        self, usage: Usage, associations: Ints, runs: Bools, *, starts_s: Floats, rates: Floats, now_s: float
    ) -> None:
        """One calculation: accounts first, by usage before decay; then decay; then the jobs in order of submission."""
        tree = self.tree
        kernel.classic_accounts(
            tree.shares, tree.level_shares, tree.is_user, tree.parent, tree.fair_parent, usage.raw,
            self.norm_usage, self.effective, self.stale,
        )  # fmt: skip
        usage.decay(now_s)
        since = -np.inf if usage.last_s is None else usage.last_s
        for of, runs_, start, rate in zip(associations, runs, starts_s, rates, strict=True):
            if runs_:
                usage.charge(of, now_s - max(start, since), rate)
            elif tree.shares[of] != USE_PARENT:
                self.user(of, usage.raw)
        usage.last_s = now_s

    def user(self, association: int, raw: Floats) -> None:
        """Work out a user's effective usage from the usage of now, where it is stale."""
        tree = self.tree
        kernel.classic_user(
            association, tree.shares, tree.level_shares, tree.fair_parent, raw,
            self.norm_usage, self.effective, self.stale,
        )  # fmt: skip

    def factors(self, dampening: int = 1) -> Floats:
        """``FairShare`` of all associations by what is known; users with ``Fairshare=parent`` have the parent's."""
        tree = self.tree
        source = np.arange(len(tree.parent))
        follows = (tree.shares == USE_PARENT) & tree.is_user
        source[follows] = tree.fair_parent[follows]
        return classic_factor(self.effective, tree.norm, dampening)[source]
