"""Doubly linked lists of applications or jobs as an array of links: predecessor and successor of each.

It has [members + lists, 2] numbers: a row per member, which is in one list or none, then a row per list, row ``-1 - n``
for list ``n``. This row precedes the first member and follows the last one: a negative number ends an iteration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuctl.compiled.jit import inner

BEFORE, AFTER = range(2)


def empty_lists(members: int, lists: int) -> NDArray[np.int64]:
    """Links of members that are in no list."""
    links = np.zeros((members + lists, 2), np.int64)
    links[members:] = np.arange(-lists, 0)[:, None]
    return links


def fill(links: NDArray[np.int64], number: int, members: int) -> None:
    """Put the first members into an empty list, in the order of their numbers."""
    chain = np.concatenate([[-1 - number], np.arange(members), [-1 - number]])
    links[chain[:-1], AFTER], links[chain[1:], BEFORE] = chain[1:], chain[:-1]


@inner
def first(links, number):  # type: ignore[no-untyped-def]
    """The first member of a list; negative none."""
    return links[-1 - number, AFTER]


@inner
def last(links, number):  # type: ignore[no-untyped-def]
    """The last member of a list; negative none."""
    return links[-1 - number, BEFORE]


@inner
def put_after(links, member, place):  # type: ignore[no-untyped-def]
    """Insert an unlisted member after another; after a list's own row it becomes the first."""
    following = links[place, AFTER]
    links[member, BEFORE], links[member, AFTER] = place, following
    links[place, AFTER] = links[following, BEFORE] = member


@inner
def put_last(links, member, number):  # type: ignore[no-untyped-def]
    """Append an unlisted member to a list."""
    put_after(links, member, last(links, number))


@inner
def take_out(links, member):  # type: ignore[no-untyped-def]
    """Remove a member from its list; its own links stay unchanged."""
    before, after = links[member, BEFORE], links[member, AFTER]
    links[before, AFTER], links[after, BEFORE] = after, before
