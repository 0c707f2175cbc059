"""Checks that every format must pass, whatever its files hold; a plugin's own tests can call `check`.

``gpuctl formats NAME --check FIXTURE`` also runs it.
"""

from __future__ import annotations

import io
import logging
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuctl.core.errors import GpuctlError, InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.ingest.pipeline.detect import HEAD, detect
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.store.database import Store
from gpuctl.store.schema import STORED, TRACE_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.ingest.core.format import Format, Sink
    from gpuctl.ingest.pipeline.report import SourceReport


WORDS = (
    *(b"", b"-1", b"0", b"nan", b"inf", b"1e400", b"99999999999999999999", b"7"),
    *(b"None", b"null", b"(null)", b"Unknown", b"N/A", b"\x1b[31m", b"<b>&\"'", b"=1+1"),
    *(b"\0", b"\xff\xfe", b"\xed\xa0\x80", "\N{REPLACEMENT CHARACTER}\uffff\u202e".encode()),
    *(b"{", b"}", b"[", b"]", b'"', b"|", b",", b"\t", b"\r", b"\n", b"\\", b"gpu[0-99999999]", b"../../etc/passwd"),
    *(b"1970-01-01T00:00:00", b"9999-12-31 23:59:59", b"2017-13-41 25:61:61", b"0001-01-01T00:00:00", b"294247-01-01"),
)  # fmt: skip


