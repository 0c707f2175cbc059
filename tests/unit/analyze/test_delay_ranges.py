"""What is in doubt about the waits of a log, on clusters of several pools."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from gpuctl.analyze import delay_ranges, delay_table, delays
from tests.unit.analyze.test_delays import holdings, nodes

STATED = pl.DataFrame({"queue": ["a"], "quota_source": ["given"]})


def two_pools() -> delays.Cluster:
    """Four jobs of 4 GPUs, one after the other, on 8 nodes of 4 GPUs; a queue of 2 GPUs that may borrow up to half.

    A pool of one node is beside it.
    """
    rows = [(10.0 * k, 10.0 * k + 10, 4) for k in range(4)]
    large = nodes([4] * 8, [0] * 8, *((begin, end, 0, gpus) for begin, end, gpus in rows))
    small = nodes([4], [0], (0, 1, 0, 0))
    held = holdings(*((begin, end, gpus, 0) for begin, end, gpus in rows))
    return delays.Cluster(held, (small, large), np.array([2.0]), 0.5)


def test_a_start_over_quota_breaks_it_only_where_the_largest_pool_is_too_busy_to_borrow() -> None:
    cluster = two_pools()
    # 4 GPUs in use with the gang: less than half of 32, and more than half of the small pool's 4
    assert delay_ranges._broken(cluster, STATED) == {}
    assert delay_ranges._broken(replace(cluster, borrow_below=0.1), STATED) == {0: (0.0, 30.0)}


def test_only_pools_whose_nodes_may_be_larger_are_in_doubt() -> None:
    small, large = two_pools().pools
    members = [np.array([0]), np.arange(1, 9)]
    machines = pl.DataFrame({"gpus_most": [4, 8, *[4] * 7]})
    found = delay_table._most((small, large), machines, members)
    assert found[0] is small
    assert found[1].gpus.tolist() == [8] + [4] * 7
