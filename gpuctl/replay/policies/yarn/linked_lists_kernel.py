"""Doubly linked lists of applications or jobs as an array of links: who is before, and who is after each of them.

It has [members + lists, 2] numbers: a row for each member, which is in one of the lists or in none, and at the end one
for each list, that of list ``n`` as row ``-1 - n``. This row is before the first member and after the last one: whoever
goes through a list has come to its end where a number is negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuctl.compiled.jit import inner

BEFORE, AFTER = range(2)


def empty_lists(members: int, lists: int) -> NDArray[np.int64]:
    """Links of so many members, none of which is in a list."""
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
    """Put one that is in no list behind a member; behind a list's own row it is its first."""
    following = links[place, AFTER]
    links[member, BEFORE], links[member, AFTER] = place, following
    links[place, AFTER] = links[following, BEFORE] = member


@inner
def put_last(links, member, number):  # type: ignore[no-untyped-def]
    """Put one that is in no list at the end of one."""
    put_after(links, member, last(links, number))


@inner
def take_out(links, member):  # type: ignore[no-untyped-def]
    """Take a member out of the list that it is in; its own links stay as they are."""
    before, after = links[member, BEFORE], links[member, AFTER]
    links[before, AFTER], links[after, BEFORE] = after, before
