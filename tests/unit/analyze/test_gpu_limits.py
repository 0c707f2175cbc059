"""Which of Slurm's limits on GPUs a job is under, on limits of every scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze import gpu_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

NOWHERE = dict.fromkeys(("gpu_type", "partition", "qos", "account", "user"))
LIMITS = [
    {**NOWHERE, **limit}
    for limit in (
        {"scope": "cluster", "limit_kind": "group"},
        {"scope": "cluster", "limit_kind": "group", "gpu_type": "a100"},
        {"scope": "qos", "limit_kind": "per_user", "qos": "normal"},
        {"scope": "qos", "limit_kind": "per_account", "qos": "normal"},
        {"scope": "qos", "limit_kind": "group", "qos": "normal"},
        {"scope": "qos", "limit_kind": "group", "qos": "of_partition"},  # is the partition's quota
        {"scope": "qos", "limit_kind": "per_user", "qos": "of_partition"},
        {"scope": "account", "limit_kind": "group", "account": "lab"},
        {"scope": "user", "limit_kind": "group", "account": "vision", "user": "ada", "partition": "gpu"},
        {"scope": "user", "limit_kind": "per_user", "account": "vision", "user": "ada"},
    )
]
OWNER = {"qos": "normal", "partition_qos": "of_partition", "account": "vision", "accounts": ["vision", "lab", "root"]}
JOB = {"job": "1", "gpu_type": "a100", "user": "ada", "queue": "gpu"}
ALL = {(0, None), (1, None), (2, "ada"), (3, "vision"), (4, None), (6, "ada"), (7, None), (8, None)}


@pytest.mark.parametrize(
    ("job", "owner", "expected"),
    [
        ({}, {}, ALL),
        ({"gpu_type": "v100"}, {}, ALL - {(1, None)}),
        ({"queue": "debug"}, {}, ALL - {(8, None)}),
        ({"user": "bob"}, {}, (ALL - {(2, "ada"), (6, "ada"), (8, None)}) | {(2, "bob"), (6, "bob")}),
        ({}, {"qos": "high"}, ALL - {(2, "ada"), (3, "vision"), (4, None)}),
        ({}, {"account": "lab", "accounts": ["lab"]}, (ALL - {(3, "vision"), (8, None)}) | {(3, "lab")}),
        ({}, {"accounts": ["vision"]}, ALL - {(7, None)}),
    ],
)
def test_a_job_is_under_the_limits_of_its_type_partition_qos_accounts_and_user(
    job: Mapping[str, str], owner: Mapping[str, Any], expected: set[tuple[int, str | None]]
) -> None:
    assert set(gpu_limits.keys(LIMITS, OWNER | dict(owner), JOB | dict(job))) == expected
    assert not list(gpu_limits.keys(LIMITS, None, JOB))
