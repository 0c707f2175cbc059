"""What becomes of text in columns that are no names: paths and addresses go, the first word of a scheduler stays.

Cells hold a word, a policy or a signature, never a sentence of ours: sentences are notes (`gpuctl.core.notes`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.reports.privacy.names import KNOWN_FILES

if TYPE_CHECKING:
    from collections.abc import Callable

_TOKEN = re.compile(r"[^\s,;()\"'\[\]{}<>|=]+")
_FILE = re.compile(
    r".+\.(?:bz2|conf|csv|duckdb|err|gz|h5|html|json|jsonl|log|out|parquet|pdf|py|tar|tgz|toml|tsv|txt|xml|xz|yaml|yml"
    r"|zip|zst)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|(?=[^.]*[a-z])[a-z0-9-]+(?:\.[a-z0-9-]+)+\.[a-z]{2,}", re.IGNORECASE)
_OUR_PAGES = re.compile(r"docs/(?:[\w-]+/){0,2}[\w-]+\.md")
_WORD = re.compile(r"([A-Za-z][A-Za-z_+]*)(?=$|[\s,;:(\[])")


def first_word(text: str) -> str:
    """The word that a scheduler's reason or state begins with; empty where it begins with none."""
    found = _WORD.match(text)
    return found[1] if found else ""


def without_places(text: str, pseudonym: Callable[[str, str], str]) -> str:
    """A text of which only paths and addresses are replaced.

    Args:
        text: of a cell, or what the user calls a policy.
        pseudonym: of a kind and a name.
    """

    def replaced(found: re.Match[str]) -> str:
        kind = _kind(found[0])
        return pseudonym(kind, found[0]) if kind else found[0]

    return _TOKEN.sub(replaced, text)


def _kind(token: str) -> str | None:
    """Whether this is a path or the address of a machine; None for what is neither."""
    if token in KNOWN_FILES or _OUR_PAGES.fullmatch(token):
        return None
    rooted = re.match(r"(?:/|\./|\.\./|~|[A-Za-z]:\\)", token) and len(token) > 1
    if "://" in token or rooted or token.count("/") > 1 or _FILE.fullmatch(token.partition(":")[0]):
        return "path"
    return "machine" if _ADDRESS.fullmatch(token) else None
