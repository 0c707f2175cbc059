"""Writes results to files."""
