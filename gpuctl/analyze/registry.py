"""The registry of results: which tables an analysis has, in the order they are shown.

A new analysis is one file in `queries/` and one line here. Standard library only, so that the command line
can offer the names without loading anything heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.core.spelling import meant

if TYPE_CHECKING:
    from collections.abc import Iterable

SECTIONS = (
    ("overview", "Overview"),
    ("runtime", "Run time"),
    ("queueing", "Waiting"),
    ("delays", "Why jobs waited"),
    ("locality", "Locality and order"),
    ("utilization", "Utilization"),
    ("failures", "Attempts and lost GPU-hours"),
    ("training", "Training progress"),
    ("quality", "Quality of the log"),
    ("reference", "Beside published values"),
)

TABLES = (
    "overview",
    "status",
    "queues",
    "users",
    "accounts",
    "occupancy",
    "activity",
    "activity_by_user",
    "activity_by_queue",
    "fragmentation",
    "runtime_by_size",
    "runtime_cdf",
    "job_times",
    "wait_by_size",
    "wait_by_queue",
    "never_started",
    "wait_cdf",
    "waits",
    "delay_causes",
    "delay_by_size",
    "delay_by_queue",
    "delay_two_way",
    "delay_before_eligible",
    "delay_while_free",
    "delay_settings",
    "delay_reasons",
    "sampled_reasons",
    "gang_acquisition",
    "queue_delays",
    "locality_by_size",
    "locality_delay",
    "locality_relaxation",
    "out_of_order",
    "gpu_util_by_state",
    "gpu_util_by_servers",
    "gpu_util_by_colocation",
    "gpu_util_cdf",
    "host_util",
    "host_util_cdf",
    "attempts_by_size",
    "gpu_hours_lost",
    "failure_reasons",
    "failure_categories",
    "failures_by_size",
    "failures_by_queue",
    "failures_by_user",
    "retry_by_size",
    "retry_reasons",
    "failure_savings",
    "failure_machines",
    "failure_unmatched",
    "failures",
    "training_convergence",
    "training_progress",
    "data_quality",
    "sources",
    "sampled_occupancy",
)

REFERENCES = {"atc19": ("reference_atc19", "reference_failures")}
"""Published values that ``--reference NAME`` prints beside ours, and the tables that do it."""

REFERENCE_TABLES = tuple(name for names in REFERENCES.values() for name in names)


def check_names(*, sections: Iterable[str] = (), tables: Iterable[str] = (), reference: str | None = None) -> None:
    """Refuse names that no section, table or reference has, before any work is done.

    Raises:
        UsageError: names the nearest ones that there are.
    """
    everything = (*TABLES, *REFERENCE_TABLES)
    for kind, names, known in (
        ("section", sections, tuple(key for key, _ in SECTIONS)),
        ("table", tables, everything),
        ("reference", () if reference is None else (reference,), tuple(REFERENCES)),
    ):
        for name in names:
            if name not in known:
                raise UsageError(f"there is no {kind} {name!r}", hint=meant(name, known))
