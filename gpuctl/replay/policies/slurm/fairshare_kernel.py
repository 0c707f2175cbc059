"""Compiled walks over the tree of associations; see `gpuctl.replay.policies.slurm.fairshare`."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.slurm.associations import USE_PARENT

NO_LEVEL = 4294967294.0
"""Slurm's NO_VAL: the level of an account without shares of its own, and of the position before the first child."""


@inner
def _level(of, shares, is_user, norm, effective):  # type: ignore[no-untyped-def]
    """Level fair-share of one association: its shares over its usage among its siblings."""
    if shares[of] == USE_PARENT:
        return np.inf if is_user[of] else NO_LEVEL
    if norm[of] == 0:
        return 0.0
    return np.inf if effective[of] == 0 else norm[of] / effective[of]


@inner
def _sorted(buffer, begin, end, level, is_user):  # type: ignore[no-untyped-def]
    """Sort siblings by level, descending, users before accounts of the same level; stable otherwise."""
    members = buffer[begin:end].copy()
    place = begin
    for users in (True, False):
        for k in range(end - begin):
            if is_user[members[k]] == users:
                buffer[place] = members[k]
                place += 1
    # compiling NumPy's sort would take a tenth of the compile time of Slurm
    width = 1
    while width < end - begin:
        for low in range(begin, end, 2 * width):
            _merge(buffer, members, low, min(low + width, end), min(low + 2 * width, end), level)
        width *= 2


@inner
def _merge(buffer, spare, low, middle, high, level):  # type: ignore[no-untyped-def]
    """Merge two adjacent sorted parts; ties keep the first part first."""
    for k in range(middle - low):
        spare[k] = buffer[low + k]
    one, other, place = 0, middle, low
    while one < middle - low:
        if other < high and level[buffer[other]] > level[spare[one]]:
            buffer[place] = buffer[other]
            other += 1
        else:
            buffer[place] = spare[one]
            one += 1
        place += 1


@inner
def _put_children(buffer, used, first, children, of):  # type: ignore[no-untyped-def]
    """Append the children of an association; returns the new length."""
    for k in range(first[of], first[of + 1]):
        buffer[used] = children[k]
        used += 1
    return used


@compiled
def fair_tree(first, children, shares, is_user, fair_parent, norm, merge, raw, effective, level, factor):  # type: ignore[no-untyped-def]
    """Rank all users, depth first; writes ``effective``, ``level`` and ``factor``.

    ``children[first[i]:first[i + 1]]`` are those of ``i``, also for the root, association 0.
    """
    total = 0
    for i in range(len(shares)):
        total += is_user[i]
        over = raw[fair_parent[i]] if i else 0.0
        effective[i] = raw[i] / over if over else 0.0 if i else 1.0
        level[i] = _level(i, shares, is_user, norm, effective)
    # each association stands once among some siblings, so one buffer of all of them is enough
    size = len(shares) + 1
    buffer = np.zeros(size, np.int64)
    at, end = np.zeros(size, np.int64), np.zeros(size, np.int64)
    prior, pending = np.zeros(size), np.zeros(size, np.bool_)
    used = _put_children(buffer, 0, first, children, 0)
    _sorted(buffer, 0, used, level, is_user)
    depth, end[0], prior[0] = 0, used, NO_LEVEL
    rank = free = total
    while depth >= 0:
        if at[depth] == end[depth]:
            depth -= 1
            continue
        i = buffer[at[depth]]
        # the first child of an account tied with its predecessor is also tied
        tied = pending[depth] or prior[depth] == level[i]
        pending[depth] = False
        prior[depth] = level[i]
        at[depth] += 1
        if is_user[i]:
            if not tied:
                rank = free
            factor[i] = rank / total
            free -= 1
            continue
        begin = used
        used = _put_children(buffer, used, first, children, i)
        while merge and at[depth] < end[depth] and level[buffer[at[depth]]] == level[i]:
            other = buffer[at[depth]]
            used = _put_children(buffer, used, first, children, other)
            at[depth] += 1
        _sorted(buffer, begin, used, level, is_user)
        depth += 1
        at[depth], end[depth], prior[depth], pending[depth] = begin, used, NO_LEVEL, tied


@inner
def _effective(of, shares, level_shares, fair_parent, raw, norm_usage, effective):  # type: ignore[no-untyped-def]
    """Effective usage of one association, given its parent's; writes ``norm_usage`` and ``effective``."""
    norm_usage[of] = min(raw[of] / raw[0], 1.0) if raw[0] else 0.0
    above = fair_parent[of]
    if above == 0:
        effective[of] = norm_usage[of]
    elif shares[of] == USE_PARENT or level_shares[of] == 0:
        effective[of] = effective[above]
    else:
        share = shares[of] / level_shares[of]
        effective[of] = norm_usage[of] + (effective[above] - norm_usage[of]) * share


@compiled
def classic_accounts(shares, level_shares, is_user, parent, fair_parent, raw, norm_usage, effective, stale):  # type: ignore[no-untyped-def]
    """Begin a calculation: effective usage of all accounts; that of users becomes stale.

    Associations are ordered with parents before children.
    """
    effective[0] = 1.0
    for i in range(1, len(shares)):
        if is_user[i]:
            stale[i] = True
        else:
            _effective(i, shares, level_shares, fair_parent, raw, norm_usage, effective)


@compiled
def classic_user(of, shares, level_shares, fair_parent, raw, norm_usage, effective, stale):  # type: ignore[no-untyped-def]
    """Update a user's effective usage if stale."""
    if stale[of]:
        _effective(of, shares, level_shares, fair_parent, raw, norm_usage, effective)
        stale[of] = False
