"""Readers of what Slurm's files and commands say: one understanding, for ingest and replay alike."""
