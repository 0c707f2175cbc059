"""Runs the SQL of `queries/` on a trace store and returns documented result tables."""
