"""JSON, tables, key=value lines and XML: written in any order, and with faults of structure."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

from tests.grammars.values import TEXT_EDGES, WHOLE_EDGES, Token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.grammars.values import Values

DEEP = (3, 30, 400, 3_000)
"""How deep lists are nested in place of a value."""
_NUMBER = re.compile(rb"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def json_text(value: Any, values: Values) -> str:
    """JSON of a value, its keys in any order, some of them twice.

    Args:
        value: as `json.loads` gives it; `Token` stands for text that is written as it is.
        values: draws the order.
    """
    if isinstance(value, Token):
        return str(value)
    if isinstance(value, dict):
        items = list(value.items())
        if values.chance(0.3):
            values.draw.shuffle(items)
        if items and values.is_edge():
            items.append(values.one_of(items))
        return "{" + ", ".join(f"{json.dumps(key)}: {json_text(item, values)}" for key, item in items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(json_text(item, values) for item in value) + "]"
    return json.dumps(value)


def faulty(value: Any, values: Values) -> Any:
    """The same value with faults of structure at the rate of the input's edges, at any depth."""
    if values.is_edge():
        return _other(value, values)
    if isinstance(value, dict):
        return {key: faulty(item, values) for key, item in value.items() if not values.is_edge()}
    if isinstance(value, list):
        return [faulty(item, values) for item in value]
    return value


def _other(value: Any, values: Values) -> Any:
    which = values.draw.randrange(8)
    if which == 0:
        return None
    if which == 1:
        return [] if isinstance(value, list) else {} if isinstance(value, dict) else ""
    if which == 2:
        return [value]
    if which == 3:
        depth = values.one_of(DEEP)
        return Token("[" * depth + "]" * depth)
    if which == 4:
        return Token(values.one_of(("NaN", "Infinity", "-Infinity", "1e400", "-1e308", "1E-400")))
    if which == 5:
        return values.one_of(WHOLE_EDGES)
    if which == 6:
        return str(value)[:100]
    return values.one_of(TEXT_EDGES)


def table(header: Sequence[str], rows: Sequence[Sequence[object]], values: Values, delimiter: str = ",") -> str:
    """A table as text: sometimes with other orders of columns, lost or doubled columns and cells, repeated headers."""
    columns = list(range(len(header)))
    if values.chance(0.3):
        values.draw.shuffle(columns)
    if columns and values.is_edge():
        columns.remove(values.one_of(columns))
    if columns and values.is_edge():
        columns.append(values.one_of(columns))
    lines = [[header[k] for k in columns], *([_cell(row[k]) for k in columns] for row in rows)]
    if len(lines) > 1 and values.is_edge():
        lines.insert(values.draw.randrange(1, len(lines)), list(lines[0]))
    for line in lines[1:]:
        if line and values.is_edge():
            line.append("x") if values.chance(0.5) else line.pop()
    end = values.one_of(("\n", "\n", "\n", "\r\n"))
    if delimiter == ",":
        out = io.StringIO()
        csv.writer(out, lineterminator=end).writerows(lines)
        return out.getvalue()
    return "".join(delimiter.join(line) + end for line in lines)


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def changed(data: bytes, values: Values) -> bytes:
    """A sound file with values at the edges in the places of its own: JSON and XML by structure, others by cell."""
    text = data.decode("utf-8", "surrogateescape")
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json_text(faulty(json.loads(text), values), values).encode("utf-8", "surrogateescape")
        except ValueError:
            pass
    if text.lstrip().startswith("<"):
        try:
            return xml_text(ET.fromstring(text), values)
        except ET.ParseError:
            pass
    for delimiter in ("|", "\t", ",", ";"):
        if delimiter in text.split("\n", 1)[0]:
            return _cells_changed(text, delimiter, values).encode("utf-8", "surrogateescape")
    return _NUMBER.sub(lambda match: values.odd().encode("utf-8") if values.is_edge() else match[0], data)


def _cells_changed(text: str, delimiter: str, values: Values) -> str:
    first, *lines = text.split("\n")
    found = [first]
    for line in lines:
        cells = line.split(delimiter)
        found.append(delimiter.join(values.odd() if values.is_edge() else cell for cell in cells))
    return "\n".join(found)


def xml_text(root: ET.Element, values: Values) -> bytes:
    """XML of an element: some texts and attributes at the edges, elements lost, doubled or in another order."""
    for element in list(root.iter()):
        if element.text and element.text.strip() and values.is_edge():
            element.text = _printable(values.odd())
        for name in list(element.attrib):
            if values.is_edge():
                element.set(name, _printable(values.odd()))
        children = list(element)
        if children and values.is_edge():
            element.remove(values.one_of(children))
        if children and values.is_edge():
            element.append(values.one_of(children))
        if values.chance(0.1):
            element[:] = values.draw.sample(list(element), len(element))
    return ET.tostring(root)


def _printable(text: str) -> str:
    """Text without what XML cannot hold."""
    return "".join(each for each in text if each >= " ")
