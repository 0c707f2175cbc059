"""The sections that analyses stand in, and the published values that they can print; for the command line's help."""

SECTIONS = (
    ("overview", "Overview"),
    ("runtime", "Run time"),
    ("queueing", "Waiting"),
    ("delays", "Why jobs waited"),
    ("locality", "Locality and order"),
    ("utilization", "Utilization"),
    ("failures", "Attempts and lost GPU-hours"),
    ("training", "Training progress"),
    ("workload", "Workload"),
    ("quality", "Quality of the log"),
    ("reference", "Beside published values"),
)
"""Key and heading of each, in the order in which they are shown."""

REFERENCES = ("atc19", "helios", "acme", "pai", "openb", "spot", "supercloud", "traces")
"""Published values that ``--reference NAME`` prints beside ours."""

FORMER_NAMES = {"failure_machines": "failure_nodes", "gpu_util_by_servers": "gpu_util_by_nodes"}
"""Tables that had another name until version 0.2: ``--table`` and results saved as JSON may still use it."""
