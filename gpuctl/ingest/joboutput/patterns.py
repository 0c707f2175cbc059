"""Patterns for the paths of jobs' output at a site: ``{job}/{attempt}/{stream}``, ``%x-%A_%a.out``.

A pattern is no regular expression: it is cut into literal text and placeholders, and matched folder by folder, in time
that grows with the product of the two lengths whatever they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from gpuctl.core.errors import UsageError
from gpuctl.ingest.read.codecs import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["literal", "free", "text", "number"]

BRACED: dict[str, tuple[Kind, str]] = {
    "job": ("text", "job"),
    "attempt": ("number", "attempt"),
    "attempt+1": ("number", "attempt+1"),
    "stream": ("text", "stream"),
    "rank": ("number", "rank"),
    "container": ("text", "container"),
    "name": ("free", ""),
    "*": ("free", ""),
}
SLURM: dict[str, tuple[Kind, str]] = {
    "j": ("number", "id"),
    "A": ("number", "array"),
    "a": ("number", "task"),
    "J": ("text", "job.step"),
    "s": ("text", "step"),
    "t": ("number", "rank"),
    "n": ("number", "node"),
    "N": ("text", "host"),
    "x": ("free", ""),
    "u": ("free", ""),
}
"""What sbatch replaces in the names of output files (its manual, "filename pattern")."""
NO_TASK = 4294967294
"""What Slurm puts in the place of %a for a job that is in no array."""
_WORDS = re.compile(r"\{\{|\}\}|\{([^{}/]*)\}|%%|%(\d{0,2})([A-Za-z])|\*+|[^{}%*]+|.", re.DOTALL)
_DIGITS = frozenset("0123456789")
_MOST_DIGITS = 19
_MOST_TOKENS = 100
_STREAMS = {"out": "stdout", "o": "stdout", "err": "stderr", "e": "stderr", "stdout": "stdout", "stderr": "stderr"}
_OF_STDERR = re.compile(r"(?:^|[._-])(?:stderr|err|e)(?:$|[._-])")
_OF_STDOUT = re.compile(r"(?:^|[._-])stdout(?:$|[._-])")


class Log(NamedTuple):
    """Whose output a log is.

    Attributes:
        job: as the path spells it; ``12_3`` for a task of a Slurm array.
        attempt: counted from 0; None if the path does not state.
        stream: ``stdout``, ``stderr``, ``output`` (both in one), or another name; after a colon, container, step,
            host or rank if the path names them.
        rank: of the process that wrote it.
    """

    job: str
    attempt: int | None
    stream: str
    rank: int | None = None


@dataclass(frozen=True)
class _Token:
    kind: Kind
    name: str
    text: str = ""
    width: int = 0


class Pattern:
    """One pattern.

    Args:
        text: as the user wrote it, relative to the directory of the logs. ``/`` parts folders and stands in no
            placeholder. ``*``, ``{*}``, ``{name}``, ``%x`` and ``%u`` are any text; ``{job}``, ``{stream}`` and
            ``{container}`` some text; ``{attempt}`` and ``{rank}`` digits. A compression's suffix is implied.

    Raises:
        UsageError: it names no job, or has an unknown placeholder.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        plain = text.removeprefix("./")
        suffix = next((s for s in SUFFIXES if plain.endswith(s)), "")
        plain = plain[: len(plain) - len(suffix)]
        pieces = plain.split("/")
        if not plain or any(piece in {"", ".", ".."} for piece in pieces):
            raise _wrong(text, "it has to be a path relative to the directory of the logs")
        self._parts = [_tokens(text, piece) for piece in pieces]
        names = [token.name for part in self._parts for token in part if token.name]
        ids = {"job", "id", "array", "job.step"} & set(names)
        if not ids:
            raise _wrong(text, "it does not contain the job's id: {job}, %j, or %A_%a")
        if len(ids) > 1 or {"attempt", "attempt+1"} <= set(names):
            raise _wrong(text, "it has the id of the job, or the attempt, in two forms")
        self._stream = _default_stream("".join(t.text for t in self._parts[-1] if t.kind == "literal"))

    def match(self, path: str) -> Log | None:
        """Return the owner of the log at a path; None if the pattern does not match.

        Where a part of the path could be split in several ways, free text takes as much as it can, and the other
        placeholders, from the right, as little: ``{name}-{job}.out`` finds job ``7`` in ``a-b-7.out``.

        Args:
            path: relative to the directory, without the suffix of a compression.
        """
        pieces = path.split("/")
        if len(pieces) != len(self._parts):
            return None
        values: dict[str, str] = {}
        for tokens, piece in zip(self._parts, pieces, strict=True):
            found = _match_part(_earlier_value(tokens, values), piece)
            if found is None:
                return None
            if any(values.get(name, value) != value for name, value in found.items()):
                return None
            values |= found
        return _log(values, self._stream)

    def path(self, values: Mapping[str, str]) -> str:
        """Return the path that the placeholders make with these values; free text is the value of ``*``."""
        return "/".join(
            "".join(
                token.text if token.kind == "literal" else values[token.name or "*"].zfill(token.width)
                for token in part
            )
            for part in self._parts
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What its placeholders stand for, those of free text left out."""
        return tuple(dict.fromkeys(token.name for part in self._parts for token in part if token.name))


def _tokens(whole: str, piece: str) -> tuple[_Token, ...]:
    tokens: list[_Token] = []
    for found in _WORDS.finditer(piece):
        word = found[0]
        if word in {"{{", "}}", "%%"}:
            token = _Token("literal", "", word[0])
        elif found[1] is not None:
            token = _placeholder(whole, word, BRACED.get(found[1]))
        elif found[3] is not None:
            token = _placeholder(whole, word, SLURM.get(found[3]), int(found[2] or 0))
        elif word == "*":
            token = _Token("free", "")
        elif word in {"{", "}", "%"} or word.startswith("**"):
            raise _wrong(whole, f"{word!r} stands for nothing; write {{{{, }}}} or %% for the character itself")
        else:
            token = _Token("literal", "", word)
        if token.kind == "literal" and tokens and tokens[-1].kind == "literal":
            token = _Token("literal", "", tokens.pop().text + token.text)
        if token.kind == "free" and tokens and tokens[-1].kind == "free":
            continue
        tokens.append(token)
    named = [token.name for token in tokens if token.name]
    if len(named) > len(set(named)):
        raise _wrong(whole, "it names the same thing twice between two slashes")
    if len(tokens) > _MOST_TOKENS:
        raise _wrong(whole, f"it has over {_MOST_TOKENS} placeholders between two slashes")
    return tuple(tokens)


def _placeholder(whole: str, word: str, known: tuple[Kind, str] | None, width: int = 0) -> _Token:
    if known is None:
        names = ", ".join([*(f"{{{name}}}" for name in BRACED), *(f"%{letter}" for letter in SLURM)])
        raise _wrong(whole, f"unknown placeholder {word}", f"known: {names}")
    kind, name = known
    return _Token(kind, name, width=width if kind == "number" else 0)


def _wrong(text: str, why: str, hint: str = "e.g. '{job}/{attempt}/{stream}' or 'logs/%x-%j.out'") -> UsageError:
    return UsageError(f"--job-logs {text!r}: {why}", hint=hint)


def _earlier_value(tokens: tuple[_Token, ...], values: Mapping[str, str]) -> tuple[_Token, ...]:
    """Replace a placeholder by its value from an earlier part of the path."""
    if not any(token.kind == "text" and token.name in values for token in tokens):
        return tokens
    return tuple(
        _Token("literal", "", values[token.name]) if token.kind == "text" and token.name in values else token
        for token in tokens
    )


def _match_part(tokens: Sequence[_Token], text: str) -> dict[str, str] | None:
    """Match one part of a path; give the values of the placeholders."""
    first, last = tokens[0], tokens[-1]
    if first.kind == "literal" and not text.startswith(first.text):
        return None
    if last.kind == "literal" and not text.endswith(last.text):
        return None
    reach = [bytearray(len(text) + 1)]
    reach[0][0] = 1
    for place in range(len(tokens)):
        reach.append(_forward(tokens, place, text, reach[-1]))
    if not reach[-1][len(text)]:
        return None
    values: dict[str, str] = {}
    end = len(text)
    for place in range(len(tokens) - 1, -1, -1):
        begin = _backward(tokens, place, text, reach[place], end)
        token = tokens[place]
        if token.name:
            values[token.name] = str(int(text[begin:end])) if token.kind == "number" else text[begin:end]
        end = begin
    return values


def _forward(tokens: Sequence[_Token], place: int, text: str, before: bytearray) -> bytearray:
    """Mark where a token may end that begins where `before` is marked."""
    token, after = tokens[place], bytearray(len(text) + 1)
    at = before.find(1)
    if at < 0:
        return after
    if token.kind == "free":
        after[at:] = b"\1" * (len(after) - at)
    elif token.kind == "text":
        after[at + 1 :] = b"\1" * (len(after) - at - 1)
    elif token.kind == "literal":
        while at >= 0:
            if text.startswith(token.text, at):
                after[at + len(token.text)] = 1
            at = before.find(1, at + 1)
    else:
        while at >= 0:
            for end in _number_ends(tokens, place, text, at):
                after[end] = 1
            at = before.find(1, at + 1)
    return after


def _backward(tokens: Sequence[_Token], place: int, text: str, before: bytearray, end: int) -> int:
    """Choose where the token begins that ends at `end`."""
    token = tokens[place]
    if token.kind == "literal":
        return end - len(token.text)
    if token.kind == "free":
        return before.find(1)
    if token.kind == "text":
        return before.rfind(1, 0, end)
    begins = range(max(0, end - _MOST_DIGITS), end)
    return next(at for at in begins if before[at] and end in _number_ends(tokens, place, text, at))


def _number_ends(tokens: Sequence[_Token], place: int, text: str, begin: int) -> range:
    """Where a number that begins there may end: behind its last digit, unless literal digits follow it."""
    none = range(0)
    token = tokens[place]
    before = tokens[place - 1] if place else None
    inside = begin > 0 and text[begin - 1] in _DIGITS
    if inside and not (before is not None and before.kind == "literal" and before.text[-1] in _DIGITS):
        return none
    end = begin
    while end < len(text) and end - begin < _MOST_DIGITS and text[end] in _DIGITS:
        end += 1
    least = max(token.width, 1)
    # padding goes no further than it has to
    most = token.width if token.width and begin < len(text) and text[begin] == "0" else _MOST_DIGITS
    follows = tokens[place + 1] if place + 1 < len(tokens) else None
    if follows is not None and follows.kind == "literal" and follows.text[0] in _DIGITS:
        return range(begin + least, min(end, begin + most) + 1)
    whole = least <= end - begin <= most and not (end < len(text) and text[end] in _DIGITS)
    return range(end, end + 1) if whole else none


def _log(values: Mapping[str, str], stream: str) -> Log | None:
    job, step = _job(values)
    attempt: int | None = None
    if "attempt" in values:
        attempt = int(values["attempt"])
    elif "attempt+1" in values:
        attempt = int(values["attempt+1"]) - 1
    if attempt is not None and not 0 <= attempt < 2**31:
        return None
    rank = int(values["rank"]) if "rank" in values else None
    if rank is not None and rank >= 2**31:
        return None
    named = values.get("stream")
    stream_name = _STREAMS.get(named.lower(), named) if named is not None else stream
    parts = [values.get("container"), f"step {step}" if step is not None else None, values.get("host")]
    if "node" in values:
        parts.append(f"node {values['node']}")
    if rank is not None:
        parts.append(str(rank))
    return Log(job, attempt, ":".join([stream_name, *(part for part in parts if part is not None)]), rank)


def _job(values: Mapping[str, str]) -> tuple[str, str | None]:
    """The job's id in the form of the store, and the step."""
    step = values.get("step")
    if "job.step" in values:
        job, _, stated_step = values["job.step"].partition(".")
        return job, stated_step or step
    if "id" in values:
        # of a task it is the task's own
        return values["id"], step
    job = values["array"] if "array" in values else values["job"]
    task = values.get("task")
    return job if task is None or int(task) == NO_TASK else f"{job}_{task}", step


def _default_stream(literal: str) -> str:
    if _OF_STDERR.search(literal):
        return "stderr"
    return "stdout" if _OF_STDOUT.search(literal) else "output"
