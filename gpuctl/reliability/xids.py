"""What Xid codes of NVIDIA's driver mean, and which events the lines of a kernel log are.

Classes follow the action that NVIDIA's catalogue names for a code (docs.nvidia.com/deploy/xid-errors, read in November
2026): RESTART_APP is ``application``; RESET_GPU, CONTACT_SUPPORT and draining are ``hardware``.
"""

from __future__ import annotations

import polars as pl

COALESCE_S = 5.0
"""Lines of one node, device and code that follow within so many seconds are one event (Delta, arXiv 2503.11901)."""
HARDWARE = frozenset({48, 62, 64, 74, 79, 92, 94, 95, 110, 119, 120, 121, 136, 140, 143})
APPLICATION = frozenset({8, 11, 12, 13, 31, 43, 45, 68, 69})
WATCH = frozenset({61, 63, 93, 109})
RECOVERY_ACTION = 154
MEANINGS = {
    8: "GPU stopped processing",
    13: "graphics engine exception",
    31: "GPU memory page fault",
    43: "GPU stopped processing",
    45: "preemptive clean-up",
    48: "double-bit ECC error",
    61: "internal microcontroller breakpoint",
    62: "internal microcontroller halt",
    63: "row remapping recorded",
    64: "row remapping failed",
    74: "NVLink error",
    79: "GPU fell off the bus",
    92: "high rate of single-bit ECC errors",
    94: "contained ECC error",
    95: "uncontained ECC error",
    109: "context switch timeout",
    110: "security fault",
    119: "GSP RPC timeout",
    120: "GSP error",
    121: "C2C link error",
    140: "unrecovered ECC error",
    143: "GPU initialization error",
    154: "GPU recovery action changed",
}

MEMORY_CODES = frozenset({48, 64, 92, 94, 95, 140})
NVLINK_CODES = frozenset({74})


def component(code: pl.Expr) -> pl.Expr:
    """What a hardware code is of: memory, NVLink, GPU."""
    return (
        pl.when(code.is_in(list(MEMORY_CODES)))
        .then(pl.lit("memory"))
        .when(code.is_in(list(NVLINK_CODES)))
        .then(pl.lit("NVLink"))
        .otherwise(pl.lit("GPU"))
    )


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """Join repeated lines: one row an event.

    Args:
        lines: ``node``, ``ts_s``, ``device``, ``xid``, ``message``.

    Returns:
        ``node``, ``ts_s`` (of the first line), ``xid``, ``class``, ``lines``; by node and time.
    """
    by = ["node", "device", "xid"]
    rows = lines.sort(*by, "ts_s")
    new = (pl.col("ts_s") - pl.col("ts_s").shift().over(by)).fill_null(float("inf")) > COALESCE_S
    drains = (pl.col("xid") == RECOVERY_ACTION) & pl.col("message").str.contains(r"(?i)drain|reset").fill_null(False)
    kind = (
        pl.when(pl.col("xid").is_in(list(HARDWARE)) | drains)
        .then(pl.lit("hardware"))
        .when(pl.col("xid").is_in(list(APPLICATION)))
        .then(pl.lit("application"))
        .when(pl.col("xid").is_in(list(WATCH)))
        .then(pl.lit("watch"))
        .otherwise(pl.lit("other"))
    )
    rows = rows.with_columns(kind.alias("class"), event=new.cum_sum())
    grouped = rows.group_by("event", maintain_order=True).agg(
        pl.col("node", "ts_s", "xid", "class").first(), lines=pl.len()
    )
    return grouped.drop("event").sort("node", "ts_s", "xid")
