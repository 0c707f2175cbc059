"""Takes names out of sentences: those that are known, and what looks like a path, an address or somebody's name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.core.job_filter import renamed
from gpuctl.reports.privacy.names import KNOWN_FILES, MARKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Set

_TOKEN = re.compile(r"[^\s,;()\"'\[\]{}<>|=]+")
_PLAIN = re.compile(r"[\w-]+")
_RUN = re.compile(r"\w+")
_PIECE = re.compile(r"([:@!])")
_QUOTED = re.compile(r"(?<!\w)(['\"`])(.{1,300}?)\1(?!\w)")
_MOST_OFTEN = re.compile(r"(most often \([\d,]+\): )(.*)", re.DOTALL)
_FILE = re.compile(
    r".+\.(?:bz2|conf|csv|duckdb|err|gz|h5|html|json|jsonl|log|out|parquet|pdf|py|tar|tgz|toml|tsv|txt|xml|xz|yaml|yml"
    r"|zip|zst)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|(?=[^.]*[a-z])[a-z0-9-]+(?:\.[a-z0-9-]+)+\.[a-z]{2,}", re.IGNORECASE)
_OUR_PAGES = re.compile(r"docs/(?:[\w-]+/)?[\w-]+\.md")
_NOUNS = {
    "account": "account", "cluster": "cluster", "host": "machine", "job": "job", "machine": "machine",
    "model": "model", "node": "machine", "partition": "queue", "queue": "queue", "rack": "rack",
    "server": "machine", "task": "job", "user": "user", "workload": "cluster",
}  # fmt: skip
_AFTER_NOUN = re.compile(rf"\b({'|'.join(_NOUNS)}) ([^\s,;()'\"]*[^\s,;:.()'\"])")
_AFTER_PHRASE = re.compile(r"\b(jobs of|servers of|file of cluster|replayed on|are of) ([^\s,;()]*[^\s,;:.()])")
_LISTED = re.compile(rf"(\b({'|'.join(_NOUNS)})s\b[^:.;]{{0,200}}: )([^.;()]+)")
_AND = re.compile(r"(,\s*|\s+and\s+)")
_NAMELESS = re.compile(r"[\d,.%x]+")
_SLURM_NODES = "the nodes of slurm.conf of "
_SPEC = re.compile(r"\d+x\d+|pool:\d+")
_WORD = re.compile(r"([A-Za-z][A-Za-z_+]*)(?=$|[\s,;:(\[])")


def first_word(text: str) -> str:
    """The word that a scheduler's reason or state begins with; empty where it begins with none."""
    found = _WORD.match(text)
    return found[1] if found else ""


