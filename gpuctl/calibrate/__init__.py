"""Finds the rules with which a replay starts the jobs of a trace as recorded, and says how near that comes."""
