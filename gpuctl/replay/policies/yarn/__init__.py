"""Hadoop's YARN schedulers: configuration, and code shared by both."""
