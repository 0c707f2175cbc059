"""Sentences of ours for users, which know which of their characters are somebody's name.

`note` makes one of a template and typed arguments: numbers, names of a kind (`NamedValue`), and other notes. It is the
text, as a ``str``, so that whatever prints, sorts or writes it needs to know no more. What shows results to strangers
(``gpuctl report --anonymise``) replaces its names by their kind, and never reads the sentence itself; a ``str`` that
is no `Note` may hold anything, and is replaced as a whole.
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


def known_kind(word: str) -> Kind:
    """The kind of that name, as a file tells it; ``value`` for one that only a newer gpuctl knows."""
    return next((kind for kind in KINDS if kind == word), "value")


@dataclass(frozen=True)
class NamedValue:
    """What stands for itself in a sentence: a name that is not ours, of a kind."""

    kind: Kind
    text: str


class Span(NamedTuple):
    """Where in a note a name stands: its characters from ``begin`` up to ``end``."""

    begin: int
    end: int
    kind: Kind


class Note(str):
    """A sentence of ours, and where names stand in it.

    Args:
        text: the sentence.
        named: its names, in order and apart from one another.
    """

    __slots__ = ("named",)
    named: tuple[Span, ...]

    def __new__(cls, text: str, named: tuple[Span, ...] = ()) -> Note:
        """Make one; `note` is what sentences are made with."""
        self = super().__new__(cls, text)
        self.named = named
        return self

    def __getnewargs__(self) -> tuple[str, tuple[Span, ...]]:  # type: ignore[override] # it is copied with its names
        return str(self), self.named

    def replaced(self, how: Callable[[Kind, str], str]) -> Note:
        """Return the sentence with other names.

        Args:
            how: what stands in the place of a name, given its kind and the name.
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
    """Return a sentence of ours.

    Args:
        template: its text, with ``{name}`` or ``{name:format}`` in the place of an argument, as `str.format` has them,
            and ``{name|one|many}`` for words that depend on its number: ``{n:,} {n|job has|jobs have} no end``, or
            ``{n:,} job{n||s}``. Written out where it is called: no part of it is data.
        arguments: what stands there.

    Raises:
        TypeError: an argument is text of which nobody says whose it is.
    """
    parts: list[str | NamedValue | Note] = []
    for text, name, form, _ in Formatter().parse(template):
        parts.append(text)
        if name is not None:
            key, *forms = name.split("|")
            parts.append(forms[not _is_one(arguments[key])] if forms else _formatted(key, arguments[key], form or ""))
    return _joined(parts)


def fields(template: str) -> set[str]:
    """The names of the arguments of a template."""
    return {name.partition("|")[0] for _, name, _, _ in Formatter().parse(template) if name is not None}


def in_plural(template: str) -> str:
    """Return a template with the words for many in the place of all that depend on a number."""
    return re.sub(r"\{\w+\|[^|{}]*\|([^|{}]*)\}", r"\1", template)


def listed(kind: Kind, names: Iterable[str], most: int | None = None) -> Note:
    """Return names, with commas.

    Args:
        kind: of each.
        names: the names.
        most: so many of them at most.
    """
    some = list(names)[:most]
    return together(", ", [named(kind, name) for name in some])


def together(between: str, notes: Sequence[Note]) -> Note:
    """Return several as one.

    Args:
        between: what of ours stands between them.
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
    """Return a word of ours that is no template: one of a fixed set that the code holds, never data."""
    return Note(word)


def counted(count: int, word: str) -> Note:
    """Return ``1 row``, ``2 rows``, ``1,234 rows``: the word is written out where this is called."""
    return Note(plural(count, word))


def untrusted(text: str) -> Note:
    """Return a text of which is not known which parts of it are names: all of it counts as one."""
    return text if isinstance(text, Note) else named("text", text)


def is_foreign(text: Note) -> bool:
    """Whether nothing of a note is ours: it is one text of which not known is which parts are names."""
    return text.named == (Span(0, len(text), "text"),)


def _is_one(value: Argument) -> bool:
    """Whether what is counted is in the singular; of a note, whether it is ``1`` or begins with it: ``1 row``."""
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
