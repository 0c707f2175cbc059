"""Reads YARN's ResourceManager and NodeManager logs, REST answers and timeline dumps, and merges them."""