def _cut_off(data: bytes, draw: Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _beginning_lost(data: bytes, draw: Random) -> bytes:
    return data[draw.randrange(min(len(data), 400) + 1) :]


def _bytes_changed(data: bytes, draw: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randint(1, 8)):
        if changed:
            changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _word_put_in(data: bytes, draw: Random) -> bytes:
    at, length = draw.randrange(len(data) + 1), draw.choice((0, 0, 1, 5, 30))
    return data[:at] + draw.choice(WORDS) + data[at + length :]


def _number_replaced(data: bytes, draw: Random) -> bytes:
    starts = [k for k in range(1, len(data)) if data[k : k + 1].isdigit() and not data[k - 1 : k].isdigit()]
    if not starts:
        return data
    at = end = draw.choice(starts)
    while data[end : end + 1].isdigit():
        end += 1
    return data[:at] + draw.choice(WORDS[:8]) + data[end:]


def _lines_glued(data: bytes, draw: Random) -> bytes:
    ends = [k for k, byte in enumerate(data) if byte == ord("\n")]
    if not ends:
        return data
    at = draw.choice(ends)
    return data[:at] + data[at + 1 :]


def _line_torn(data: bytes, draw: Random) -> bytes:
    """Drop the end of a line and its newline, as two writers or a temporarily full disk do."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = draw.randrange(len(lines))
    lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
    return b"".join(lines)


def _lines_shuffled(data: bytes, draw: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    draw.shuffle(lines)
    return b"".join(lines)


def _lines_doubled(data: bytes, draw: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = draw.randrange(len(lines))
    return b"".join([*lines[:at], *lines[at : at + draw.randint(1, 5)] * 2, *lines[at:]])


def _other_line_ends(data: bytes, draw: Random) -> bytes:
    return data.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n", b"\0")))


DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_cut_off, _beginning_lost, _bytes_changed, _word_put_in, _word_put_in, _number_replaced, _number_replaced),
    *(_lines_glued, _lines_glued, _line_torn, _line_torn, _lines_shuffled, _lines_doubled, _other_line_ends),
)


def damaged(data: bytes, draw: Random) -> bytes:
    """Return the bytes with one to three faults, which `draw` chooses."""
    for _ in range(draw.randint(1, 3)):
        data = draw.choice(DAMAGES)(data, draw)
    return data


CASES = 20
"""Number of damaged files by default."""
_READ_WHOLE = "load() reads the whole stream at once: a log may be larger than memory"
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"
_OF_THE_RUN = frozenset({"sources", "rejects", "clusters", "gpuctl_schema"})
"""Tables that every ingest writes to."""
_BEHIND = frozenset({*STORED.values(), *TRACE_JOBS, "all_trace_jobs", "numbered_jobs"})
"""What the views ``jobs`` and ``attempts`` show."""


def check(fmt: Format, fixture: Path, *, cases: int = CASES, seed: int = 0) -> list[str]:
    """Run a format on a file of its own, and on damaged copies of the file.

    It must recognise the file, alone among all formats; count every row as loaded or rejected; write to no tables but
    those of ``fills``; give the same rows again; change nothing when the file is read a second time; end in an
    `InputError` or in counted rows whatever the bytes are; and never read the stream as a whole.

    Args:
        fmt: the format.
        fixture: a small file in it.
        cases: number of damaged files.
        seed: of the first of them.

    Returns:
        Violations, one line each; empty if there are none.

    Raises:
        InputError: the fixture cannot be read.
    """
    data = read_whole(fixture, most=MOST_TABLE)
    found = _recognised(fmt, fixture.name, data)
    with tempfile.TemporaryDirectory(prefix="gpuctl-check-") as folder, _captured_log() as lines:
        place = Path(folder)
        found += _loaded(fmt, place, fixture.name, data)
        for number in range(seed, seed + cases):
            # the choice of damage need not be secret
            spoiled = damaged(data, Random(number))  # noqa: S311
            found += [f"damaged file {number}: {line}" for line in _stands(fmt, place / f"d{number}", fixture, spoiled)]
    return found + [line for line in dict.fromkeys(lines) if "failed:" in line]


@contextmanager
def _captured_log() -> Iterator[list[str]]:
    """Collect the messages logged meanwhile, including errors raised by a format's sniff()."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("gpuctl")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


def _recognised(fmt: Format, name: str, data: bytes) -> list[str]:
    others = [known for known in all_formats() if known.name != fmt.name]
    winner, why, _ = detect(name, data[:HEAD], [*others, fmt])
    if winner is None:
        return [f"the fixture is not recognised as {fmt.name}: {why}"]
    if winner.name != fmt.name:
        return [f"the fixture is recognised as {winner.name}: {why}"]
    stranger, _, _ = detect(name, b"", [fmt])
    return ["an empty file is recognised: decide by what a file holds"] if stranger is not None else []


def _loaded(fmt: Format, place: Path, name: str, data: bytes) -> list[str]:
    file = _put(place / "whole", name, data)
    one, again = place / "one.duckdb", place / "again.duckdb"
    watched, calls = _watched(fmt)
    source = _read(watched, file, one)
    if isinstance(source, str):
        return [f"the fixture is not loaded: {source}"]
    found = [_READ_WHOLE] if calls else []
    if source.status != "loaded":
        return [*found, f"the fixture is {source.status}: {source.message}"]
    if not source.rows_loaded:
        found.append(f"no row of the fixture is loaded; most often rejected: {source.reasons[:1]}")
    rows = _rows(one)
    if strange := sorted({table for table, count in rows.items() if count} - _OF_THE_RUN - set(fmt.fills)):
        found.append(f"rows are in {', '.join(strange)}, which fills does not name")
    second = _read(fmt, file, one)
    if isinstance(second, str) or second.status != "unchanged" or _rows(one) != rows:
        found.append("reading the file a second time changes the store")
    _read(fmt, file, again)
    if (other := _rows(again)) != rows:
        changed = ", ".join(table for table in rows if rows[table] != other.get(table))
        found.append(f"the same file gave other rows in another store: {changed}")
    return found


def _stands(fmt: Format, place: Path, fixture: Path, spoiled: bytes) -> list[str]:
    source = _read(fmt, _put(place, fixture.name, spoiled), place / "store.duckdb", chosen=True)
    if isinstance(source, str):
        return [source]
    if source.status == "failed":
        return [source.message] if "() failed" in source.message else []
    if source.rows_in != source.rows_loaded + source.rows_already_stored + source.rows_rejected:
        return [
            f"{source.rows_in} rows in are not {source.rows_loaded} loaded, {source.rows_already_stored} already in "
            f"the store and {source.rows_rejected} rejected"
        ]
    return []


def _put(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(data)
    return file


def _read(fmt: Format, file: Path, store: Path, *, chosen: bool = False) -> SourceReport | str:
    """Return the outcome of reading a file; a text if it was not read, or if it broke a rule."""
    try:
        report = ingest([file], store, cluster="check", formats=(fmt,), log_format=fmt.name if chosen else None)
    except InputError as error:
        return error.message if "() failed" in error.message or not chosen else _refused(fmt, file, error.message)
    except GpuctlError as error:
        return error.message
    except Exception as error:  # any exception of a format is a finding
        return f"{type(error).__name__}: {error}"
    if not report.sources:
        return "; ".join(one.why for one in report.not_read)
    return report.sources[0]


def _refused(fmt: Format, file: Path, message: str) -> SourceReport:
    from gpuctl.ingest.pipeline.report import SourceReport

    return SourceReport(str(file), fmt.name, "", "failed", file.stat().st_size, message=message)


def _rows(store: Path) -> dict[str, list[str]]:
    """Return the rows of every table that a loader writes to, as sorted texts, since they are unordered."""
    with Store(store) as opened:
        tables = [row[0] for row in opened.execute(_TABLES).fetchall()]
        # the names are those of the store's own tables
        return {
            table: sorted(row[0] for row in opened.execute(f'SELECT t::VARCHAR FROM "{table}" AS t').fetchall())  # noqa: S608
            for table in tables
            if table not in _OF_THE_RUN | _BEHIND
        }


def _watched(fmt: Format) -> tuple[Format, list[int]]:
    """Return the format, and a list that is filled once its load() reads a stream as a whole."""
    calls: list[int] = []

    def load(stream: BinaryIO, sink: Sink) -> None:
        fmt.load(_Stream(stream, calls), sink)  # type: ignore[arg-type]

    return replace(fmt, load=load), calls


class _Stream(io.BufferedIOBase):
    """A stream that records whether it is read as a whole."""

    def __init__(self, inner: BinaryIO, calls: list[int]) -> None:
        super().__init__()
        self._inner, self._calls = inner, calls

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            self._calls.append(1)
        return self._inner.read(-1 if size is None else size)

    def read1(self, size: int = -1, /) -> bytes:
        return self._inner.read(size if size >= 0 else HEAD)

    def readable(self) -> bool:
        return True

    def readlines(self, hint: int | None = -1, /) -> list[bytes]:
        self._calls.append(1)
        return self._inner.readlines(-1 if hint is None else hint)

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._inner.readline(-1 if size is None else size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
