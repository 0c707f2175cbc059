"""What reasons say of other tries: every reason has its place, and a narrower origin counts."""

from __future__ import annotations

import pytest

from gpuctl.joblogs import retry_prospects
from gpuctl.joblogs.retry_prospects import may_pass, where_it_shows
from gpuctl.joblogs.table import load

NOT_KNOWN = {
    "cancelled", "core_dump", "hang", "invalid_memory_access", "model_diverged", "no_signature", "nothing_logged",
    "numerical_error", "process_killed", "resource_limit", "step_failed", "time_limit", "traceback",
}  # fmt: skip
"""Reasons that say too little of where they would show."""


def test_every_reason_has_one_place() -> None:
    sets = (
        retry_prospects.SAME_AGAIN,
        retry_prospects.INPUTS,
        retry_prospects.BETWEEN,
        retry_prospects.MACHINE,
        NOT_KNOWN,
    )
    every = [reason for each in sets for reason in each]
    assert sorted(every) == sorted(load().reasons)


@pytest.mark.parametrize(
    ("reason", "category", "place", "passes"),
    [
        ("syntax_error", "infrastructure+user", "one GPU", False),
        ("incorrect_inputs", "infrastructure+user", "one GPU", True),
        ("incorrect_inputs", "user", "one GPU", False),
        # its signature says that the storage failed
        ("incorrect_inputs", "infrastructure", "node or service", True),
        ("nccl_error", "infrastructure+ai_engine", "several GPUs", True),
        ("cpu_out_of_memory", "ai_engine+user", "several GPUs", False),
        ("gpu_hardware_error", "infrastructure", "node or service", True),
        ("core_dump", "ai_engine+user", "not known", True),
        ("a_reason_of_the_users_own", "user", "not known", True),
        (None, None, "not known", True),
    ],
)
def test_where_a_failure_shows_and_whether_it_may_pass(
    reason: str | None, category: str | None, place: str, passes: bool
) -> None:
    assert where_it_shows(reason, category) == place
    assert may_pass(reason, category) == passes
