"""Why figures of an analysis are empty: facts that its sources do not state, and where the documents name the fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.core.results import Analysis

DOCUMENT = "docs/how-to/why-empty.md"


@dataclass(frozen=True)
class Reason:
    """A fact that the sources do not state, and the figures that are empty for it.

    Attributes:
        what: a heading of `DOCUMENT`, in small letters.
        text: which figures are empty, and what to do.
    """

    what: str
    text: str

    @property
    def anchor(self) -> str:
        """The heading's anchor in `DOCUMENT`."""
        return self.what.replace(" ", "-")


def reasons(analysis: Analysis) -> tuple[Reason, ...]:
    """Return what is unknown in an analysis with the table `overview`, and leaves figures of its screen empty."""
    about = _only(analysis, "overview")
    if not about.get("jobs"):
        return ()
    return tuple(reason for reason, applies in _REASONS if applies(analysis, about))


def _only(analysis: Analysis, name: str) -> dict[str, Any]:
    table = analysis.table(name)
    return table.frame.row(0, named=True) if table is not None and table.frame.height else {}


def _no_end_states(analysis: Analysis, about: dict[str, Any]) -> bool:
    table = analysis.table("status")
    return table is not None and table.frame.height > 0 and set(table.frame["state"]) <= {"unknown", "all"}


def _over_full(analysis: Analysis, about: dict[str, Any]) -> bool:
    return (
        bool(about.get("gpus") and about.get("gpu_hours") and about.get("span_days"))
        and about.get("occupancy_pct") is None
    )


_REASONS: tuple[tuple[Reason, Callable[[Analysis, dict[str, Any]], bool]], ...] = (
    (
        Reason(
            "GPUs of jobs",
            "No source states how many GPUs jobs held: GPU-hours, sizes and causes of waits are empty, and "
            "node-hours replace GPU-hours. If jobs have nodes to themselves, give --gpus-per-node N or a file of "
            "nodes.",
        ),
        lambda analysis, about: bool(about.get("size_unknown")) and about.get("gpu_hours") is None,
    ),
    (
        Reason(
            "GPUs of the cluster",
            "No source lists the nodes and their GPUs: the share of GPUs allocated is empty. Load the node list "
            "too, or give --gpus-per-node FILE.",
        ),
        lambda analysis, about: not about.get("gpus"),
    ),
    (
        Reason(
            "shares above all GPUs",
            "More GPUs were held than the known nodes have, or the starts of some jobs are unknown: the share of "
            "GPUs allocated is left out.",
        ),
        _over_full,
    ),
    (
        Reason("telemetry", "No source has samples of GPU utilization: it is empty everywhere."),
        lambda analysis, about: not about.get("gpu_samples"),
    ),
    (
        Reason(
            "start times",
            "No source states when jobs started after their submission: there are no waits and no causes of waits.",
        ),
        lambda analysis, about: about.get("wait_p50_min") is None,
    ),
    (
        Reason(
            "end states",
            "No source states how jobs ended: the shares of completed jobs and of lost hours are empty.",
        ),
        _no_end_states,
    ),
)
EVERY = tuple(reason for reason, _ in _REASONS)
"""Every kind of data that may be missing."""
