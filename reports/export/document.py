"""A result as one JSON document: ``--json`` writes it, ``gpuctl report`` reads it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl import __version__
from gpuctl.core.charts import declared
from gpuctl.core.errors import InputError
from gpuctl.core.file_io import read_whole
from gpuctl.core.notes import Note, Span, kind_named, named, untrusted
from gpuctl.core.results import Analysis, Column, ResultTable, SourceInfo
from gpuctl.core.storable_text import storable
from gpuctl.queries.sections import FORMER_NAMES
from gpuctl.reports.export.values import json_type, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


SCHEMA = 1
"""Version of the document's schema; raised when a key changes its name or meaning."""

MOST_BYTES = 2 * 1024**3
"""Maximum bytes of a result file; a larger file is not read."""

_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
"""Names of tables, used for files and anchors on the page."""

_TYPES: dict[str, Any] = {
    "integer": pl.Int64,
    "number": pl.Float64,
    "string": pl.String,
    "boolean": pl.Boolean,
    "date": pl.Date,
}


def document(
    analysis: Analysis,
    tables: Sequence[ResultTable],
    left_out: Sequence[ResultTable],
    promised: Mapping[str, object] | None = None,
) -> Iterator[str]:
    """Yield the text of a result's JSON document, in pieces.

    Args:
        analysis: the result.
        tables: those of its tables to write.
        left_out: those to list by name only.
        promised: further keys for other programs; `parse_document` ignores them.
    """
    head = {
        "schema": SCHEMA,
        "gpuctl": analysis.version,
        "command": analysis.command,
        "cluster": analysis.cluster,
        "settings": dict(sorted(analysis.settings.items())),
        "warnings": list(analysis.warnings),
        "sources": [vars(source) for source in analysis.sources],
        "sections": dict(analysis.sections),
        "names": {
            "cluster": _spans(analysis.cluster),
            "settings": {key: [_spans(key), _spans(value)] for key, value in sorted(analysis.settings.items())},
            "warnings": [_spans(text) for text in analysis.warnings],
        },
    }
    yield "{\n"
    for key, value in head.items():
        yield f"{_dump(key)}: {_dump(value)},\n"
    yield '"tables": {'
    for number, table in enumerate(tables):
        yield f'{"," if number else ""}\n{_dump(table.name)}: {_dump(described(table))[:-1]}, "rows": ['
        for chunk, lines in enumerate(rows(table)):
            yield f"{',' if chunk else ''}\n" + ",\n".join(lines)
        yield "]}"
    yield "\n},\n"
    yield f'"left_out": {_dump([{"name": t.name, "title": t.title, "rows": t.frame.height} for t in left_out])}'
    for key, value in (promised or {}).items():
        yield f",\n{_dump(key)}: {_dump(value)}"
    yield "\n}\n"


def described(table: ResultTable) -> dict[str, object]:
    """Return the properties of a table except its name and its rows, as JSON values."""
    return {
        "title": table.title,
        "question": table.question,
        "section": table.section,
        "population": table.population,
        "notes": list(table.notes),
        "detail": table.detail,
        "first_columns": table.first_columns,
        **({"key_columns": list(table.key_columns)} if table.key_columns else {}),
        "columns": [
            {
                "name": c.name,
                "unit": c.unit,
                "description": c.description,
                "type": json_type(table.frame[c.name].dtype),
            }
            for c in table.columns
        ],
        "names": {
            "population": _spans(table.population),
            "notes": [_spans(text) for text in table.notes],
            "sentences": [[text, _spans(text)] for text in table.sentences],
        },
    } | ({"charts": list(table.charts)} if table.charts else {})


def _spans(text: str) -> list[Span] | None:
    """Return the positions of names in a text, as [begin, end, kind]; None if unknown."""
    return list(text.named) if isinstance(text, Note) else None


def read_document(path: Path) -> Analysis:
    """Read a result that `document` has written.

    Args:
        path: the file.

    Raises:
        InputError: it cannot be read, is not such a document, or is from a newer gpuctl.
    """
    return parse_document(read_whole(path, most=MOST_BYTES, begins=b"{", hint=_HINT), str(path))


def parse_document(data: bytes, place: str) -> Analysis:
    """Parse a result from the text of `document`.

    Args:
        data: the text, in UTF-8.
        place: its origin, for messages.

    Raises:
        InputError: it is not such a document, or is from a newer gpuctl.
    """
    try:
        return _analysis(json.loads(data))
    except _NotOursError as error:
        raise InputError(f"is not a gpuctl result: {error}", path=place, hint=_HINT) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {error}", path=place, hint=_HINT) from error


_HINT = "expected a file written by gpuctl analyze, replay, predict or train with --json --output FILE"


