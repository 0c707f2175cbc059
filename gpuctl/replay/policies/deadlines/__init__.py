"""Policies that go by the deadlines of jobs."""
