"""Policies that plan ahead with time limits."""
