"""Text that files, tables and databases can hold."""

from __future__ import annotations


def storable(text: str) -> str:
    """Return text with halves of surrogates written out: names of files that are no UTF-8, and JSON, may hold such."""
    return text.encode("utf-8", "backslashreplace").decode()


def plural(count: int, word: str) -> str:
    """Return ``1 row``, ``2 rows``, ``1,234 rows``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
