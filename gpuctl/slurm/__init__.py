"""Readers of Slurm's files and commands, shared by ingest and replay."""