class _NotOursError(Exception):
    """The fault of a document."""


def _analysis(found: object) -> Analysis:
    head = _object(found, "the document")
    schema = head.get("schema")
    if schema != SCHEMA:
        version = f"schema {schema!r}" if isinstance(schema, int | str) else "no schema"
        raise _NotOursError(f"it has {version}, and gpuctl {__version__} reads schema {SCHEMA}")
    tables = _object(head.get("tables"), "tables")
    sections = {str(k): _text(v, f"sections.{k}") for k, v in _object(head.get("sections", {}), "sections").items()}
    names = _object(head.get("names", {}), "names")
    settings = _object(head.get("settings"), "settings")
    of_settings = _object(names.get("settings", {}), "names.settings")
    warnings = _list(head.get("warnings"), "warnings")
    return Analysis(
        cluster=_titled(head.get("cluster"), names.get("cluster"), "cluster"),
        tables=tuple(
            _table(FORMER_NAMES.get(name, name), _object(about, f"tables.{name}")) for name, about in tables.items()
        ),
        sections=tuple(sections.items()),
        sources=tuple(
            _source(_object(one, f"sources[{k}]"), k) for k, one in enumerate(_list(head.get("sources"), "sources"))
        ),
        settings=dict(_setting(key, value, of_settings.get(key)) for key, value in settings.items()),
        command=_text(head.get("command"), "command"),
        version=_text(head.get("gpuctl"), "gpuctl"),
        warnings=_notes(warnings, names.get("warnings"), "warnings"),
    )


def _source(found: dict[str, Any], number: int) -> SourceInfo:
    place = f"sources[{number}]"
    return SourceInfo(
        path=_text(found.get("path"), f"{place}.path"),
        format=_text(found.get("format"), f"{place}.format"),
        sha256=_text(found.get("sha256"), f"{place}.sha256"),
        bytes=_count(found.get("bytes"), f"{place}.bytes"),
        rows_in=_count(found.get("rows_in"), f"{place}.rows_in"),
        rows_loaded=_count(found.get("rows_loaded"), f"{place}.rows_loaded"),
        rows_rejected=_count(found.get("rows_rejected"), f"{place}.rows_rejected"),
        # results of older versions lack it
        rows_already_stored=_count(found.get("rows_already_stored", 0), f"{place}.rows_already_stored"),
    )


def _table(name: str, found: dict[str, Any]) -> ResultTable:
    if not _TABLE_NAME.fullmatch(name):
        raise _NotOursError(f"a table is called {name[:80]!r}")
    place = f"tables.{name}"
    columns, schema = [], {}
    for k, one in enumerate(_list(found.get("columns"), f"{place}.columns")):
        about = _object(one, f"{place}.columns[{k}]")
        title = _text(about.get("name"), f"{place}.columns[{k}].name")
        unit, text, kind = (_text(about.get(key), f"{place}.{title}.{key}") for key in ("unit", "description", "type"))
        columns.append(Column(title, unit, text))
        schema[title] = kind
    if not columns:
        raise _NotOursError(f"{place} has no columns")
    if len(schema) < len(columns):
        raise _NotOursError(f"{place} has two columns of one name")
    names = _object(found.get("names", {}), f"{place}.names")
    rows = [_object(row, f"{place}.rows") for row in _list(found.get("rows"), f"{place}.rows")]
    return ResultTable(
        name=name,
        section=_text(found.get("section"), f"{place}.section"),
        title=_text(found.get("title"), f"{place}.title"),
        question=_text(found.get("question"), f"{place}.question"),
        population=_note(found.get("population"), names.get("population"), f"{place}.population"),
        notes=_notes(_list(found.get("notes"), f"{place}.notes"), names.get("notes"), f"{place}.notes"),
        columns=tuple(columns),
        frame=pl.DataFrame([_series(column, kind, rows, place) for column, kind in schema.items()]),
        detail=found.get("detail") is True,
        first_columns=_count(found.get("first_columns", 0), f"{place}.first_columns"),
        key_columns=_keys(found.get("key_columns", []), schema, f"{place}.key_columns"),
        charts=_drawings(name, found.get("charts", []), f"{place}.charts"),
        sentences=tuple(
            _note(*_pair(one, f"{place}.names.sentences"), f"{place}.names.sentences")
            for one in _list(names.get("sentences", []), f"{place}.names.sentences")
        ),
    )


def _keys(found: object, columns: Mapping[str, str], place: str) -> tuple[str, ...]:
    keys = _texts(found, place)
    if not set(keys) <= set(columns):
        raise _NotOursError(f"{place} names columns that do not exist")
    return keys


