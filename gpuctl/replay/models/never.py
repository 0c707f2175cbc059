"""Why jobs of a replay never started, where some of them never could (`gpuctl.replay.engine.never` finds these)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BEHIND = "waits behind a job that can never start"


def why_left(never: Mapping[int, str], jobs: Sequence[int], states: Sequence[str]) -> list[str | None]:
    """Return why each of the jobs that did not finish did not, as far as jobs that can never start are why.

    Nothing is left to happen when a replay ends: with such a job ahead of them others may wait for ever, too.
    """
    behind = BEHIND if never else None
    return [never.get(job, behind if state == "waiting" else None) for job, state in zip(jobs, states, strict=True)]
