"""Workloads: models fitted to traces, jobs that are drawn from them, and how like the trace these are."""
