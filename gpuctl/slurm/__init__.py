"""Readers of what Slurm's files and commands state: one understanding, for ingest and replay alike."""
