r"""Reads the rows of an SQL dump (mysqldump, mariadb-dump) one by one, without a database.

Only ``CREATE TABLE`` and ``INSERT INTO … VALUES`` are understood; everything else is skipped. Text is taken
apart by the rules of MySQL strings (backslash escapes, doubled quotes) and nothing in it is ever evaluated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.ingest.core.format import RAW_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROW_LIMIT = 2**20
"""A row of more bytes than this is rejected, with what is left of its statement."""

NOT_A_ROW = "no row of values: the rest of this INSERT statement is not read"
NO_STATEMENT = "no statement: its beginning is lost, or bytes stand before it"
CUT_OFF = "cut off: the file ends inside this row"
NO_COLUMNS = "INSERT into a table whose columns were not named before"
TORN_TEXT = "a line ends inside a text: dumps write such an end as \\n"
WRONG_WIDTH = "not as many values as the table has columns"

_CHUNK = 2**20
_STATEMENT = 2**17  # names and columns of a statement are within this many bytes
_BLANK = re.compile(rb"\s++|--(?=\s|\Z)[^\n]*+\n?|#[^\n]*+\n?|;|/\*.*?\*/", re.DOTALL)
_INSERT = re.compile(
    rb"(?:INSERT(?:\s+IGNORE)?|REPLACE)\s+INTO\s+(?:`?[\w$]+`?\.)?`?([\w$]+)`?\s*(?:\(([^()]{0,65536})\)\s*)?VALUES?\s*",
    re.IGNORECASE,
)
_KEYWORD = re.compile(
    rb"(?:ALTER|ANALYZE|BEGIN|CALL|CHANGE|COMMIT|CREATE|DELETE|DELIMITER|DO|DROP|END|FLUSH|GRANT|INSERT|LOCK|RELEASE|RENAME"
    rb"|REPLACE|RESET|ROLLBACK|SAVEPOINT|SELECT|SET|SOURCE|START|STOP|TRUNCATE|UNLOCK|UPDATE|USE|WITH|XA)(?![\w'/])|/\*",
    re.IGNORECASE,
)
"""What statements begin with."""
_ROWS = re.compile(rb"(?:INSERT|REPLACE)\b", re.IGNORECASE)
_HOW = rb"LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE"
# `(?:...)*+` would keep its words, but Python before 3.11.5 loses its place where a round of that begins and fails
_INTO = re.compile(
    rb"(?:INSERT|REPLACE)(?:\s++(?:" + _HOW + rb")\b)*(?:\s++INTO\b)?\s++(?!(?:" + _HOW + rb"|INTO)\b)"
    rb"(?:(?:`?[\w$]+`?\.)?`([^`\n]+)`|(?:[\w$]+\.)?([\w$]+)[ \t]*+(?:\(|(?:VALUES?|SELECT|SET)\b))",
    re.IGNORECASE,
)
"""An INSERT of any form whose table's name is whole."""
_CREATE = re.compile(rb"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:`?[\w$]+`?\.)?`?([\w$]+)`?\s*\(", re.IGNORECASE)
_COLUMN = re.compile(rb"^[ \t]*+`([^`\n]+)`\s", re.MULTILINE)
_STRING = rb"'(?:[^'\\]++|\\.|'')*+'"
# no backslash outside of strings: it would let a search for the end of one string begin at every place
_ROW = re.compile(rb"\(((?:[^'()\\]++|" + _STRING + rb")*+)\)\s*", re.DOTALL)
_VALUE = re.compile(rb"(?<![^,])(\s*+(?:(?:_\w++\s*+)?(" + _STRING + rb")|([^',]*+))\s*+,)", re.DOTALL)
_NAMED = re.compile(rb"(?:CREATE TABLE|INSERT INTO|DROP TABLE IF EXISTS|Table structure for table) `(\w+_table)`")
_LONE = re.compile(rb"\s*\n[ \t]*+;")
_BEGINS = rb"(?:INSERT INTO|INSERT IGNORE INTO|REPLACE INTO|CREATE TABLE) "
_NEXT = re.compile(rb"\n(?=" + _BEGINS + rb")")
"""Before a line that begins a statement, as dumps have them: a line's end inside of a string is escaped there."""
_AT_ONCE = re.compile(_BEGINS)
_STOP = re.compile(rb"['\"`;]|--|#|/\*|" + _NEXT.pattern)
_END = {
    b"'": re.compile(rb"\\.|''|'", re.DOTALL),
    b'"': re.compile(rb'\\.|""|"', re.DOTALL),
    b"`": re.compile(rb"`|" + _NEXT.pattern),
    b"--": re.compile(rb"\n"),
    b"#": re.compile(rb"\n"),
    b"/*": re.compile(rb"\*/"),
}
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
_MARK = 32  # bytes that the longest mark of the above is shorter than
_ESCAPED = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}


