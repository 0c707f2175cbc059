"""Draws charts for pages."""
