"""Prints results for people at a terminal."""
