"""Gavel's max-min fairness over GPU types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.replay.policies.gavel.rounds import GavelRounds
from gpuctl.replay.policies.gavel.shares import fair_shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gpuctl.replay.contract.view import View

    Floats = NDArray[np.float64]


class MaxMin(GavelRounds):
    """Each round runs the jobs with least of their share of time on a GPU type so far; an LP gives the shares."""

    name = "max-min"
    title = "in rounds, jobs get max-min fair shares of time on each GPU type, by their speed there"
    source = (
        "Narayanan et al., Gavel, OSDI 2020: the program, rounds of 360 s and priorities as in its authors' simulator; "
        "shares beyond those of the worst off and even over types, and placement: ours"
    )

    def shares(self, view: View, jobs: Sequence[int], speeds: Floats, gpus: Floats) -> Floats:
        """See `GavelRounds.shares`."""
        del view, jobs
        return fair_shares(speeds, gpus, self.room)[0]
