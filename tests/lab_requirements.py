"""Skips the tests of a lab that cannot run; with GPUCTL_LABS=1 they fail instead."""

from __future__ import annotations

import os

import pytest

REQUESTED = os.environ.get("GPUCTL_LABS") == "1"


def skip_or_fail(why: str | None) -> None:
    """End the test if a lab cannot run; `why` is the reason, None: it can run."""
    if why and REQUESTED:
        pytest.fail(f"GPUCTL_LABS is set, and {why}")
    if why:
        pytest.skip(why)
