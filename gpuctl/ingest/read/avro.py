"""Decodes records of Avro's binary encoding by their schema, as they follow one another without a container file.

https://avro.apache.org/docs/1.11.1/specification/, "Binary Encoding". The value of a union of several records is
wrapped as Avro's JSON has it, ``{name: value}``; that of a union with null and one type is the value itself.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from gpuctl.core.line_reader import RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.ingest.read.codecs import Reader

_CHUNK = 2**20
RECORD_LIMIT = 16 * 2**20
"""A record of more bytes is not read."""
DAMAGED = "damaged: the bytes do not fit the schema; nothing after them can be read"
CUT_OFF = "cut off: the file ends inside this record"
_FIXED = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}


class _ShortError(Exception):
    """More bytes are needed."""


class _Bytes:
    """The bytes at hand, and where reading stands in them."""

    __slots__ = ("data", "pos")

    def __init__(self) -> None:
        self.data = b""
        self.pos = 0

    def whole(self) -> int:
        value = shift = 0
        while True:
            if self.pos >= len(self.data):
                raise _ShortError
            byte = self.data[self.pos]
            self.pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise RowError(DAMAGED)

    def take(self, count: int) -> bytes:
        if not 0 <= count <= RECORD_LIMIT:
            raise RowError(DAMAGED)
        end = self.pos + count
        if end > len(self.data):
            raise _ShortError
        found = self.data[self.pos : end]
        self.pos = end
        return found

    def text(self) -> str:
        return self.take(self.whole()).decode("utf-8", "replace")


def records(stream: Reader, schema: Any) -> Iterator[Any]:
    """Yield the records of a stream; the last one is a RowError if it is damaged or cut off.

    Args:
        stream: stands at the first record.
        schema: of a record, decoded from JSON.

    Raises:
        RowError: it is no schema.
    """
    read = _reader(schema, {}, "")
    held = _Bytes()
    more = True
    while True:
        start = held.pos
        try:
            value = read(held)
        except RowError as bad:
            yield bad
            return
        except RecursionError:
            yield RowError(DAMAGED)
            return
        except _ShortError:
            held.data, held.pos = held.data[start:], 0
            if len(held.data) > RECORD_LIMIT:
                yield RowError(f"record longer than {RECORD_LIMIT // 2**20} MiB")
                return
            piece = stream.read(max(_CHUNK, len(held.data))) if more else b""
            more = bool(piece)
            if not more:
                if held.data:
                    yield RowError(CUT_OFF)
                return
            held.data += piece
            continue
        if held.pos == start:
            yield RowError(DAMAGED)
            return
        yield value


def _reader(schema: Any, named: dict[str, Callable[[_Bytes], Any]], space: str) -> Callable[[_Bytes], Any]:
    """Return what reads a value of a schema.

    Args:
        schema: a name, a list (union) or an object.
        named: readers of the types defined so far, by full name.
        space: the namespace around it.
    """
    if isinstance(schema, list):
        return _union([(_name_of(one, space), _reader(one, named, space)) for one in schema])
    if isinstance(schema, str):
        if schema in _PLAIN:
            return _PLAIN[schema]
        # a type may refer to itself, so it is looked up when it is read
        full = _full(schema, space)
        if full not in named:
            raise RowError(f"no schema of the records: the type {schema[:80]} is not defined")

        def later(held: _Bytes) -> Any:
            return named[full](held)

        return later
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, dict | list):
        return _reader(kind, named, space)
    if kind == "array":
        return _blocks(_reader(schema.get("items"), named, space), keyed=False)
    if kind == "map":
        return _blocks(_reader(schema.get("values"), named, space), keyed=True)
    if kind in {"record", "enum", "fixed", "error"}:
        return _defined(schema, named, space)
    if isinstance(kind, str):
        return _reader(kind, named, space)
    raise RowError("no schema of the records")


def _defined(schema: dict[str, Any], named: dict[str, Callable[[_Bytes], Any]], space: str) -> Callable[[_Bytes], Any]:
    full = _name_of(schema, space)
    space = full.rpartition(".")[0]
    if schema["type"] == "enum":
        symbols = schema.get("symbols")
        symbols = symbols if isinstance(symbols, list) else []
        named[full] = lambda held: _item(symbols, held.whole())
    elif schema["type"] == "fixed":
        size = schema.get("size")
        size = size if isinstance(size, int) else -1
        named[full] = lambda held: held.take(size)
    else:
        fields: list[tuple[str, Callable[[_Bytes], Any]]] = []
        named[full] = lambda held: {name: read(held) for name, read in fields}
        stated = schema.get("fields")
        for each in stated if isinstance(stated, list) else []:
            if not isinstance(each, dict):
                raise RowError("no schema of the records")
            fields.append((str(each.get("name")), _reader(each.get("type"), named, space)))
    return named[full]


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _name_of(schema: Any, space: str) -> str:
    if not isinstance(schema, dict):
        return schema if schema in _PLAIN else _full(str(schema), space)
    if schema.get("type") not in {"record", "enum", "fixed", "error"}:
        return str(schema.get("type"))
    stated = schema.get("namespace")
    return _full(str(schema.get("name")), stated if isinstance(stated, str) else space)


def _item(values: list[Any], number: int) -> Any:
    if not 0 <= number < len(values):
        raise RowError(DAMAGED)
    return values[number]


def _union(branches: list[tuple[str, Callable[[_Bytes], Any]]]) -> Callable[[_Bytes], Any]:
    wrapped = sum(name != "null" for name, _ in branches) > 1

    def read(held: _Bytes) -> Any:
        name, inner = _item(branches, held.whole())
        value = inner(held)
        return {name: value} if wrapped and name != "null" else value

    return read


def _blocks(read: Callable[[_Bytes], Any], *, keyed: bool) -> Callable[[_Bytes], Any]:
    def blocks(held: _Bytes) -> Any:
        found: list[Any] = []
        keys: list[str] = []
        while count := held.whole():
            if count < 0:
                count = -count
                held.whole()
            if count > RECORD_LIMIT or len(found) + count > RECORD_LIMIT:
                raise RowError(DAMAGED)
            for _ in range(count):
                before = held.pos
                if keyed:
                    keys.append(held.text())
                found.append(read(held))
                if held.pos == before:
                    raise RowError(DAMAGED)
        return dict(zip(keys, found, strict=True)) if keyed else found

    return blocks


def _real(kind: str) -> Callable[[_Bytes], float]:
    form = _FIXED[kind]
    return lambda held: float(form.unpack(held.take(form.size))[0])


_PLAIN: dict[str, Callable[[_Bytes], Any]] = {
    **{"null": lambda held: None, "boolean": lambda held: held.take(1) != b"\0", "int": _Bytes.whole},
    **{"long": _Bytes.whole, "string": _Bytes.text, "bytes": lambda held: held.take(held.whole())},
    **{"float": _real("float"), "double": _real("double")},
}
