"""Early detection of failures under `philly`: the pool of first runs, and refused retries.

A first run on one GPU shows a failure whose logged reason shows there, as soon after its start as in the trace. The
logged reason is true with the classifier's confidence as probability; otherwise it does not show. The draw is a hash of
the job's name, the same in every replay.
"""

from __future__ import annotations

import dataclasses
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.core import states
from gpuctl.core.errors import UsageError
from gpuctl.core.notes import note
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.inputs.check import unplaceable
from gpuctl.replay.policies.philly import prerun_kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Failures, Floats, Workload

POOL = "(first runs)"
"""The node that stands for the GPUs of the pool."""

PARAMETERS = (
    Parameter("prerun", 0.0, "seconds that each gang of 2 GPUs or more first runs on one GPU of a pool: a failure that "
              "shows there ends the attempt; a job that passes starts again on its gang; 0: no first runs"),
    Parameter("pool", 2.0, "GPUs reserved for first runs, of the smallest nodes", least=1.0, most=1e6),
    Parameter("retry", 0.0, "a failure ends its job if no retry overcomes its reason and the classifier is at least "
              "this sure of it; 0: as many attempts as recorded", most=1.0),
)  # fmt: skip


def reserve_pool(cluster: Cluster, params: Mapping[str, Any]) -> Cluster:
    """The nodes after moving some GPUs to the pool, which is the last node returned.

    They are taken from the nodes with the fewest GPUs, the last of them first; nodes keep their numbers.

    Raises:
        UsageError: the pool is not a whole number of GPUs, or leaves none.
    """
    gpus = int(params["pool"])
    if params["prerun"] <= 0 or (cluster.nodes and cluster.nodes[-1] == POOL):
        return cluster
    if gpus != params["pool"] or gpus >= cluster.total_gpus:
        raise UsageError(
            f"philly: pool={params['pool']:g}: expected a whole number of GPUs below the {cluster.total_gpus:,} that "
            "there are"
        )
    left = cluster.gpus.copy()
    wanted = gpus
    for node in np.lexsort((-np.arange(left.size), left)).tolist():
        some = min(wanted, int(left[node]))
        left[node] -= some
        wanted -= some
    last = left.size

    def longer(known: Floats | None) -> Floats | None:
        return None if known is None else np.append(known, np.nan)

    return dataclasses.replace(
        cluster,
        nodes=(*cluster.nodes, POOL),
        gpus=np.append(left, gpus),
        rack=np.append(cluster.rack, len(cluster.racks)),
        gpu_type=np.append(cluster.gpu_type, -1),
        racks=(*cluster.racks, POOL),
        queue_nodes=tuple(None if own is None else np.append(own, last) for own in cluster.queue_nodes),
        cpus=longer(cluster.cpus),
        mem_mb=longer(cluster.mem_mb),
    )


def catcher(
    workload: Workload, cluster: Cluster, state: State, params: Mapping[str, Any]
) -> tuple[prerun_kernel.Prerun, tuple[Note, ...]]:
    """Memory of the policy's kernel for first runs and retries, and notes on them.

    Raises:
        UsageError: a gang does not fit next to the pool.
    """
    first, sure = float(params["prerun"]), float(params["retry"])
    segments = workload.segment_s.size
    p = records(1, prerun_kernel.PRERUN)
    p.first, p.pool = first, -1
    solo = np.full(segments, np.inf)
    ends = np.zeros(segments, np.int64)
    notes: list[Note] = []
    known = workload.failures
    if first > 0:
        p.pool = len(cluster.nodes) - 1
        _close(state, len(cluster.nodes) - 1)
        _check_room(workload, cluster)
        several = workload.gpus > 1
        state.jobs.least[several] = 1
    if known is None and (first > 0 or sure > 0):
        notes.append(note("philly: nothing states why jobs failed: no failure shows early, and all are tried again"))
    elif known is not None:
        alone = fails_on_one_gpu(workload, known)
        solo[alone] = workload.segment_s[alone]
        if sure > 0:
            ends[(known.reason >= 0) & ~known.may_pass & (known.confidence >= sure)] = 1
    memory = prerun_kernel.Prerun(
        p=p, stage=workload.size, line=segments + 1 if first > 0 else 1, solo=solo, ends=ends
    )  # fmt: skip
    return memory, tuple(notes)


def fails_on_one_gpu(workload: Workload, known: Failures) -> NDArray[np.bool_]:
    """Which segments end in a failure that shows on one GPU, shape (segments,).

    Failures whose reason shows there are drawn with the classifier's own confidence c. It was certainly wrong for jobs
    that completed after a failure that no retry overcomes; with their share q of its errors, it is right for the others
    with probability c / (1 - (1 - c) q).
    """
    found = workload.segment_fails & known.shows_alone
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    completed = np.array([word == states.State.COMPLETED for word in workload.state], np.bool_)
    wrong = found & ~known.may_pass & completed[owner]
    possible = found & ~wrong
    # one failure a job
    _, first = np.unique(owner[found & ~known.may_pass], return_index=True)
    at = np.flatnonzero(found & ~known.may_pass)[first]
    errors = float((1 - known.confidence[at]).sum())
    seen = min(1.0, float(wrong[at].sum()) / errors) if errors > 0 else 0.0
    sure = known.confidence
    chance = np.where(known.may_pass, sure, sure / np.maximum(1 - (1 - sure) * seen, 1e-9))
    for segment in np.flatnonzero(possible).tolist():
        # all attempts of a job are right or wrong together: its fault stays the same
        drawn = zlib.crc32(workload.ids[owner[segment]].encode()) / 2**32
        possible[segment] = drawn < chance[segment]
    return possible


def _close(state: State, pool: int) -> None:
    """Hide the pool from searches for nodes, which find only nodes that are up."""
    node, g = state.nodes[pool], state.g[0]
    gpus, kind = int(node.cap), int(node.cls)
    g.free -= gpus
    g.total -= gpus
    state.class_free[kind] -= gpus
    state.rack_free[kind, node.rack] -= gpus
    state.count[kind, gpus] -= 1
    state.bits[kind, gpus, pool >> 6] &= ~(np.uint64(1) << np.uint64(pool & 63))
    node.up = 0


def _check_room(workload: Workload, cluster: Cluster) -> None:
    rest = dataclasses.replace(
        cluster,
        gpus=np.append(cluster.gpus[:-1], 0),
    )
    large = unplaceable(workload, rest)
    if large.size:
        job = int(large[0])
        raise UsageError(
            f"philly: pool={int(cluster.gpus[-1])} leaves too few GPUs for {large.size:,} jobs, the first of them "
            f"{workload.ids[job]} with {workload.gpus[job]}",
            hint="a smaller pool",
        )
