"""Linked lists of the YARN policies, held against Python's lists."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from gpuctl.replay.policies.yarn.linked_lists_kernel import (
    AFTER,
    BEFORE,
    empty_lists,
    fill,
    first,
    last,
    put_after,
    put_last,
    take_out,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def test_lists_are_those_of_python() -> None:
    draw = Random(5)
    members = 12
    links = empty_lists(members, 3)
    fill(links, 2, members)
    lists: list[list[int]] = [[], [], list(range(members))]
    for _ in range(600):
        member = draw.randrange(members)
        number, place = draw.randrange(3), draw.random()
        lists[next(k for k in range(3) if member in lists[k])].remove(member)
        take_out(links, member)
        if place < 0.5:
            put_last(links, member, number)
            lists[number].append(member)
        else:
            at = draw.randrange(len(lists[number]) + 1)
            put_after(links, member, lists[number][at - 1] if at else -1 - number)
            lists[number].insert(at, member)
        assert [_through(links, first(links, k), AFTER) for k in range(3)] == lists
        assert [_through(links, last(links, k), BEFORE)[::-1] for k in range(3)] == lists


def _through(links: NDArray[np.int64], member: int, way: int) -> list[int]:
    """Members of a list from one on, to the number that is negative."""
    found = []
    while member >= 0:
        found.append(member)
        member = int(links[member, way])
    return found
