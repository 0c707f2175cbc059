"""Shared code of the readers of Slurm's accounting: fields, attempts, states, and the way into the store."""
