"""Columns of result tables that are parts of one whole; the pictures of page and terminal stack them in this order."""

CAUSES = (
    "fair_share_h", "capacity_h", "fragmentation_h", "scheduler_h", "ineligible_h", "dependency_h", "held_h",
    "reservation_h", "limit_h",
)  # fmt: skip
"""What the hours of waits were waited for."""

USES = ("useful_gpu_h", "overhead_gpu_h", "lost_gpu_h", "idle_gpu_h")
"""What a replay's GPU-hours went into."""
