"""Formats of published tables that files of TOML declare, one entry per format.

docs/add-a-format.md describes the keys of an entry. They are the attributes of `Format` and of the class of the table,
except ``rows`` (the class), ``like`` (another entry of the file that this one extends), ``work`` (the column with the
run times of jobs that have not run), and ``passes_over`` and ``conclude``, which stand for functions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import header
from gpuctl.ingest.traces import borg, pai, spot
from gpuctl.ingest.traces.jobs import unrun_jobs
from gpuctl.ingest.traces.machines import MachineTable
from gpuctl.ingest.traces.requests import RequestTable
from gpuctl.ingest.traces.states import PAI, SLURM
from gpuctl.ingest.traces.table import Column, JobTable, RowTable

if TYPE_CHECKING:
    from pathlib import Path

_STATES: Mapping[str, Mapping[str, State]] = {"slurm": SLURM, "pai": PAI}
_CONCLUDE: Mapping[str, Callable[..., list[str]]] = {
    "borg": borg.conclude, "pai": pai.conclude, "spot": spot.conclude,
}  # fmt: skip
_MERGED = frozenset({"columns", "optional"})
"""Keys of which an entry adds to those of the entry that it extends; it replaces all others."""
_OWN_KEYS = frozenset({"rows", "like", "work"})


@dataclass(frozen=True)
class _Kind:
    """What a value of ``rows`` stands for, and defaults of `Format` for such tables."""

    table: type[JobTable | MachineTable | RequestTable | RowTable]
    order: int = 0
    fills: tuple[str, ...] = ()


_KINDS = {
    "jobs": _Kind(JobTable, 20, ("jobs", "attempts", "queues")),
    "machines": _Kind(MachineTable, 10, ("machines",)),
    "requests": _Kind(RequestTable, 30, ("service_load",)),
}
_OTHER = _Kind(RowTable)


@dataclass(frozen=True)
class _SideFile:
    """A file of the same trace of which nothing is read.

    Attributes:
        text: what it is.
        columns: its header has all of these.
        exact: whether its header has no others.
        file_name: pattern of its name, if no header shows what it is.
    """

    text: str
    columns: Sequence[str] = ()
    exact: bool = False
    file_name: str = ""

    def matches(self, name: str, columns: set[str]) -> bool:
        """Whether a file with this name and these columns is such a file."""
        if self.file_name:
            return fnmatchcase(name, self.file_name)
        return columns == set(self.columns) if self.exact else columns >= set(self.columns)


def formats_of(path: Path) -> list[Format]:
    """Read the entries of a file.

    Raises:
        ValueError: it is no TOML, or an entry has an unknown key or state.
    """
    entries: dict[str, dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))
    shared = entries.pop("defaults", {})
    return [_format(name, _extended(entries, name, shared)) for name in entries]


def _extended(entries: Mapping[str, Mapping[str, Any]], name: str, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with the keys of `shared` and of the entry that it is like."""
    entry = entries[name]
    base = _extended(entries, entry["like"], shared) if "like" in entry else shared
    merged = {key: {**base[key], **entry[key]} for key in _MERGED & base.keys() & entry.keys()}
    return {**base, **entry, **merged}


def _format(name: str, entry: Mapping[str, Any]) -> Format:
    # a table of another kind names the table of the store that it fills
    kind = _OTHER if "table" in entry else _KINDS[entry["rows"]]
    of_table = {field.name for field in fields(kind.table)}
    of_format = {field.name for field in fields(Format)} - {"name", "sniff", "load"}
    unknown = entry.keys() - of_table - of_format - _OWN_KEYS
    if unknown:
        raise ValueError(f"format {name!r}: unknown keys {sorted(unknown)}")
    table = kind.table(**{key: _table_value(key, value) for key, value in _of(entry, of_table).items()})
    about: dict[str, Any] = {"order": kind.order, "fills": kind.fills}
    about |= {key: _format_value(key, value) for key, value in _of(entry, of_format).items()}
    return Format(name=name, sniff=table.sniff, load=table.load, **about)


def _of(entry: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    found = {key: value for key, value in entry.items() if key in keys}
    if "work" in entry and "derive" in keys:
        found["derive"] = unrun_jobs(entry["work"]) | found.get("derive", {})
    return found


def _table_value(key: str, value: Any) -> Any:
    if key in _MERGED:
        return {name: Column(to=of) if isinstance(of, str) else Column(**_tuples(of)) for name, of in value.items()}
    if key in {"unread", "passed", "absent"}:
        return frozenset(value)
    if key == "states":
        return _STATES[value] if isinstance(value, str) else {word: State(state) for word, state in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _format_value(key: str, value: Any) -> Any:
    if key == "passes_over":
        return partial(_passes_over, [_SideFile(**file) for file in value])
    if key == "conclude":
        return _CONCLUDE[value]
    return tuple(value) if isinstance(value, list) else value


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def _passes_over(files: Sequence[_SideFile], name: str, head: bytes) -> str | None:
    columns = set(header(first_line(head)))
    return next((file.text for file in files if file.matches(name, columns)), None)
