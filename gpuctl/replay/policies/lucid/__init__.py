"""Lucid: packing of jobs that leave each other enough, by predicted GPU-time."""
