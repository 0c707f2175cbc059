"""Gavel's policies: shares of time on each GPU type from a linear program, and rounds that realize them."""
