"""The order of the queue, which never changes while jobs wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.replay.models.records import Ints


def ranks(ids: Sequence[str], minute: Ints, nodes: Ints, size: int) -> Ints:
    """Position of each job in the queue, 0 first.

    Priority is 100 x nodes / size at submission plus 7000 / (7 x 1440) per minute since, without bound: in whole
    numbers ``3600 x nodes - 25 x size x minute``, whose order is constant. Ties go by submission, then by the jobs'
    names as text.

    Args:
        ids: names of the jobs.
        minute: of submission.
        nodes: requested by each.
        size: nodes of the cluster.
    """
    text = np.empty(len(ids), np.int64)
    text[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    rank = np.empty(len(ids), np.int64)
    rank[np.lexsort((text, minute, 25 * size * minute - 3600 * nodes))] = np.arange(len(ids))
    return rank
