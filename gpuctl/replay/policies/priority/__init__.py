"""Policies that only order jobs."""
