"""Sections and tables of a replay."""

from __future__ import annotations

SECTIONS = ("replay", "replay_compared", "replay_over_time", "replay_jobs")


TABLES = (
    "replay_summary", "replay_by_size", "replay_by_queue", "replay_preemptions", "replay_failures",
    "replay_deadlines", "replay_jct_cdf", "replay_wait_cdf", "replay_vs_baseline", "replay_vs_recorded",
    "replay_vs_unchanged", "replay_fidelity", "replay_timeline", "replay_heatmap", "replay_gantt", "replay_changes",
    "replay_gpus", "replay_fairness", "replay_rho_cdf", "replay_unfinished", "replay_jobs", "replay_traits",
)  # fmt: skip


SHORT_FILES = {"replay_jobs": "jobs", "replay_summary": "summary"}
"""Tables whose files --parquet and --csv call by a shorter name; other programs read them."""

SWEEP_TABLES = ("experiments_summary", "experiments", "replay_failures")
"""Tables of replays with several values of an option."""
