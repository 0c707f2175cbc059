"""Text that files, tables and databases can hold."""

from __future__ import annotations


def storable(text: str) -> str:
    """Return text with lone surrogates written out: names of files that are not UTF-8, and JSON, may hold them."""
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
    """Make a verb phrase, as ``have no end``, agree with a count: ``has no end`` for one.

    Args:
        count: number of the subject.
        phrase: begins with the verb in the plural; a verb with one form for both is unchanged.
    """
    verb, space, rest = phrase.partition(" ")
    return f"{_SINGULAR.get(verb, verb) if count == 1 else verb}{space}{rest}"
