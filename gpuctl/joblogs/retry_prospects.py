"""Whether a failure would occur on one GPU, and whether a retry may succeed, by the reason of the failure.

Derived from the meaning of each reason (docs/how-to/failures.md), not measured: an error in a program, its arguments or
its set-up occurs anywhere and fails again; a failure between processes occurs only if there are several; a fault of a
node, the network or the storage may be over next time. An unknown failure has no place and may pass.
"""

from __future__ import annotations

from typing import Literal

Place = Literal["one GPU", "several GPUs", "node or service", "not known"]
"""Where a failure shows."""

SAME_AGAIN = frozenset({
    "authentication_failed", "cannot_load_libs", "command_not_found", "compiler_error", "cuda_version_mismatch",
    "disk_quota", "gpu_out_of_memory", "import_error", "install_failed", "invalid_config", "output_node_error",
    "permission_error", "program_error", "semantic_error", "shape_error", "syntax_error", "test_failed",
    "unsatisfiable_request", "wrong_arguments",
})  # fmt: skip
"""Reasons that lie in the program and its set-up. Memory of a GPU is among them: each GPU holds as much however many
there are, as long as jobs are data-parallel."""

INPUTS = frozenset({"incorrect_inputs", "integrity_mismatch", "container_image_error"})
"""What cannot be read: on one GPU no more than on many, but perhaps the next time, where the storage is to blame."""

BETWEEN = frozenset({
    "address_in_use", "collective_timeout", "cpu_out_of_memory", "launch_failed", "mpi_error", "mpi_runtime_failure",
    "nccl_error", "nvlink_error", "peer_failed",
})  # fmt: skip
"""Reasons that need several processes. Memory of a node is among them: one process asks less of it than eight."""

MACHINE = frozenset({
    "checkpoint_error", "cuda_failure", "cuda_init_failed", "disk_full", "gpu_ecc_error", "gpu_hardware_error",
    "job_preempted", "licence_error", "lock_conflict", "network_error", "node_failure", "rate_limit", "storage_error",
})  # fmt: skip
"""What a node or a service did: it would not have happened, or not then, to another try."""

_NEVER = frozenset({"cpu_out_of_memory"})


def where_it_shows(reason: str | None, category: str | None) -> Place:
    """Return where a failure would occur, by its reason and its possible origins.

    Args:
        reason: as `gpuctl.joblogs.table` names it; None: unknown.
        category: origins, joined by ``+``; a signature may be narrower than its reason.
    """
    origins = set((category or "").split("+")) - {""}
    if reason in BETWEEN:
        return "several GPUs"
    if reason in MACHINE or (origins == {"infrastructure"} and reason not in SAME_AGAIN):
        return "node or service"
    if reason in SAME_AGAIN or reason in INPUTS:
        return "one GPU"
    return "not known"


def may_pass(reason: str | None, category: str | None) -> bool:
    """Return whether a retry may get past a failure; arguments as for `where_it_shows`."""
    if reason in _NEVER or reason in SAME_AGAIN:
        return False
    return reason not in INPUTS or "infrastructure" in (category or "infrastructure").split("+")
