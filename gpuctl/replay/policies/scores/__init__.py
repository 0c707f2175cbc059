"""Policies that give each waiting job a score and start the lowest first."""
