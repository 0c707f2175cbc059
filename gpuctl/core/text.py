"""Text that files, tables and databases can hold."""

from __future__ import annotations


def storable(text: str) -> str:
    """Return text with halves of surrogates written out: names of files that are no UTF-8, and JSON, may hold such."""
    return text.encode("utf-8", "backslashreplace").decode()
