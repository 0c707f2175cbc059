"""Features of a candidate stage for rules, and limits on the executors that rules give to its job."""

from __future__ import annotations

from enum import StrEnum

FEATURES = (
    "stage_ms", "left", "job_ms", "job_rank", "held", "share", "path_ms", "children", "local_free", "free", "jobs",
)  # fmt: skip
"""Features of a candidate, in the order of the rows."""
AMOUNT = "amount"
"""Executors of an action: one more feature where rules choose among the actions of the search."""


class Limit(StrEnum):
    """Limits on the executors that rules give to a job.

    ``fair``: up to its share; ``all``: as many as are free; ``tree``: the rules choose among the search's actions.
    """

    FAIR = "fair"
    ALL = "all"
    TREE = "tree"


def features_of(limit: Limit) -> tuple[str, ...]:
    """Return the features that the rules may use."""
    return (*FEATURES, AMOUNT) if limit is Limit.TREE else FEATURES
