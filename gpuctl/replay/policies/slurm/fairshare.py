"""Fair-share of Slurm's associations: Fair Tree and the classic formula.

Sources: SchedMD's pages *Fair Tree Fairshare Algorithm*, *Classic Fairshare Algorithm* and *Multifactor Priority
Plugin*; where these are incomplete or wrong, as observed in slurmctld 22.05.8 (tests/fixtures/slurm/priority).

Fair Tree, in addition to its page:

- according to the page, children of sibling accounts with the same level fair-share are merged. slurmctld does not: it
  visits the second account after the first, and only its first child is tied with the child before it. ``merge`` of
  `fairshare_kernel.fair_tree` follows the page;
- an association with ``Fairshare=parent`` has no level of its own: a user ranks highest in its account, an account's
  children compete with the account's siblings;
- shares of 0 give the level 0, the lowest, whatever was used; no usage with shares gives the highest, infinity.

Classic: effective usage of accounts is from before the decay of the last calculation, that of a user from when its
first waiting job was visited in it.

``DEPTH_OBLIVIOUS`` is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.slurm.associations import USE_PARENT, Association

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Floats, Ints

    Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Tree:
    """Associations as arrays, the root first, parents before children.

    Attributes:
        associations: in this order.
        parent: index of the account above, -1 for the root.
        fair_parent: index of the nearest account above that has shares of its own; 0 for the root itself.
        is_user: whether it is a user's.
        shares: as configured; `USE_PARENT` if the parent's count.
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
        """Index of an association: the one for this partition, else the one for all.

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

    If all siblings have 0 shares, the share is 0.

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
    """The root first, and every account before its members; else as given."""
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
