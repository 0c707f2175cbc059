"""Replaces names by pseudonyms throughout a result: users, accounts, jobs, nodes, clusters and paths.

A pseudonym is ``KIND-`` and 13 characters: 50 bits of HMAC-SHA-256 (RFC 2104) of kind and name under a secret, and 15
bits of a second one over the first, which identifies a pseudonym, so that it is not replaced again. Holders of the
secret can try names; others can only compare: the same name always gets the same pseudonym, so that tables still sort,
filter and join. `gpuctl.reports.privacy.names` lists the columns that hold names.

Notes, populations, warnings and settings are notes (`gpuctl.core.notes`), which record the positions of names: these
are replaced by their kind, without parsing the sentence. Text that is not a note, as in a result of an older gpuctl,
may hold names anywhere: it is left out and counted. Numbers, times, digests of sources and the order of counts stay: a
reader who knows the cluster may draw conclusions from them.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import read_whole
from gpuctl.core.notes import NONE, Note, counted, is_untrusted, note, untrusted
from gpuctl.core.states import State
from gpuctl.reports.conditions import RESULT, rekeyed, relabelled
from gpuctl.reports.privacy.names import COMMANDS, KNOWN_FILES, LINES, MARKERS, NAMES, NUMBERED, ROLES, UNMASKED, WORDS
from gpuctl.reports.report import earlier, is_summary, labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gpuctl.core.notes import Kind
    from gpuctl.core.results import Analysis, Column, ResultTable
    from gpuctl.reports.conditions import Condition
    from gpuctl.reports.report import Part

LEAST_KEY = 16
"""Minimum bytes of a secret."""
MOST_KEY = 4096
NAME_BITS, TAG_BITS = 50, 15
_PSEUDONYM = re.compile(r"([a-z]{1,12})-([a-z2-7]{10})([a-z2-7]{3})", re.ASCII)
_SPAN = re.compile("( to | - | \N{EN DASH} | \N{HORIZONTAL ELLIPSIS} |, )")
_TOKEN = re.compile(r"[^\s,;()\"'\[\]{}<>|=]+")
_FILE = re.compile(
    r".+\.(?:bz2|conf|csv|duckdb|err|gz|h5|html|json|jsonl|log|out|parquet|pdf|py|tar|tgz|toml|tsv|txt|xml|xz|yaml|yml"
    r"|zip|zst)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|(?=[^.]*[a-z])[a-z0-9-]+(?:\.[a-z0-9-]+)+\.[a-z]{2,}", re.IGNORECASE)
_OUR_PAGES = re.compile(r"docs/(?:[\w-]+/){0,2}[\w-]+\.md")
_WORD = re.compile(r"([A-Za-z][A-Za-z_+]*)(?=$|[\s,;:(\[])")

_GROUPS = {"queue": "queue", "node": "machine", "rack": "rack"}
"""Of what a column ``group`` holds names, by the column ``by``."""


def random_key() -> bytes:
    """Return a secret for one use: pseudonyms of another report will differ."""
    return secrets.token_bytes(32)


def read_key(path: Path) -> bytes:
    """Read a secret from a file, without surrounding white space.

    Raises:
        InputError: it cannot be read, or is too short or too long to be a secret.
    """
    hint = "make one with: openssl rand -hex 32 > FILE"
    key = read_whole(path, most=MOST_KEY, hint=hint).strip()
    if len(key) < LEAST_KEY:
        problem = f"has {len(key)} bytes, expected a secret of {LEAST_KEY} to {MOST_KEY}"
        raise InputError(problem, path=str(path), hint=hint)
    return key


class Pseudonyms:
    """The pseudonyms under one secret.

    Args:
        key: the secret.
        queues: whether queues also get pseudonyms.
    """

    def __init__(self, key: bytes, *, queues: bool = False) -> None:
        self.queues = queues
        self._key = key
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, name: str) -> str:
        """Return the pseudonym of a name; markers, pseudonyms under this secret and kept queues are unchanged."""
        if name in MARKERS or (kind == "queue" and not self.queues):
            return name
        known = self._known.get((kind, name))
        if known is None:
            known = name if self.is_ours(name) else self._make(kind, name)
            self._known[kind, name] = known
        return known

    def is_ours(self, name: str) -> bool:
        """Return whether a name is a pseudonym under this secret."""
        found = _PSEUDONYM.fullmatch(name)
        return found is not None and hmac.compare_digest(self._tag(found[1], found[2]), found[3])

    def _make(self, kind: str, name: str) -> str:
        body = self._digits(f"name\0{kind}\0{name}", NAME_BITS)
        return f"{kind}-{body}{self._tag(kind, body)}"

    def _tag(self, kind: str, body: str) -> str:
        return self._digits(f"tag\0{kind}\0{body}", TAG_BITS)

    def _digits(self, text: str, bits: int) -> str:
        digest = hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")
        return base64.b32encode(digest[:10]).decode()[: bits // 5].lower()


def anonymised(analysis: Analysis, pseudonyms: Pseudonyms) -> Analysis:
    """Return a result without the names of users, accounts, jobs, nodes, clusters and paths.

    Args:
        analysis: the result.
        pseudonyms: the pseudonyms; queues keep their names unless they are included.
    """
    queues = note(", queues") if pseudonyms.queues else NONE
    text = note("pseudonyms replace users, accounts, jobs, nodes, racks, clusters and paths{queues}", queues=queues)
    cluster = pseudonymous(analysis.cluster, pseudonyms)
    return replace(
        analysis,
        cluster=cluster,
        tables=tuple(_table(table, pseudonyms, {str(analysis.cluster): cluster}) for table in analysis.tables),
        sources=tuple(replace(one, path=pseudonyms.of("path", one.path)) for one in analysis.sources),
        settings={
            **{_key(key, pseudonyms): pseudonymous(value, pseudonyms) for key, value in analysis.settings.items()},
            "anonymised": text,
        },
        command=command(analysis.command),
        warnings=_without_names(analysis.warnings, pseudonyms),
    )


def pseudonymous(text: str, pseudonyms: Pseudonyms) -> Note:
    """Return a sentence with its names replaced by pseudonyms.

    Args:
        text: a note; a plain text counts as one name, as the positions of names are unknown.
        pseudonyms: the pseudonyms.
    """

    def replaced(kind: Kind, name: str) -> str:
        return _without_places(name, pseudonyms.of) if kind == "policy" else pseudonyms.of(kind, name)

    return untrusted(text).replaced(replaced)


def _key(key: str, pseudonyms: Pseudonyms) -> str:
    """Return the name of a setting: a literal word, unless it is a note."""
    return pseudonymous(key, pseudonyms) if isinstance(key, Note) else key


def _without_names(texts: Sequence[str], pseudonyms: Pseudonyms) -> tuple[Note, ...]:
    """Return sentences without names; texts of unknown origin are counted instead."""
    known = [text for text in map(untrusted, texts) if not is_untrusted(text)]
    shown = tuple(pseudonymous(text, pseudonyms) for text in known)
    left = len(texts) - len(known)
    if not left:
        return shown
    text = note("{sentences} left out: positions of names are unknown", sentences=counted(left, "sentence"))
    return (*shown, text)


def command(line: str) -> str:
    """Return a command line without its arguments."""
    words = line.split()
    known = [word for word in words[1:] if word in COMMANDS]
    main = known[:2] if known[:1] in (["predict"], ["train"]) else known[:1]
    return " ".join(["gpuctl", *main, "(arguments left out)"])


# ---- tables


def _table(table: ResultTable, pseudonyms: Pseudonyms, clusters: Mapping[str, Note]) -> ResultTable:
    frame = table.frame
    sentences = {str(one): pseudonymous(one, pseudonyms) for one in table.sentences}
    columns = []
    for column in table.columns:
        how = _how(table, column.name, pseudonyms, clusters, sentences)
        if how is not None:
            columns.append(_mapped(frame, column, how))
    changed = frame.with_columns(columns) if columns else frame
    population = untrusted(table.population)
    return replace(
        table,
        population=note("Left out: positions of names are unknown.")
        if is_untrusted(population)
        else pseudonymous(population, pseudonyms),
        notes=_without_names(table.notes, pseudonyms),
        sentences=tuple(sentences.values()),
        frame=_sorted(table, frame, changed),
    )


def _how(
    table: ResultTable,
    name: str,
    pseudonyms: Pseudonyms,
    clusters: Mapping[str, Note],
    sentences: Mapping[str, Note],
) -> Callable[[str, Mapping[str, Any]], str] | None:
    """Return the function for a column's values, given the row; None: they are unchanged."""
    kind = table.frame.schema[name]
    if not _is_text(kind) and not (name in NUMBERED and kind.is_integer()):
        return None
    role = ROLES.get((table.name, name))
    if role == "sentence":
        return lambda text, _row: sentences.get(text) or pseudonyms.of("text", text)
    if role == "beside":
        return lambda text, _row: (
            f"beside {pseudonyms.of('machine', text.removeprefix('beside '))}" if text.startswith("beside ") else text
        )
    if name == "source_state":
        strange = _strange(table.frame)
        return lambda text, _row: ("" if text in strange else _first_word(text)) or pseudonyms.of("text", text)
    if role == "word" or name in WORDS:
        return lambda text, _row: _first_word(text) or pseudonyms.of("text", text)
    if role == "group":
        return lambda text, row: pseudonyms.of(of, text) if (of := _GROUPS.get(str(row.get("by")))) else text
    if name in LINES:
        return lambda text, _row: pseudonyms.of("text", text)
    if name in UNMASKED:
        return lambda text, _row: _without_places(text, pseudonyms.of)
    of = NAMES.get(name, "value")
    if of == "cluster":
        return lambda text, _row: clusters.get(text) or pseudonyms.of(of, text)
    if name == "nodes":
        return lambda text, _row: "".join(
            part if number % 2 else pseudonyms.of(of, part) for number, part in enumerate(_SPAN.split(text))
        )
    return lambda text, _row: pseudonyms.of(of, text)


