"""The columns of result tables that hold names, with their kinds, for `gpuctl.reports.privacy.anonymise`.

A column is identified by its name, in any table. A text column that is in neither table below is assumed to hold names:
a result of a newer gpuctl, or from a stranger, reveals no more than one of this version.
"""

from __future__ import annotations

NAMES: dict[str, str] = {
    "account": "account",
    "beside": "job",
    "cluster": "cluster",
    "example_job": "job",
    "group": "account",
    "host": "machine",
    "job": "job",
    "job_name": "name",
    "jobs": "job",
    "largest_job": "job",
    "line": "job",
    "machine": "machine",
    "machines": "machine",
    "model": "model",
    "name": "name",
    "node": "machine",
    "nodes": "machine",
    "partition": "queue",
    "path": "path",
    "queue": "queue",
    "run": "name",
    "rack": "rack",
    "store": "path",
    "user": "user",
    "users": "user",
    "vc": "queue",
}
"""Column -> whose names it holds; that is also what the pseudonyms begin with. Numbers in them stay (``nodes`` may
be how many), but for the names of `NUMBERED`."""

NUMBERED = frozenset({"account", "beside", "example_job", "job", "user"})
"""Columns whose whole numbers are names."""

LINES = frozenset({"evidence", "example", "most_rejected_for", "template"})
"""Columns of text that jobs printed, or that quote a log: masked entirely."""

WORDS = frozenset({"source_reason", "source_state"})
"""Columns of a scheduler's own words, which may go on with names: ``ReqNodeNotAvail, UnavailableNodes:n[1-3]``. The
first word stays, but that of a state which nobody knows."""

ROLES: dict[tuple[str, str], str] = {
    ("failure_nodes", "bad"): "beside",
    ("predictions", "provenance"): "sentence",
    ("predictions", "reason"): "sentence",
    ("replay_unfinished", "reason"): "sentence",
    ("failure_gaps", "group"): "word",
    ("failure_rate_ratios", "against"): "group",
    ("failure_rate_ratios", "group"): "group",
    ("failure_rates", "group"): "group",
    ("interrupted_attempts", "evidence"): "word",
    ("lemon_nodes", "evidence"): "word",
    ("sampled_reasons", "reason"): "word",
    ("replay_fidelity", "value"): "group",
}
"""(table, column) that hold something else than the column's name says; ``group``: what the column ``by`` says;
``sentence``: one of the table's notes (`ResultTable.sentences`);
``beside``: ``beside MACHINE``, or a word of ours."""

UNMASKED = frozenset(
    {
        *("asked_p50", "freed", "gpu_type", "gpu_util_coverage", "mem_source"),
        *("month", "period", "resource", "started_as", "verdict"),
        *("basis", "class", "component", "gpu_suspect", "lemon", "link", "setting", "signal"),
        "action", "against", "as_good", "assumption", "bad", "baseline", "better", "block", "by", "category", "cause",
        "cause_at_arrival", "change", "cleared",
        "code", "colocation", "condition", "cost", "definition", "derived", "dominant_cause", "end",
        "feature", "finding", "format", "gpu", "gpus",
        "group_name", "held_by", "job_state", "kind", "lag", "lesson", "load", "main_cause", "meaning", "measure",
        "linear_ettr", "method", "metric", "narrowed_by",
        "other_reasons", "place", "placed", "point_unit", "policy", "population",
        "predictor", "quirks", "quota_source", "racks_by",
        "reason",
        "reasons", "result", "rule", "signature", "size", "size_bucket", "state", "stream", "study", "table", "told_by",
        "top_reason", "total", "treatment", "unit", "used", "value", "waited", "what", "with_xid",
        "chosen", "differs", "forecast_model", "time",
    }
)  # fmt: skip
"""Columns of text that are not masked: words of gpuctl, of policies, and of signature tables."""

MARKERS = frozenset({"", "all", "other", "others", "unknown", "not stated", "none"})
"""gpuctl's own values in columns of names: totals and unknowns."""

KNOWN_FILES = frozenset(
    {
        "capacity-scheduler.xml", "cgroup.conf", "fair-scheduler.xml", "gres.conf", "slurm.conf", "slurmctld.log",
        "slurmdbd.conf", "topology.conf", "yarn-site.xml",
    }
)  # fmt: skip
"""File names that are the same at every site."""

COMMANDS = frozenset({"analyze", "explain", "overhead", "predict", "replay", "report", "runtime", "train"})
"""Words of a command line that are not masked."""
