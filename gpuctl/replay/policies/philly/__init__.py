"""Philly's scheduler."""
