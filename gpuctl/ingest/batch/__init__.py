"""Batch systems whose records describe runs of jobs: LSF, Grid Engine, HTCondor, PBS and Torque."""
