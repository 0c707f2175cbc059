"""Policies that put jobs into an order, and no more."""