class Scrubber:
    """Sentences of one result without names.

    Args:
        pseudonym: of a kind and a name.
        names: the names that the result's tables hold -> kind.
        prose: words that stay in sentences though they are also names, unless the word before says whose.
    """

    def __init__(self, pseudonym: Callable[[str, str], str], names: Mapping[str, str], prose: Set[str]) -> None:
        self._of = pseudonym
        self._names = dict(names)
        self._prose = prose
        # names that hold what sentences are cut at, by their longest word
        self._odd: dict[str, list[str]] = {}
        for name in names:
            run = max(_RUN.findall(name), key=len, default="")
            if run and not _PLAIN.fullmatch(name) and not _NAMELESS.fullmatch(name):
                self._odd.setdefault(run, []).append(name)
        self._clusters: dict[str, str] = {}

    def cluster(self, name: str) -> str:
        """A cluster's name; of a replay, ``JOBS on SERVERS`` or ``JOBS@POLICY``, each name in it."""
        jobs, on, servers = name.partition(" on ")
        made = self._cluster(jobs)
        if not on or _SPEC.fullmatch(servers):
            return made + on + servers
        ours = servers.startswith(_SLURM_NODES)
        return f"{made} on {_SLURM_NODES if ours else ''}{self._cluster(servers.removeprefix(_SLURM_NODES))}"

    def _cluster(self, name: str) -> str:
        trace, at, policy = name.partition("@")
        made = self._of("cluster", trace)
        for part in (name, trace):
            if part and part not in MARKERS:
                self._clusters[part] = made
        return f"{made}{at}{policy}"

    def text(self, text: str) -> str:
        """A sentence of ours, with the names that it tells replaced."""
        odd = {name for run in set(_RUN.findall(text)) for name in self._odd.get(run, ()) if name in text}
        # the longest first: one may hold another
        for name in sorted(odd, key=len, reverse=True):
            made = self._of(self._names[name], name)
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _, made=made: made, text)  # type: ignore[misc]
        text = _LISTED.sub(self._list, text)
        text = _AFTER_PHRASE.sub(lambda found: f"{found[1]} {self._clusters.get(found[2], found[2])}", text)
        text = _AFTER_NOUN.sub(self._noun, text)
        return _TOKEN.sub(lambda found: self._token(found[0]), text)

    def message(self, text: str) -> str:
        """A sentence that may quote a log: what it quotes is replaced, and of why rows were rejected what looks odd."""
        text = _QUOTED.sub(self._quoted, text)
        often = _MOST_OFTEN.search(text)
        if often is not None:
            rest = _TOKEN.sub(lambda found: self._digits(found[0]), often[2])
            text = f"{text[: often.start()]}{often[1]}{rest}"
        return self.text(text)

    def setting(self, key: str, value: str) -> str:
        """A setting's value."""
        if key == "history":
            return self._of("path", value)
        if key == "filter":
            return renamed(value, lambda kind, name: self._of(self._names.get(name, kind), name))
        return self.text(f"{key} {value}")[len(key) + 1 :] if key in _NOUNS else self.text(value)

    def paths(self, text: str) -> str:
        """A text of which only paths and addresses are replaced."""
        return _TOKEN.sub(lambda found: self._place(found[0]) or found[0], text)

    def _quoted(self, found: re.Match[str]) -> str:
        inside = found[2]
        known = inside in MARKERS or all(word in self._prose for word in inside.split())
        return found[0] if known and inside not in self._names else f"{found[1]}{self._any(inside)}{found[1]}"

    def _any(self, name: str) -> str:
        return self._clusters.get(name) or self._of(self._names.get(name, "value"), name)

    def _list(self, found: re.Match[str]) -> str:
        kind = _NOUNS[found[2].lower()]
        parts = _AND.split(found[3])
        return found[1] + "".join(
            part if number % 2 or not part or " " in part.strip() or _NAMELESS.fullmatch(part) or part in self._prose
            else self._of(self._names.get(part, kind), part)
            for number, part in enumerate(parts)
        )  # fmt: skip

    def _noun(self, found: re.Match[str]) -> str:
        kind, name = _NOUNS[found[1]], found[2]
        if kind == "cluster" and name in self._clusters:
            return f"{found[1]} {self._clusters[name]}"
        if name in self._names:
            return f"{found[1]} {self._of(self._names[name], name)}"
        plain = name in self._prose or _NAMELESS.fullmatch(name) or not any(c.isdigit() for c in name)
        return found[0] if plain or _SPEC.fullmatch(name) else f"{found[1]} {self._of(kind, name)}"

    def _token(self, token: str) -> str:
        stem = token.rstrip(".:")
        rest = token[len(stem) :]
        if not stem or (_NAMELESS.fullmatch(stem) and not _ADDRESS.fullmatch(stem)):
            return token
        place = self._known(stem) or self._place(stem)
        if place is not None:
            return place + rest
        pieces = _PIECE.split(stem)
        if len(pieces) == 1:
            return token
        return "".join(self._known(piece) or self._place(piece) or piece for piece in pieces) + rest

    def _known(self, name: str) -> str | None:
        if name in self._prose or _NAMELESS.fullmatch(name):
            return None
        if name in self._clusters:
            return self._clusters[name]
        return self._of(self._names[name], name) if name in self._names else None

    def _place(self, token: str) -> str | None:
        """The pseudonym of a path or an address; None for what is neither."""
        if token in KNOWN_FILES or _OUR_PAGES.fullmatch(token):
            return None
        rooted = re.match(r"(?:/|\./|\.\./|~|[A-Za-z]:\\)", token) and len(token) > 1
        if "://" in token or rooted or token.count("/") > 1 or _FILE.fullmatch(token.partition(":")[0]):
            return self._of("path", token)
        return self._of("machine", token) if _ADDRESS.fullmatch(token) else None

    def _digits(self, token: str) -> str:
        mixed = any(c.isdigit() for c in token) and not _NAMELESS.fullmatch(token)
        return self._of("value", token) if mixed else token
