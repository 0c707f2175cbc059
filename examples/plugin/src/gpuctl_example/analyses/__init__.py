"""Analyses: every file of SQL in this folder is one."""