class Row(NamedTuple):
    """One row of a table, or one stretch of an INSERT that cannot be read.

    Attributes:
        line_no: 1-based line on which it starts.
        table: its table.
        cells: the wanted columns that the table has; None is NULL.
        fault: why it cannot be read, or None.
        raw: its first `RAW_LIMIT` bytes.
    """

    line_no: int
    table: str
    cells: dict[str, str | None]
    fault: str | None
    raw: bytes


def tables_in(head: bytes) -> set[str]:
    """Name the tables (``…_table``, as slurmdbd calls all of its own) that the beginning of a dump speaks of."""
    return {_text(name) for name in _NAMED.findall(head)}


def rows(stream: BinaryIO, wanted: Mapping[str, frozenset[str]]) -> Iterator[Row]:
    """Yield the rows of some tables, from front to back.

    Args:
        stream: decompressed bytes.
        wanted: the end of a table's name (``_job_table``) -> the columns to keep. Other tables are skipped.
    """
    window = _Window(stream)
    columns: dict[str, list[str]] = {}
    while True:
        window.hold(_STATEMENT)
        lone = _LONE.match(window.data, window.pos) if columns else None
        if blank := _BLANK.match(window.data, window.pos):
            window.advance(blank.end())
            if lone:
                yield Row(window.line, "", {}, NO_STATEMENT, b";")
                window.advance(window.pos + 1)
            continue
        if window.at_end():
            return
        if created := _CREATE.match(window.data, window.pos):
            end = window.data.find(b"\n)", created.end())
            found = _COLUMN.findall(window.data, created.end(), end if end >= 0 else created.end() + _STATEMENT)
            columns[_text(created[1])] = [_text(name) for name in found]
        elif insert := _INSERT.match(window.data, window.pos):
            table = _text(insert[1])
            names = next((names for end, names in wanted.items() if table.endswith(end)), None)
            if names is not None:
                named = (
                    [_text(name).strip("` \n") for name in insert[2].split(b",")] if insert[2] else columns.get(table)
                )
                window.advance(insert.end())
                yield from _values(window, table, named, names)
                continue
        elif columns and _is_damage(window.data, window.pos, wanted):
            yield Row(window.line, "", {}, NO_STATEMENT, window.data[window.pos : window.pos + RAW_LIMIT])
            _pass_damage(window)
            continue
        _pass_statement(window)


def _is_damage(data: bytes, at: int, wanted: Mapping[str, frozenset[str]]) -> bool:
    """Whether what stands where a statement should is what a torn line has left, or has rows further on in its line."""
    if not _KEYWORD.match(data, at):
        return True
    end = data.find(b"\n", at)
    found = _INSERT.search(data, at, end if end >= 0 else len(data))
    if found is not None:
        return _text(found[1]).endswith(tuple(wanted))
    if not _ROWS.match(data, at):
        return False
    named = _INTO.match(data, at)
    # one whose table cannot be determined may be of any
    return named is None or _text(named[1] or named[2]).endswith(tuple(wanted))


class _Window:
    """The part of the file that is held, where reading stands in it, and on which line that is."""

    def __init__(self, stream: BinaryIO) -> None:
        self.data = b""
        self.pos = 0
        self.line = 1
        self.ended = False
        self._stream = stream

    def at_end(self) -> bool:
        return self.ended and self.pos == len(self.data)

    def held(self) -> int:
        return len(self.data) - self.pos

    def advance(self, to: int) -> None:
        self.line += self.data.count(b"\n", self.pos, to)
        self.pos = to

    def grow(self) -> bool:
        """Drop what has been read and hold more of the rest; false if nothing is left."""
        more = b"" if self.ended else self._stream.read(max(_CHUNK, self.held()))
        self.ended = not more
        self.data = self.data[self.pos :] + more
        self.pos = 0
        return bool(more)

    def hold(self, size: int) -> None:
        while self.held() < size and not self.ended:
            self.grow()


