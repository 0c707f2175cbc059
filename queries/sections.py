"""The sections of analyses, and the published values that they can print; for the command line's help."""

SECTIONS = (
    ("overview", "Overview"),
    ("runtime", "Run time"),
    ("queueing", "Waiting"),
    ("delays", "Causes of waits"),
    ("locality", "Locality and order"),
    ("utilization", "Utilization"),
    ("failures", "Attempts and lost GPU-hours"),
    ("training", "Training progress"),
    ("reliability", "Reliability"),
    ("workload", "Workload"),
    ("quality", "Quality of the log"),
    ("reference", "Comparison with published values"),
)
"""Key and heading of each section, in display order."""

REFERENCES = (
    "atc19",
    "helios",
    "acme",
    "pai",
    "openb",
    "spot",
    "supercloud",
    "traces",
    "kokolis25",
    "llama3",
    "delta",
    "reliability",
)
"""Published values for ``--reference NAME``."""

FORMER_NAMES = {"failure_machines": "failure_nodes", "gpu_util_by_servers": "gpu_util_by_nodes"}
"""Tables renamed in version 0.2: ``--table`` and results saved as JSON may still use the former name."""
