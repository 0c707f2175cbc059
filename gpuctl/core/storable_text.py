"""Text that files, tables and databases can hold."""

from __future__ import annotations


def storable(text: str) -> str:
    """Return text with halves of surrogates written out: names of files that are no UTF-8, and JSON, may hold such."""
    return text.encode("utf-8", "backslashreplace").decode()


def plural(count: int, word: str) -> str:
    """Return ``1 row``, ``2 rows``, ``1,234 rows``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


_SINGULAR = {
    "are": "is",
    "ask": "asks",
    "depend": "depends",
    "do": "does",
    "have": "has",
    "need": "needs",
    "were": "was",
}


def agreeing(count: int, phrase: str) -> str:
    """What is said of several, as ``have no end``, of that many: ``has no end`` of one.

    Args:
        count: of what it is said.
        phrase: begins with the verb, in the plural; a verb that has one form for both stays as it is.
    """
    verb, space, rest = phrase.partition(" ")
    return f"{_SINGULAR.get(verb, verb) if count == 1 else verb}{space}{rest}"