def _values(window: _Window, table: str, columns: list[str] | None, wanted: frozenset[str]) -> Iterator[Row]:
    """The rows of one statement, from the first bracket on."""
    at = [(i, name) for i, name in enumerate(columns or ()) if name in wanted]
    while True:
        match = _row(window)
        line, raw = window.line, window.data[window.pos : window.pos + RAW_LIMIT]
        if match is None:
            yield _broken(window, table)
            return
        cells = _cells(match[1], at, len(columns or ()))
        fault = NO_COLUMNS if not columns else WRONG_WIDTH if cells is None else None
        if cells and any(text and "\n" in text for text in cells.values()) and _torn(match[1], at):
            fault, cells = TORN_TEXT, None
        yield Row(line, table, cells or {}, fault, raw[: len(match[0])])
        after = match.end()
        mark = window.data[after : after + 1]
        window.advance(after)
        if mark in {b";", b""}:
            return
        if mark != b",":
            # its end is lost, and with it maybe more rows
            yield _broken(window, table)
            return
        window.advance(after + 1)
        _pass_blanks(window)


def _broken(window: _Window, table: str) -> Row:
    """What stands where a row or the end of its statement should be; goes on at the next statement with rows."""
    cut = window.ended and window.held() <= ROW_LIMIT
    raw = window.data[window.pos : window.pos + RAW_LIMIT]
    row = Row(window.line, table, {}, CUT_OFF if cut else NOT_A_ROW, raw)
    if not _AT_ONCE.match(window.data, window.pos):
        _pass_damage(window)
    return row


def _row(window: _Window) -> re.Match[bytes] | None:
    while True:
        match = _ROW.match(window.data, window.pos)
        # what follows the bracket has to be held too: a comma or the end of the statement
        if match is not None and (match.end() < len(window.data) or window.ended):
            return match if match.end() - window.pos <= ROW_LIMIT else None
        if window.ended or window.held() > ROW_LIMIT:
            return None
        window.grow()


def _cells(inner: bytes, at: list[tuple[int, str]], width: int) -> dict[str, str | None] | None:
    found: list[tuple[bytes, bytes, bytes]] = _VALUE.findall(inner + b",")
    if len(found) != width or sum(len(whole) for whole, _, _ in found) != len(inner) + 1:
        return None
    cells: dict[str, str | None] = {}
    for i, name in at:
        _, string, plain = found[i]
        if string:
            cells[name] = _unescape(string[1:-1])
        else:
            word = plain.strip()
            cells[name] = None if word.upper() == b"NULL" else _text(word)
    return cells


def _torn(inner: bytes, at: list[tuple[int, str]]) -> bool:
    """Whether a wanted text continues on another line: the statement is torn or holds another record."""
    found: list[tuple[bytes, bytes, bytes]] = _VALUE.findall(inner + b",")
    return any(b"\n" in found[i][1] for i, _ in at)


def _unescape(string: bytes) -> str:
    if b"\\" in string or b"''" in string:
        string = _ESCAPE.sub(lambda m: b"'" if m[1] is None else _ESCAPED.get(m[1], m[1]), string)
    return _text(string)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _pass_blanks(window: _Window) -> None:
    while True:
        while window.pos < len(window.data) and window.data[window.pos] in b" \t\r\n":
            window.advance(window.pos + 1)
        if window.pos < len(window.data) or not window.grow():
            return


def _pass_damage(window: _Window) -> None:
    """Skip to the next line that begins a statement with rows; inside damage, strings cannot be delimited."""
    while True:
        found = _NEXT.search(window.data, window.pos)
        if found:
            window.advance(found.end())
            return
        window.advance(max(window.pos, len(window.data) - _MARK))
        if not window.grow():
            window.advance(len(window.data))
            return


def _pass_statement(window: _Window) -> None:
    """Skip past the next semicolon outside strings and comments, holding only one read of it.

    A line that begins a statement with rows ends one before it that has lost its end, if it is in no string.
    """
    inside: bytes | None = None
    while True:
        found = (_STOP if inside is None else _END[inside]).search(window.data, window.pos)
        # a mark may be cut in the middle
        if found is None or (found.end() == len(window.data) and not window.ended):
            left = found.start() if found else len(window.data) - (0 if window.ended else _MARK)
            window.advance(max(window.pos, left))
            if window.at_end():
                return
            window.grow()
            continue
        window.advance(found.end())
        if found[0] == b"\n" and inside in {None, b"`"}:
            return
        if inside is not None:
            if len(found[0]) == 1 or inside == b"/*":
                inside = None
        elif found[0] == b";":
            return
        else:
            inside = found[0]
