"""The compiled sweep over free GPUs and waiting gangs behind `gpuctl.analyze.fragmentation`.

A site is the part of a rack that one pool may use. The state is, per group of nodes and per site, a count of nodes at
each level, a level being a number of free GPUs that occurs. One event changes one node or one size of waiting gang, so
only the sites that it touches are recomputed.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner


@inner
def largest_gang(count, levels, size, one_rack):  # type: ignore[no-untyped-def]
    """Return the GPUs of the largest gang that fits one site.

    A gang on k nodes, the fewest that could hold it, requests more than (k - 1) * size GPUs: the k emptiest nodes
    may lack less than `size` of being empty.

    Args:
        count: nodes of the site at each level.
        levels: free GPUs of each level, ascending.
        size: GPUs of the pool's largest node.
        one_rack: whether the nodes are known to share a rack; otherwise a gang may have only one of them.
    """
    gang, lacking = 0, size - 1
    for level in range(levels.size - 1, -1, -1):
        free = levels[level]
        if count[level] == 0 or free == 0:
            continue
        if not one_rack:
            return free
        taken = count[level]
        if free < size:
            taken = min(taken, lacking // (size - free))
            lacking -= taken * (size - free)
        gang += taken * free
        if taken == 0:
            # emptier nodes than these do not increase it: the deficit grows from level to level
            break
    return gang


@inner
def emptiest(count, levels, nodes):  # type: ignore[no-untyped-def]
    """Return the free GPUs on the `nodes` emptiest nodes of a site."""
    found, left = 0, nodes
    for level in range(levels.size - 1, -1, -1):
        if left == 0:
            break
        taken = min(count[level], left)
        found += taken * levels[level]
        left -= taken
    return found


@inner
def least_usable(count, levels, size, one_rack, sizes, waiting, never):  # type: ignore[no-untyped-def]
    """Return the fewest free GPUs that a node of a site must have for some waiting gang to use them.

    Args:
        count: nodes of the site at each level.
        levels: free GPUs of each level, ascending.
        size: GPUs of the pool's largest node.
        one_rack: whether the nodes are known to share a rack.
        sizes: of the gangs that ever wait for the pool.
        waiting: number of each size that wait now.
        never: result if no waiting gang could use any node.
    """
    least = never
    for k in range(sizes.size):
        gang = sizes[k]
        if waiting[k] == 0 or (gang > size and not one_rack):
            continue
        fewest = (gang + size - 1) // size
        if emptiest(count, levels, fewest) >= gang:
            least = min(least, max(1, gang - emptiest(count, levels, fewest - 1)))
    return least


@compiled
def sweep(  # type: ignore[no-untyped-def]
    times, period, periods, levels, count, change_at, change_group, change_from, change_to,
    wait_at, wait_gang, wait_step, gang_size, gang_pool, pool_gangs,
    site_pool, site_size, site_one_rack, group_sites, sites_of, site_groups, groups_of,
):  # fmt: skip
    """Sum free GPUs, the largest gang, stranded and waiting GPUs, each times seconds, over periods.

    Args:
        times: instants, ascending; interval k lasts from ``times[k]`` to ``times[k + 1]``.
        period: of each interval.
        periods: number of periods.
        levels: numbers of free GPUs that occur, ascending.
        count: (groups, levels): initial nodes; modified.
        change_at: seconds of each change of a node, ascending.
        change_group: group of that node.
        change_from: its level before.
        change_to: its level after.
        wait_at: seconds at which a gang begins or ends to wait, ascending.
        wait_gang: number of its kind: a size and a pool.
        wait_step: 1 or -1.
        gang_size: GPUs of each kind of gang; kinds of one pool are adjacent.
        gang_pool: pool of each kind.
        pool_gangs: (pools + 1): where the kinds of each pool begin.
        site_pool: pool of each site.
        site_size: GPUs of the largest node of that pool.
        site_one_rack: whether the site's nodes are known to share a rack.
        group_sites: (groups + 1): where the sites of each group begin in `sites_of`.
        sites_of: sites.
        site_groups: (sites + 1): where the groups of each site begin in `groups_of`.
        groups_of: groups.

    Returns:
        (4, periods): the sums.
    """
    sums = np.zeros((4, periods))
    never = levels[-1] + 1
    sites, groups, kinds = site_pool.size, count.shape[0], gang_size.size
    nodes = np.zeros((sites, levels.size), np.int64)
    for site in range(sites):
        for k in range(site_groups[site], site_groups[site + 1]):
            nodes[site] += count[groups_of[k]]
    gang, least = np.zeros(sites, np.int64), np.full(sites, never)
    waits, used = np.zeros(kinds, np.int64), np.zeros(groups, np.int64)
    touched_sites, touched_groups = np.ones(sites, np.bool_), np.ones(groups, np.bool_)
    dirty_sites, dirty_groups = np.arange(sites), np.arange(groups)
    some_sites, some_groups = sites, groups
    free, waiting, usable, largest = 0, 0, 0, 0
    for group in range(groups):
        for level in range(levels.size):
            free += count[group, level] * levels[level]
    change, wait = 0, 0
    for k in range(times.size - 1):
        while change < change_at.size and change_at[change] <= times[k]:
            group, old, new = change_group[change], change_from[change], change_to[change]
            change += 1
            if old == new:
                continue
            count[group, old] -= 1
            count[group, new] += 1
            free += levels[new] - levels[old]
            if not touched_groups[group]:
                touched_groups[group] = True
                dirty_groups[some_groups] = group
                some_groups += 1
            for j in range(group_sites[group], group_sites[group + 1]):
                site = sites_of[j]
                nodes[site, old] -= 1
                nodes[site, new] += 1
                if not touched_sites[site]:
                    touched_sites[site] = True
                    dirty_sites[some_sites] = site
                    some_sites += 1
        while wait < wait_at.size and wait_at[wait] <= times[k]:
            kind = wait_gang[wait]
            before = waits[kind]
            waits[kind] += wait_step[wait]
            waiting += wait_step[wait] * gang_size[kind]
            wait += 1
            if (before == 0) != (waits[kind] == 0):
                for site in range(sites):
                    if site_pool[site] == gang_pool[kind] and not touched_sites[site]:
                        touched_sites[site] = True
                        dirty_sites[some_sites] = site
                        some_sites += 1
        fell = False
        for j in range(some_sites):
            site = dirty_sites[j]
            touched_sites[site] = False
            size, one_rack, pool = site_size[site], site_one_rack[site], site_pool[site]
            fits = largest_gang(nodes[site], levels, size, one_rack)
            fell |= gang[site] == largest and fits < largest
            gang[site] = fits
            largest = max(largest, fits)
            own = slice(pool_gangs[pool], pool_gangs[pool + 1])
            now = least_usable(nodes[site], levels, size, one_rack, gang_size[own], waits[own], never)
            if now != least[site]:
                least[site] = now
                for i in range(site_groups[site], site_groups[site + 1]):
                    group = groups_of[i]
                    if not touched_groups[group]:
                        touched_groups[group] = True
                        dirty_groups[some_groups] = group
                        some_groups += 1
        if fell:
            largest = gang.max()
        for j in range(some_groups):
            group = dirty_groups[j]
            touched_groups[group] = False
            from_free = never
            for i in range(group_sites[group], group_sites[group + 1]):
                from_free = min(from_free, least[sites_of[i]])
            mine = 0
            for level in range(levels.size - 1, -1, -1):
                if levels[level] < from_free:
                    break
                mine += count[group, level] * levels[level]
            usable += mine - used[group]
            used[group] = mine
        some_sites, some_groups = 0, 0
        seconds = times[k + 1] - times[k]
        sums[0, period[k]] += free * seconds
        sums[1, period[k]] += largest * seconds
        if waiting > 0:
            sums[2, period[k]] += (free - usable) * seconds
        sums[3, period[k]] += waiting * seconds
    return sums