def _is_text(kind: pl.DataType) -> bool:
    """Return whether values of a type may hold text: all except numbers, times and booleans."""
    return not (kind.is_numeric() or kind.is_temporal() or kind in {pl.Boolean, pl.Null})


def _strange(frame: pl.DataFrame) -> set[str]:
    """Return words of a source that are not states of gpuctl: they may be anything."""
    if "state" not in frame.columns:
        return set()
    words = zip(frame["state"].to_list(), frame["source_state"].to_list(), strict=True)
    return {word for state, word in words if state == State.UNKNOWN and word is not None}


def _mapped(frame: pl.DataFrame, column: Column, how: Callable[[str, Mapping[str, Any]], str]) -> pl.Series:
    values = frame[column.name]
    others = {"by": frame["by"].to_list()} if "by" in frame.columns else {}
    if not others and values.dtype == pl.String:
        # names repeat
        found = {text: how(text, {}) for text in values.unique().to_list() if text is not None}
        return pl.Series(column.name, [found.get(text) for text in values.to_list()], dtype=pl.String)
    made: list[Any] = []
    for number, value in enumerate(values.to_list()):
        row = {name: cells[number] for name, cells in others.items()}
        if isinstance(value, list):
            made.append([None if one is None else how(str(one), row) for one in value])
        else:
            made.append(None if value is None else how(str(value), row))
    kind = pl.List(pl.String) if isinstance(values.dtype, pl.List) else pl.String
    return pl.Series(column.name, made, dtype=kind)


