"""Byte streams of files, archives and compressed data."""
