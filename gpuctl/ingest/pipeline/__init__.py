"""Loads the paths that a user names into the trace store: detects the format of each file and reads it."""
