"""Why jobs of a replay never started, if some never could (see `gpuctl.replay.engine.never`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BEHIND = "waits behind a job that can never start"


def why_left(never: Mapping[int, str], jobs: Sequence[int], states: Sequence[str]) -> list[str | None]:
    """Return why each unfinished job did not finish, if jobs that can never start are the reason.

    When a replay ends, no event is left: jobs behind such a job may also wait forever.
    """
    behind = BEHIND if never else None
    return [never.get(job, behind if state == "waiting" else None) for job, state in zip(jobs, states, strict=True)]
