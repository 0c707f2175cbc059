"""Turns log files into rows of the trace store. Never computes a metric."""
