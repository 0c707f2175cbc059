"""Sentences for users that record which of their characters are names from the data.

`note` builds one from a template and typed arguments: numbers, names of a kind (`NamedValue`), and other notes. A note
is a ``str``, so that code that prints, sorts or writes it needs nothing else. Code that shows results to strangers
(``gpuctl report --anonymise``) replaces its names by their kind and never parses the sentence; a ``str`` that is not a
`Note` may hold anything, and is replaced as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from gpuctl.core.storable_text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from decimal import Decimal

Kind = Literal[
    "account", "cluster", "job", "machine", "model", "name", "path", "policy", "queue", "rack", "text", "user", "value"
]
"""Whose a name is: ``path`` of files, folders and addresses, ``policy`` a policy as the user calls it, ``text`` what a
log, a program or another file says in its own words, ``name`` and ``value`` anything else that is not ours."""
KINDS: tuple[Kind, ...] = get_args(Kind)


def kind_named(word: str) -> Kind:
    """Return the kind of that name, as read from a file; ``value`` for one that only a newer gpuctl has."""
    return next((kind for kind in KINDS if kind == word), "value")


@dataclass(frozen=True)
class NamedValue:
    """An argument of a sentence: a name from the data, of a kind."""

    kind: Kind
    text: str


class Span(NamedTuple):
    """The characters of a note that are a name: from ``begin`` up to ``end``."""

    begin: int
    end: int
    kind: Kind


class Note(str):
    """A sentence and the positions of names in it.

    Args:
        text: the sentence.
        named: its names, in order, not overlapping.
    """

    __slots__ = ("named",)
    named: tuple[Span, ...]

    def __new__(cls, text: str, named: tuple[Span, ...] = ()) -> Note:
        """Make a note; use `note` to build a sentence."""
        self = super().__new__(cls, text)
        self.named = named
        return self

    def __getnewargs__(self) -> tuple[str, tuple[Span, ...]]:  # type: ignore[override] # it is copied with its names
        return str(self), self.named

    def replaced(self, how: Callable[[Kind, str], str]) -> Note:
        """Return the sentence with other names.

        Args:
            how: returns the replacement of a name, from its kind and the name.
        """
        parts: list[str | NamedValue] = []
        end = 0
        for begin, after, kind in self.named:
            parts += [self[end:begin], NamedValue(kind, how(kind, self[begin:after]))]
            end = after
        return _joined([*parts, self[end:]])


if TYPE_CHECKING:
    Argument = int | float | Decimal | NamedValue | Note
    """What may stand in a template; text only as a `NamedValue`, or as a `Note` of ours."""

NONE = Note("")
"""The empty sentence."""


def note(template: str, /, **arguments: Argument) -> Note:
    """Build a sentence from a template.

    Args:
        template: its text, with ``{name}`` or ``{name:format}`` for an argument, as in `str.format`,
            and ``{name|one|many}`` for words that depend on its number: ``{n:,} {n|job has|jobs have} no end``, or
            ``{n:,} job{n||s}``. A literal at the call: no part of it is data.
        arguments: values of the arguments.

    Raises:
        TypeError: an argument is text whose origin is not stated.
    """
    parts: list[str | NamedValue | Note] = []
    for text, name, form, _ in Formatter().parse(template):
        parts.append(text)
        if name is not None:
            key, *forms = name.split("|")
            parts.append(forms[not _is_one(arguments[key])] if forms else _formatted(key, arguments[key], form or ""))
    return _joined(parts)


def fields(template: str) -> set[str]:
    """Return the names of the arguments of a template."""
    return {name.partition("|")[0] for _, name, _, _ in Formatter().parse(template) if name is not None}


def in_plural(template: str) -> str:
    """Return a template with the plural in place of all words that depend on a number."""
    return re.sub(r"\{\w+\|[^|{}]*\|([^|{}]*)\}", r"\1", template)


def listed(kind: Kind, names: Iterable[str], most: int | None = None) -> Note:
    """Return names, separated by commas.

    Args:
        kind: of each.
        names: the names.
        most: most names to list.
    """
    some = list(names)[:most]
    return together(", ", [named(kind, name) for name in some])


def together(between: str, notes: Sequence[Note]) -> Note:
    """Join several notes into one.

    Args:
        between: separator, literal text.
        notes: the sentences.
    """
    parts: list[str | NamedValue | Note] = []
    for number, one in enumerate(notes):
        parts += [between, one] if number else [one]
    return _joined(parts)


def named(kind: Kind, name: str) -> Note:
    """Return a note that is a name and nothing else."""
    return Note(name, (Span(0, len(name), kind),) if name else ())


def literal(word: str) -> Note:
    """Return a literal word that is not a template: one of a fixed set in the code, never data."""
    return Note(word)


def counted(count: int, word: str) -> Note:
    """Return ``1 row``, ``2 rows``, ``1,234 rows``: the word is a literal at the call."""
    return Note(plural(count, word))


def untrusted(text: str) -> Note:
    """Return a text of unknown origin: all of it counts as one name."""
    return text if isinstance(text, Note) else named("text", text)


def is_untrusted(text: Note) -> bool:
    """Return whether a note is one text of unknown origin, without literal text."""
    return text.named == (Span(0, len(text), "text"),)


def _is_one(value: Argument) -> bool:
    """Return whether a count is singular; for a note, whether it is ``1`` or begins with it: ``1 row``."""
    if isinstance(value, NamedValue):
        return value.text == "1"
    return value.split(" ", 1)[0] == "1" if isinstance(value, Note) else value == 1


def _formatted(name: str, value: Argument, form: str) -> str | NamedValue | Note:
    if isinstance(value, Note | NamedValue):
        return value
    if not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{name} is text: say with Named whose, or make a note of it")
    return format(value, form)


def _joined(parts: Sequence[str | NamedValue | Note]) -> Note:
    spans: list[Span] = []
    size = 0
    texts: list[str] = []
    for part in parts:
        text = part.text if isinstance(part, NamedValue) else str(part)
        if isinstance(part, Note):
            spans += [Span(size + begin, size + end, kind) for begin, end, kind in part.named]
        elif isinstance(part, NamedValue) and text:
            spans.append(Span(size, size + len(text), part.kind))
        texts.append(text)
        size += len(text)
    return Note("".join(texts), tuple(spans))