def _drawings(table: str, found: object, place: str) -> tuple[str, ...]:
    texts = _texts(found, place)
    for k, text in enumerate(texts):
        try:
            declared(table, text)
        except ValueError as error:
            raise _NotOursError(f"{place}[{k}] declares no chart: {error}") from None
    return texts


# ---- sentences


def _notes(texts: list[Any], spans: object, place: str) -> tuple[Note, ...]:
    """Return sentences with the names in them; without positions, as from an older gpuctl, all may be names."""
    places = [None] * len(texts) if spans is None else _list(spans, f"names.{place}")
    if len(places) != len(texts):
        raise _NotOursError(f"{place} has {len(texts)} texts, and names.{place} has {len(places)}")
    return tuple(_note(text, some, f"{place}[{k}]") for k, (text, some) in enumerate(zip(texts, places, strict=True)))


def _note(value: object, spans: object, place: str) -> Note:
    text = _text(value, place)
    if spans is None or text != value:
        return untrusted(text)
    found: list[Span] = []
    for one in _list(spans, f"names of {place}"):
        match one:
            case [int(begin), int(end), str(kind)] if (found[-1].end if found else 0) <= begin < end <= len(text):
                found.append(Span(begin, end, kind_named(kind)))
            case _:
                raise _NotOursError(f"names of {place} has {str(one)[:80]}, expected [begin, end, kind] in order")
    return Note(text, tuple(found))


def _titled(value: object, spans: object, place: str) -> Note:
    """Return the title; without positions of names, all of it counts as the cluster's name."""
    return named("cluster", _text(value, place)) if spans is None else _note(value, spans, place)


def _setting(key: str, value: object, spans: object) -> tuple[str, Note]:
    place = f"settings.{key}"
    if spans is None:
        return untrusted(storable(key)), untrusted(_text(value, place))
    of_key, of_value = _pair(spans, f"names.{place}")
    return storable(key) if of_key is None else _note(key, of_key, place), _note(value, of_value, place)


def _pair(value: object, place: str) -> tuple[object, object]:
    if not isinstance(value, list) or len(value) != 2:
        raise _NotOursError(f"{place} is {_what(value)}, expected a pair")
    return value[0], value[1]


def _series(name: str, kind: str, rows: list[dict[str, Any]], place: str) -> pl.Series:
    values = [row.get(name) for row in rows]
    try:
        if kind in _TYPES and kind != "date":
            return pl.Series(name, values, dtype=_TYPES[kind], strict=True)
        if kind == "date":
            return pl.Series(name, values, dtype=pl.String, strict=True).str.to_date()
        if kind == "time":
            return _times(name, pl.Series(name, values, dtype=pl.String, strict=True))
        if kind in {"array", "object"}:
            return pl.Series(name, values)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise _NotOursError(f"{place}.{name} should hold values of type {kind}: {str(error)[:200]}") from None
    raise _NotOursError(f"{place}.{name} has the unknown type {kind[:40]!r}")


def _times(name: str, texts: pl.Series) -> pl.Series:
    """Parse ISO 8601 times; in UTC if they end in Z; days and times without a date."""
    known = texts.drop_nulls()
    if known.len() and known.str.starts_with("day ").any():
        day = r"^day (\d{1,5}) (\d\d:\d\d:\d\d(?:\.\d+)?)$"
        days = texts.str.extract(day, 1).cast(pl.Int32).cast(pl.Date)
        dated = days.dt.strftime("%Y-%m-%dT") + texts.str.extract(day, 2) + "Z"
        relative = texts.str.starts_with("day ")
        if (relative & dated.is_null()).any():
            raise ValueError("expected day N HH:MM:SS")
        texts = pl.select(
            pl.when(pl.lit(relative)).then(pl.lit(dated)).otherwise(pl.lit(texts)).alias(name)
        ).to_series()
        known = texts.drop_nulls()
    zoned = known.is_empty() or bool(known.str.ends_with("Z").all())
    plain = texts.str.strip_suffix("Z").str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us")
    return (plain.dt.replace_time_zone("UTC") if zoned else plain).alias(name)


def _object(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _NotOursError(f"{place} is {_what(value)}, expected an object")
    return value


def _list(value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise _NotOursError(f"{place} is {_what(value)}, expected a list")
    return value


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise _NotOursError(f"{place} is {_what(value)}, expected a text")
    # JSON may hold lone surrogates, which no file or table can
    return storable(value)


def _texts(value: object, place: str) -> tuple[str, ...]:
    return tuple(_text(one, f"{place}[{k}]") for k, one in enumerate(_list(value, place)))


def _count(value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise _NotOursError(f"{place} is {_what(value)}, expected a whole number")
    return value


def _what(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", type(None): "missing", bool: "true or false"}
    return names.get(type(value), "a number")


_dump = json.JSONEncoder(allow_nan=False).encode
