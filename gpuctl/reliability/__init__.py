"""Reliability of a cluster: what interrupted attempts, how often, what it cost, and what would help."""
