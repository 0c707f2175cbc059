"""Reasons of decisions in the log; policies append their own."""

from __future__ import annotations

# ---- reasons, as the log shows them
REASONS = (
    "",
    "first in order",
    "first in order, on GPUs of preempted jobs",
    "displaced by a job before it in order",
    "fits beside the jobs that wait before it",
    "left GPUs unused by the jobs before it",
    "recorded",
    "within its queue's quota",
    "over its queue's quota, on GPUs that nobody else could use",
    "gives GPUs back to a queue within its quota",
    "gathers a gang's GPUs",
    "did not get all of its GPUs in time",
    "has gathered all of its GPUs",
    "the trace has no start",
    "gives way to a shorter job: its epoch is about to end",
    "gives way to a shorter job, which gains more than it loses",
    "makes room for a gang that waits for locality alone",
    "runs on one GPU first",
    "has run on one GPU for long enough",
    "no retry gets past this failure",
)

R_NONE, R_FIRST, R_PREEMPTING, R_DISPLACED, R_SKIPPED, R_FILL, R_RECORDED, R_QUOTA, R_BONUS, R_RECLAIM = range(10)

R_GATHER, R_GIVE_UP, R_GATHERED, R_UNRECORDED, R_NEAR_EPOCH_END, R_GIVES_WAY, R_MOVED = range(10, 17)

R_ALONE, R_ALONE_DONE, R_NO_RETRY = range(17, 20)
