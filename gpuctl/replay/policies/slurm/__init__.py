"""Slurm's scheduling as pure functions: what a site has configured, decayed usage, fair-share, multifactor priority.

The recordings of a real Slurm under ``tests/fixtures/slurm/priority`` are the reference of these functions.
Slurm's own source (SchedMD/slurm, src/plugins/priority/multifactor) was read for facts that its pages leave open.
"""
