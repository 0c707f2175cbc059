"""Finds the rules with which a replay starts a trace's jobs as recorded, and reports how close it comes."""
