"""Any other CSV of jobs, read with the user's mapping of its columns, which can be saved as a small TOML file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.line_reader import RowError
from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line, split
from gpuctl.ingest.read.delimited import header
from gpuctl.ingest.read.streams import peeked
from gpuctl.ingest.traces.jobs import LINE
from gpuctl.ingest.traces.states import SLURM
from gpuctl.ingest.traces.table import Column, JobTable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpuctl.ingest.traces.cells import Kind

NAME = "mapped-csv"
_TIMES = ("submit_time", "start_time", "end_time", "deadline")
_LENGTHS = ("duration", "wait", "requested_time")
_TEXTS = {
    "job_id": "job", "user": "user", "vc": "queue", "account": "account", "name": "name", "gpu_type": "gpu_type",
    "qos": "qos", "state": "source_state",
}  # fmt: skip
_COUNTS = {"num_gpus": "gpus", "nodes": "nodes", "num_cpus": "cpus", "mem_mb": "mem_mb", "priority": "priority"}
TARGETS = ("job_id", *_TIMES, *_LENGTHS, *_COUNTS, *(name for name in _TEXTS if name != "job_id"))
"""The names that a column can be mapped to."""
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_PARTS = {"1": 1.0, "percent": 0.01, "milli": 0.001}
_MEMORY = {"b": 2.0**-20, "kb": 2.0**-10, "mb": 1.0, "gb": 2.0**10, "tb": 2.0**20}
STAMPS = "stamps"
"""The unit of times written as dates."""
_WORDS = {
    **SLURM,
    **dict.fromkeys(
        ("PASS", "PASSED", "SUCCEEDED", "SUCCESS", "TERMINATED", "FINISHED", "DONE", "OK"), State.COMPLETED
    ),
    **dict.fromkeys(("KILLED", "CANCELED", "ABORTED"), State.KILLED),
    **dict.fromkeys(("FAIL", "ERROR"), State.FAILED),
    **dict.fromkeys(("WAITING", "QUEUED"), State.PENDING),
}
_HINT = "--map gpu_num=num_gpus maps the file's column gpu_num to num_gpus; --unit duration=min sets a unit"
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True)
class ColumnMapping:
    """The user's mapping of the columns of a table.

    Attributes:
        columns: name in the file -> one of `TARGETS`.
        units: the unit of one of `TARGETS`.
        states: what became of a job (`gpuctl.core.states.State`), by the file's words.
        separator: between cells.
    """

    columns: Mapping[str, str]
    units: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    separator: str = ","

    def toml(self) -> str:
        """Return the text of a file with this mapping."""
        parts = [f"separator = {_text(self.separator)}"]
        for title, pairs in (("map", self.columns), ("unit", self.units), ("state", self.states)):
            if pairs:
                parts += ["", f"[{title}]", *(f"{_key(name)} = {_text(value)}" for name, value in pairs.items())]
        return "\n".join(parts) + "\n"


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    # a basic string: https://toml.io/en/v1.0.0#string
    shown = "".join(c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in value)
    return f'"{shown}"'


def column_mapping(maps: Sequence[str], units: Sequence[str]) -> ColumnMapping | None:
    """Read ``--map`` and ``--unit``.

    Args:
        maps: ``THEIRS=OURS``, several with commas, or a file of these (`ColumnMapping.toml`); later ones count.
        units: ``OURS=UNIT``.

    Returns:
        None if none is given.

    Raises:
        UsageError: one of them is none of these.
        InputError: a file cannot be read, or states something else.
    """
    found = ColumnMapping({})
    for text in maps:
        if "=" not in text:
            found = _read(Path(text))
            continue
        pairs = dict(_pair(one, "--map") for one in text.split(","))
        found = ColumnMapping({**found.columns, **pairs}, found.units, found.states, found.separator)
    own_units = dict(_pair(one, "--unit") for text in units for one in text.split(","))
    if not maps and not units:
        return None
    if not found.columns:
        raise UsageError("--unit needs --map", hint=_HINT)
    return _checked(ColumnMapping(found.columns, {**found.units, **own_units}, found.states, found.separator))


def _pair(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise UsageError(f"{option} {text[:100]!r}: expected NAME=VALUE", hint=_HINT)
    return name.strip(), value.strip()


def _read(path: Path) -> ColumnMapping:
    from gpuctl.core.file_io import MOST_TOML, parse_toml, read_whole

    hint = 'expected a table [map], such as gpu_num = "num_gpus"'
    found = parse_toml(read_whole(path, most=MOST_TOML, hint=hint), str(path), hint=hint)
    tables = {name: found.get(name, {}) for name in ("map", "unit", "state")}
    sound = all(isinstance(t, dict) and all(isinstance(v, str) for v in t.values()) for t in tables.values())
    separator = found.get("separator", ",")
    if not sound or not tables["map"] or found.keys() - {*tables, "separator"} or not isinstance(separator, str):
        raise InputError("is not a map of columns", path=str(path), hint=hint)
    return ColumnMapping(tables["map"], tables["unit"], tables["state"], separator)


def _checked(mapping: ColumnMapping) -> ColumnMapping:
    targets = list(mapping.columns.values())
    unknown = next((name for name in targets if name not in TARGETS), None)
    if unknown is not None:
        raise UsageError(f"--map: no column {unknown[:100]!r}", hint=f"columns are {', '.join(TARGETS)}")
    twice = next((name for name in targets if targets.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--map: two columns are {twice}")
    for name, unit in mapping.units.items():
        if unit not in _units_of(name):
            known = ", ".join(_units_of(name)) or "none"
            raise UsageError(f"--unit {name}={unit}: units of {name} are {known}", hint=_HINT)
    wrong = next((word for word in mapping.states.values() if word not in set(State)), None)
    if wrong is not None:
        raise UsageError(f"state {wrong[:100]!r}: expected one of {', '.join(State)}")
    if len(mapping.separator) != 1:
        raise UsageError(f"separator {mapping.separator[:20]!r}: expected one character")
    return mapping


def _units_of(name: str) -> tuple[str, ...]:
    if name in _TIMES:
        return (*SECONDS, STAMPS)
    if name in _LENGTHS:
        return tuple(SECONDS)
    return tuple({"num_gpus": _PARTS, "num_cpus": _PARTS, "mem_mb": _MEMORY}.get(name, {}))


def with_map(mapping: ColumnMapping) -> Format:
    """Return a format for files with these columns; columns named as in `TARGETS` need no entry in the mapping."""
    return Format(
        name=NAME,
        title="a CSV of jobs whose columns --map names",
        fills=("jobs", "attempts", "queues"),
        file_names=("*.csv",),
        order=20,
        sniff=partial(_sniff, mapping),
        load=partial(_load, mapping),
        verified="sample",
    )


def _sniff(mapping: ColumnMapping, _name: str, head: bytes) -> str | None:
    names = header(first_line(head), mapping.separator)
    return f"columns {', '.join(mapping.columns)} (--map)" if mapping.columns.keys() <= set(names) else None


def _load(mapping: ColumnMapping, stream: BinaryIO, sink: Sink) -> None:
    head, again = peeked(stream)
    names = header(first_line(head), mapping.separator)
    absent = [name for name in mapping.columns if name not in names]
    if absent:
        raise InputError(
            f"no column {', '.join(absent)}; found {', '.join(names[:20])}", line=1, hint="see --map, and its file"
        )
    targets = {name: target for name, target in mapping.columns.items() if name in names}
    targets |= {
        name: name for name in names if name in TARGETS and name not in targets and name not in targets.values()
    }
    if not {"submit_time", "start_time"} & set(targets.values()):
        raise InputError("no column is submit_time or start_time", line=1, hint=_HINT)
    first = _first_cells(head, names, mapping.separator)
    table = _table(mapping, targets, first)
    stamped = any(column.kind == "time" for column in table.columns.values())
    sink.epoch = "real" if stamped or _late(mapping, targets, first) else "relative"
    table.load(again, sink)


def _first_cells(head: bytes, names: Sequence[str], separator: str) -> dict[str, str]:
    """Return the first cell of each column that has a digit, from the complete lines of the head of a file."""
    found: dict[str, str] = {}
    lines = head.split(b"\n")[1:]
    # what is behind the last line end may be cut off, but may be all that there is
    for line in lines[:-1] if len(lines) > 1 else lines:
        try:
            cells = split(line.decode("utf-8", "replace").rstrip("\r"), separator)
        except RowError:
            continue
        if len(cells) == len(names):
            for name, cell in zip(names, cells, strict=True):
                if name not in found and any(c.isdigit() for c in cell):
                    found[name] = cell.strip()
    return found


def _is_stamp(mapping: ColumnMapping, target: str, cell: str) -> bool:
    return mapping.units[target] == STAMPS if target in mapping.units else not _NUMBER.fullmatch(cell.strip() or "0")


def _late(mapping: ColumnMapping, targets: Mapping[str, str], first: Mapping[str, str]) -> bool:
    """Whether the seconds of a time column count from 1970: its first value is after 1990."""
    return any(
        float(first[name]) * SECONDS[mapping.units.get(column, "s")] > 631_152_000
        for name, column in targets.items()
        if column in _TIMES and _NUMBER.fullmatch(first.get(name, ""))
    )


def _table(mapping: ColumnMapping, targets: Mapping[str, str], first: Mapping[str, str]) -> JobTable:
    columns = {name: _column(mapping, column, first.get(name, "")) for name, column in targets.items()}
    states = {word.upper(): State(state) for word, state in mapping.states.items()}
    return JobTable(
        what="a CSV with the columns that --map names",
        columns=columns,
        open_ended=True,
        separator=mapping.separator,
        states=_WORDS | states,
        derive=_derived(targets.values()),
    )


def _column(mapping: ColumnMapping, target: str, cell: str) -> Column:
    unit = mapping.units.get(target, "")
    if target in _TIMES:
        to, needed = f"{target.removesuffix('_time')}_ts", target == "submit_time"
        if _is_stamp(mapping, target, cell):
            return Column(to, "time", needed=needed)
        return Column(to, "epoch", needed=needed, scale=SECONDS[unit or "s"])
    if target in _LENGTHS:
        return Column(f"{target}_stated", "number", scale=SECONDS[unit or "s"])
    if target in _COUNTS:
        scale = {"num_gpus": _PARTS, "num_cpus": _PARTS, "mem_mb": _MEMORY}.get(target, {}).get(unit, 1.0)
        kind: Kind = "number" if target in {"num_gpus", "num_cpus", "mem_mb"} else "whole"
        return Column(_COUNTS[target], kind, scale=scale, needed=target == "num_gpus")
    return Column(_TEXTS[target], needed=target == "job_id")


def _derived(there: Collection[str]) -> dict[str, str]:
    """Formulas for what follows from the columns of a file: ends of lengths, names of jobs that have none."""
    made: dict[str, str] = {}
    if "job_id" not in there:
        made["job"] = f"concat('row-', {LINE})"
    if "num_gpus" not in there:
        made["gpus"] = "cast(0 as double)"
    length = "cast(cast(round({}_stated * 1000000) as bigint) as interval)".format
    start = "start_ts" if "start_time" in there else None
    if start is None and "wait" in there and "submit_time" in there:
        start = made["start_ts"] = f"submit_ts + {length('wait')}"
    elif start is not None and "wait" in there and "submit_time" not in there:
        made["submit_ts"] = f"start_ts - {length('wait')}"
    if "duration" in there:
        if start is not None and "end_time" not in there:
            made["end_ts"] = f"{start} + {length('duration')}"
        made["run_span_s"] = "duration_stated"
    if "requested_time" in there:
        made["time_limit_s"] = "cast(round(requested_time_stated) as bigint)"
    made |= {name: f"cast(ceil({name}) as bigint)" for name in ("cpus", "mem_mb") if _target_of(name) in there}
    if "state" not in there:
        state = State.UNKNOWN if start is not None or "end_time" in there else State.PENDING
        made["state"] = f"'{state}'"
        if state == State.PENDING:
            made["attempts"] = "cast(0 as int)"
            if "duration" in there:
                made |= dict.fromkeys(("run_sum_s", "run_last_s"), "duration_stated")
    return made


def _target_of(stored: str) -> str:
    return next(target for target, to in _COUNTS.items() if to == stored)
