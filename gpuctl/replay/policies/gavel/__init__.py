"""Gavel's policies: shares of time on each GPU type from a program, and rounds that give jobs what they are due."""
