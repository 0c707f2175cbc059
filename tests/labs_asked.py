"""Whether the labs are asked for: then one that cannot run is a failure, else its tests are skipped."""

from __future__ import annotations

import os

import pytest

ASKED = os.environ.get("GPUCTL_LABS") == "1"


def need(why: str | None) -> None:
    """End the test where a lab cannot run; `why` says it, None: it can."""
    if why and ASKED:
        pytest.fail(f"GPUCTL_LABS is set, and {why}")
    if why:
        pytest.skip(why)
