"""Reads what jobs print: why they failed, how their training went. Knows nothing of stores or clusters."""
