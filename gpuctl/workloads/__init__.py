"""Workloads: models fitted to traces, jobs drawn from them, and their similarity to the trace."""