def _sorted(table: ResultTable, old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Reorder rows that were sorted by names by the pseudonyms: else their order would reveal the names.

    The same for rows sorted, ascending or descending, within each value of preceding text columns, such as a policy.
    """
    names = [
        one.name for one in table.columns if one.name not in UNMASKED and _is_changed(old[one.name], new[one.name])
    ]
    for name in names:
        before = [c for c in old.columns[: old.columns.index(name)] if old.schema[c] == pl.String and c not in names]
        for group in ([], before) if before else ([],):
            places = _groups(old, name, group)
            if places and all(_in_order(old[name].gather(rows)) for rows in places):
                order = pl.Series(range(old.height), dtype=pl.UInt32)
                for rows in places:
                    order = order.scatter(rows, rows.gather(new[name].gather(rows).arg_sort()))
                return new[order.to_list()]
    return new


def _is_changed(old: pl.Series, new: pl.Series) -> bool:
    if isinstance(old.dtype, pl.List):  # rows are not sorted by lists; one without a name has another type
        return False
    return old.dtype != new.dtype or (old.dtype == pl.String and not old.equals(new))


def _groups(frame: pl.DataFrame, name: str, group: list[str]) -> list[pl.Series]:
    """Return rows with a name, by group; only those of two different names or more."""
    known = frame.with_row_index("_row").filter(
        pl.col(name).is_not_null() & ~pl.col(name).cast(pl.String).is_in(list(MARKERS))
    )
    parts = known.partition_by(group, maintain_order=True) if group else [known]
    return [part["_row"] for part in parts if part[name].n_unique() > 1]


def _in_order(values: pl.Series) -> bool:
    return values.is_sorted() or values.is_sorted(descending=True)


# ---- reports


@dataclass(frozen=True)
class AnonymousReport:
    """The input of a report, without names.

    Attributes:
        parts: the results.
        conditions: conditions, with pseudonyms for the names of queues or results.
        baseline: earlier results, or None.
    """

    parts: tuple[Part, ...]
    conditions: tuple[Condition, ...]
    baseline: tuple[Part, ...] | None


def hide(
    found: Sequence[tuple[str | None, Analysis]],
    conditions: Sequence[Condition],
    baseline: Sequence[Analysis] | None,
    pseudonyms: Pseudonyms,
) -> AnonymousReport:
    """Return the input of a report without names.

    Args:
        found: name of each result (None: its cluster's), and the result. The name stays.
        conditions: as given by the user; they may use names or pseudonyms.
        baseline: earlier results or reports, with names or with pseudonyms under the same secret.
        pseudonyms: the pseudonyms.
    """
    names = [name for name, _ in found]
    parts = labelled([anonymised(analysis, pseudonyms) for _, analysis in found], names)
    before = labelled([analysis for _, analysis in found], names)
    labels = {old.label: new.label for old, new in zip(before, parts, strict=True)}

    def change(label: str, text: str) -> str:
        if label == RESULT:
            return labels.get(text, text)
        return pseudonyms.of("queue", text) if label == "queue" else text

    return AnonymousReport(
        parts,
        tuple(relabelled(one, change) for one in conditions),
        None if baseline is None else earlier([_earlier(one, change, pseudonyms) for one in baseline]),
    )


def _earlier(analysis: Analysis, change: Callable[[str, str], str], pseudonyms: Pseudonyms) -> Analysis:
    table = analysis.table("metrics")
    if table is None or not is_summary(analysis):
        return anonymised(analysis, pseudonyms)
    frame = table.frame.with_columns(
        pl.Series("result", [change(RESULT, text or "") for text in table.frame["result"]], dtype=pl.String),
        pl.Series("metric", [rekeyed(text or "", change) for text in table.frame["metric"]], dtype=pl.String),
    )
    return replace(analysis, tables=(replace(table, frame=frame),))


def _first_word(text: str) -> str:
    """Return the first word of a scheduler's reason or state; empty if it does not begin with a word."""
    found = _WORD.match(text)
    return found[1] if found else ""


def _without_places(text: str, pseudonym: Callable[[str, str], str]) -> str:
    """Replace only the paths and addresses of a text.

    Cells hold a word, a policy or a signature, never a sentence of gpuctl's: those are notes (`gpuctl.core.notes`).

    Args:
        text: text of a cell, or the user's name of a policy.
        pseudonym: returns the pseudonym of a kind and a name.
    """

    def replaced(found: re.Match[str]) -> str:
        kind = _kind(found[0])
        return pseudonym(kind, found[0]) if kind else found[0]

    return _TOKEN.sub(replaced, text)


def _kind(token: str) -> str | None:
    """Return whether this is a path or the address of a node; None for anything else."""
    if token in KNOWN_FILES or _OUR_PAGES.fullmatch(token):
        return None
    rooted = re.match(r"(?:/|\./|\.\./|~|[A-Za-z]:\\)", token) and len(token) > 1
    if "://" in token or rooted or token.count("/") > 1 or _FILE.fullmatch(token.partition(":")[0]):
        return "path"
    return "machine" if _ADDRESS.fullmatch(token) else None
