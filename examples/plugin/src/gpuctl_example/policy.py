"""A policy: whoever has asked for the fewest GPUs so far goes first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpuctl.plugins import RankPolicy

if TYPE_CHECKING:
    from gpuctl.plugins import Arrivals


class SmallUsersFirst(RankPolicy):
    """The job first whose user has asked for the fewest GPUs until then; jobs that do not fit are skipped."""

    name = "small-users-first"
    title = "the job first whose user has asked for the fewest GPUs until then"
    source = "gpuctl-example"

    def begin(self) -> None:
        """Start with nobody having asked for anything."""
        self.asked: Counter[int] = Counter()

    def rank(self, jobs: Arrivals) -> list[float]:
        """Rank the jobs of one instant by what their users asked for before them."""
        found = []
        for user, gpus in zip(jobs.user.tolist(), jobs.gpus.tolist(), strict=True):
            found.append(float(self.asked[user]))
            self.asked[user] += gpus
        return found
