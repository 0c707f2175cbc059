"""Fair-share of Slurm's associations: Fair Tree and the classic formula.

Sources: SchedMD's pages *Fair Tree Fairshare Algorithm*, *Classic Fairshare Algorithm* and *Multifactor Priority
Plugin*; what they leave open, and where they are wrong, was seen in slurmctld 22.05.8 (tests/fixtures/slurm/priority).

Fair Tree, beside what its page says:

- the page says that sibling accounts with the same level fair-share have their children merged. slurmctld does not: it
  visits the second account after the first, and only its first child is tied with the child before it. ``merge_tied``
  gives what the page says;
- an association with ``Fairshare=parent`` has no level of its own: a user ranks highest in its account, an account's
  children compete with the account's siblings;
- shares of 0 give the level 0, the lowest, whatever was used; no usage with shares gives the highest, infinity.

Classic: effective usage of accounts is what it was before the decay of the last calculation, that of a user what it
was when the user's first waiting job was looked at in it: see `Classic`.

``DEPTH_OBLIVIOUS`` is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.replay.policies.slurm import fairshare_kernel as kernel
from gpuctl.replay.policies.slurm.usage import second_factor
from gpuctl.slurm.associations import USE_PARENT, Association

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Floats, Ints
    from gpuctl.replay.policies.slurm.usage import Usage

    Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Tree:
    """Associations as arrays, the root first, parents before children.

    Attributes:
        associations: who they are, in this order.
        parent: index of the account above, -1 for the root.
        fair_parent: index of the nearest account above that has shares of its own; 0 for the root itself.
        is_user: whether it is a user's.
        shares: as configured; `USE_PARENT` where the parent's count.
        level_shares: sum of the shares among which its own ones count.
        level_norm: its part of them (Fair Tree's ``NormShares``).
        norm: its part of the whole cluster (the classic ``NormShares``).
        first: ``children[first[i]:first[i + 1]]`` are those that compete inside ``i``.
        children: see ``first``.
    """

    associations: tuple[Association, ...]
    parent: Ints
    fair_parent: Ints
    is_user: Bools
    shares: Ints
    level_shares: Ints
    level_norm: Floats
    norm: Floats
    first: Ints
    children: Ints

    def index(self, account: str, user: str | None = None, partition: str | None = None) -> int:
        """Where an association is: the one for this partition, else the one for all.

        Raises:
            KeyError: there is none.
        """
        places = self._places
        if (account, user, partition) in places:
            return places[account, user, partition]
        return places[account, user, None]

    def __post_init__(self) -> None:
        places = {(a.account, a.user, a.partition): i for i, a in enumerate(self.associations)}
        object.__setattr__(self, "_places", places)

    _places: dict[tuple[str, str | None, str | None], int] = None  # type: ignore[assignment]


def build_tree(associations: Sequence[Association]) -> Tree:
    """Put associations in order and work out their shares.

    A share of nothing, where all siblings have 0 shares, is 0.

    Raises:
        InputError: there is no root account or more than one, one occurs twice, or an account's parent is missing.
    """
    ordered = _ordered(associations)
    accounts = {a.account: i for i, a in enumerate(ordered) if a.user is None}
    count = len(ordered)
    parent = np.full(count, -1, np.int64)
    for i, one in enumerate(ordered[1:], 1):
        parent[i] = accounts[one.account if one.user is not None else one.parent or ""]
    shares = np.array([one.shares for one in ordered], np.int64)
    fair_parent = np.zeros(count, np.int64)
    for i in range(1, count):
        above = parent[i]
        fair_parent[i] = above if shares[above] != USE_PARENT or above == 0 else fair_parent[above]
    of_level = np.zeros(count, np.int64)
    own = np.flatnonzero(shares[1:] != USE_PARENT) + 1
    np.add.at(of_level, fair_parent[own], shares[own])
    level_shares = of_level[fair_parent]
    level_norm, norm = np.zeros(count), np.ones(count)
    for i in range(1, count):
        part = shares[i] / level_shares[i] if level_shares[i] else 0.0
        level_norm[i] = part if shares[i] != USE_PARENT else level_norm[fair_parent[i]]
        norm[i] = norm[parent[i]] * (part if shares[i] != USE_PARENT else 1.0)
    children = np.argsort(fair_parent[1:], kind="stable") + 1
    first = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(fair_parent[1:], minlength=count), out=first[1:])
    is_user = np.array([one.user is not None for one in ordered])
    return Tree(
        tuple(ordered), parent, fair_parent, is_user, shares, level_shares, level_norm, norm, first, children
    )  # fmt: skip


def _ordered(associations: Sequence[Association]) -> list[Association]:
    """The root first, and every account before what is in it; else as given."""
    inside: dict[str | None, list[Association]] = {}
    names = set()
    for one in associations:
        name = (one.account, one.user, one.partition)
        if name in names:
            raise InputError(f"association of account {one.account}, user {one.user} occurs twice")
        names.add(name)
        inside.setdefault(one.parent if one.user is None else one.account, []).append(one)
    roots = inside.get(None, [])
    if len(roots) != 1 or roots[0].user is not None:
        raise InputError(f"{len(roots)} root accounts among the associations, expected one")
    ordered: list[Association] = []
    waiting = [roots[0]]
    while waiting:
        one = waiting.pop()
        ordered.append(one)
        if one.user is None:
            waiting += reversed(inside.pop(one.account, []))
    left = [name for name in inside if name is not None]
    if left:
        raise InputError(f"account {left[0]} has members but is not among the associations")
    return ordered


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
    """The classic factor ``2 ** -(effective usage / shares / dampening)``; 0 without shares.

    Args:
        effective: effective usage.
        norm: normalized shares of the whole cluster.
        dampening: ``FairShareDampeningFactor``.
    """
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
        """One calculation: accounts first, by usage before decay; then decay; then the jobs, one after the other.

        Args:
            usage: is decayed and charged.
            associations: each job's, in the order of Slurm's list, which is that of submission.
            runs: whether it runs; the others wait.
            starts_s: when it started.
            rates: what it is billed a second, times its QOS' ``UsageFactor``.
            now_s: the time of the calculation.
        """
        tree = self.tree
        kernel.classic_accounts(
            tree.shares, tree.level_shares, tree.is_user, tree.parent, tree.fair_parent, usage.raw,
            self.norm_usage, self.effective, self.stale,
        )  # fmt: skip
        usage.decay(now_s)
        since = -np.inf if usage.last_s is None else float(usage.last_s)
        kernel.classic_jobs(
            tree.shares, tree.level_shares, tree.parent, tree.fair_parent, usage.raw, self.norm_usage, self.effective,
            self.stale, associations, runs, starts_s, rates, since, float(now_s), second_factor(usage.half_life_s),
        )  # fmt: skip
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
