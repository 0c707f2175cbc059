"""Reads the output of jobs: reasons of failures and training progress. Independent of stores and clusters."""
