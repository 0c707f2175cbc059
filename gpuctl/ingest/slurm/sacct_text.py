"""Accounting text of sacct, piece by piece, as canonical frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import CUT_OFF, GLUED, LINE_LIMIT, LINE_TOO_LONG
from gpuctl.ingest.read.pieces import count_of, torn_off, whole_lines
from gpuctl.ingest.slurm.layout import split_quoted
from gpuctl.ingest.slurm.repair import AMBIGUOUS, MOST_LINES, RecordRepair

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from gpuctl.ingest.slurm.layout import Layout

NOT_A_RECORD = "a message of Slurm's tools, not a record"
REPAIRED, NOT_UTF8 = "_mended", "_not_utf8"
"""Columns of truths: the record was put together from shifted or broken lines; bytes of it were no UTF-8."""

_UNIT = b"\x1f"
_MESSAGES = ("sacct: ", "slurm_", "srun: ", "slurmdbd: ", "sacctmgr: ")


@dataclass
class Parsed:
    """What one piece of text gave.

    Attributes:
        frames: canonical text and the line each record starts on.
        rejects: (line, reason, text) of what is not a record.
        lines: lines that were done with.
        rest: the lines that were not, because they may go on in the next piece.
        replaced: records with bytes that are no UTF-8.
    """

    frames: list[tuple[pl.DataFrame, pl.Series]] = field(default_factory=list)
    rejects: list[tuple[int, str, str]] = field(default_factory=list)
    lines: int = 0
    rest: bytes = b""
    replaced: int = 0


@dataclass
class _Rows:
    """Records that were read line by line."""

    cells: list[list[str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    repaired: list[bool] = field(default_factory=list)
    replaced: list[bool] = field(default_factory=list)

    def add(self, cells: list[str], line: int, *, repaired: bool, replaced: bool) -> None:
        self.cells.append(cells)
        self.lines.append(line)
        self.repaired.append(repaired)
        self.replaced.append(replaced)


class Text:
    """Parses the lines below the header.

    Args:
        layout: the text's columns.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        # Polars wants a delimiter of one byte
        self._delimiter = layout.delimiter if len(layout.delimiter) == 1 else _UNIT
        self._mark = self._delimiter.decode("latin-1")
        self._used = layout.used()
        self._csv = layout.delimiter in {b",", b";", b"\t"}
        self._repair = RecordRepair(layout)
        self._absorbing = 0
        """Lines that the last field of the record before may still take up."""

    def pieces(self, stream: BinaryIO, head: bytes, first_line: int) -> Iterator[Parsed]:
        """Yield what a stream holds.

        Args:
            stream: gives the text behind `head`.
            head: lines that were read already.
            first_line: the number of the first one of them.
        """
        line, rest = first_line, b""
        for piece, more in whole_lines(stream, head):
            data, torn = (piece, b"") if more else torn_off(piece, stream)
            parsed = self.parse(rest + data if rest else data, line, last=not more)
            line, rest = line + parsed.lines, parsed.rest
            if torn:
                parsed.rejects.append((line, CUT_OFF, torn.decode("utf-8", "replace")))
            yield parsed

    def parse(self, data: bytes, first_line: int, *, last: bool) -> Parsed:
        """Parse whole lines.

        Args:
            data: lines, each with its end.
            first_line: the number of the first one.
            last: whether nothing follows.
        """
        # one byte is found much faster than two
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if self._delimiter != self._layout.delimiter:
            data = data.replace(self._layout.delimiter, self._delimiter)
        if not data:
            return Parsed()
        if not data.endswith(b"\n"):
            data += b"\n"
        frame = self._frame(data)
        if frame is None:
            return self._by_line(data, first_line, last=last)
        import polars as pl

        self._absorbing = MOST_LINES
        lines = pl.int_range(first_line, first_line + frame.height, dtype=pl.Int64, eager=True)
        return Parsed([(frame, lines)], lines=frame.height)

    def _frame(self, data: bytes) -> pl.DataFrame | None:
        """Read lines that all have the fields of the header; None if one has not, or is not UTF-8."""
        import polars as pl

        if self._layout.quoted or (self._layout.header and self._layout.header in data) or (self._csv and b'"' in data):
            return None
        names = [f"c{i}" for i in range(len(self._layout.fields))]
        try:
            frame = pl.read_csv(
                data,
                separator=self._mark,
                has_header=False,
                quote_char=None,
                schema=dict.fromkeys(names, pl.String),
            )
        except (pl.exceptions.ComputeError, pl.exceptions.SchemaError):
            return None
        rows = count_of(data, b"\n")
        # none has more fields, or it would not have been read: so none has fewer if the delimiters add up
        if frame.height != rows:
            return None
        if frame[names[-1]].null_count() and count_of(data, self._delimiter) != rows * (len(names) - 1):
            return None
        return frame.select(pl.col(f"c{i}").alias(name) for name, i in self._used.items())

    def _by_line(self, data: bytes, first_line: int, *, last: bool) -> Parsed:
        """Read lines of which some are damaged."""
        raw = data.split(b"\n")[:-1]
        texts = [line.decode("utf-8", "replace") for line in raw]
        rows, parsed = _Rows(), Parsed()
        width = len(self._layout.fields)
        header = self._layout.header.decode("utf-8", "replace")
        at = 0
        while at < len(texts):
            text = texts[at]
            cells = self._split(text)
            if not text.strip() or text == header:
                at += 1
            elif len(cells) == width:
                rows.add(cells, first_line + at, repaired=False, replaced=_replaced(raw[at : at + 1]))
                self._absorbing = MOST_LINES
                at += 1
            else:
                end = self._damaged_until(texts, at, header)
                if end == len(texts) and not last and end - at < MOST_LINES:
                    break
                at += self._damaged(texts[at:end], raw[at:end], first_line + at, rows, parsed)
        parsed.lines = at
        parsed.rest = b"".join(line + b"\n" for line in raw[at:])
        parsed.replaced = sum(rows.replaced)
        if rows.cells:
            parsed.frames.append(self._of_rows(rows))
        return parsed

    def _damaged_until(self, texts: list[str], at: int, header: str) -> int:
        """Find where a stretch of damaged lines ends, looking no further than one record may reach."""
        width = len(self._layout.fields)
        for end in range(at + 1, min(at + MOST_LINES, len(texts))):
            if texts[end] == header or len(self._split(texts[end])) == width:
                return end
        return min(at + MOST_LINES, len(texts))

    def _damaged(self, texts: list[str], raw: list[bytes], line: int, rows: _Rows, parsed: Parsed) -> int:
        """Deal with the first of some damaged lines; return how many lines that took."""
        text = texts[0]
        if len(text) >= LINE_LIMIT:
            parsed.rejects.append((line, LINE_TOO_LONG, text))
            self._absorbing = 0
            return 1
        if text.startswith(_MESSAGES):
            parsed.rejects.append((line, NOT_A_RECORD, text))
            return 1
        taken, cells = self._repair.group(texts)
        if cells is not None:
            rows.add(cells, line, repaired=True, replaced=_replaced(raw[:taken]))
            self._absorbing = MOST_LINES
            return taken
        if taken:
            self._reject(AMBIGUOUS, "\n".join(texts[:taken]), line, parsed)
            self._absorbing = MOST_LINES
            return taken
        if self._absorbing and self._more_of_the_last_field(text):
            self._absorbing -= 1
            if rows.repaired:
                rows.repaired[-1] = True
            return 1
        count, width = text.count(self._mark) + 1, len(self._layout.fields)
        self._reject(f"{'fewer' if count < width else 'more'} fields than the {width} columns", text, line, parsed)
        self._absorbing = 0
        return 1

    def _more_of_the_last_field(self, text: str) -> bool:
        return (
            self._repair.swallows_following_lines
            and not self._repair.begins(text)
            and not self._repair.is_fragment(text)
        )

    def _reject(self, reason: str, text: str, line: int, parsed: Parsed) -> None:
        """Reject a line, or each of the records that it holds."""
        records = self._repair.split_records(text)
        parsed.rejects += [(line, GLUED if len(records) > 1 else reason, record) for record in records]

    def _split(self, text: str) -> list[str]:
        if '"' in text and (self._csv or self._layout.quoted):
            return split_quoted(text, self._mark) or [text]
        return text.split(self._mark)

    def _of_rows(self, rows: _Rows) -> tuple[pl.DataFrame, pl.Series]:
        import polars as pl

        columns = list(zip(*rows.cells, strict=True))
        frame = pl.DataFrame({name: pl.Series(columns[i], dtype=pl.String) for name, i in self._used.items()})
        marks = {REPAIRED: pl.Series(rows.repaired), NOT_UTF8: pl.Series(rows.replaced)}
        return frame.with_columns(**{n: m for n, m in marks.items() if m.any()}), pl.Series(rows.lines, dtype=pl.Int64)


def _replaced(raw: list[bytes]) -> bool:
    """Whether some of these bytes are no UTF-8."""
    try:
        b"\n".join(raw).decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False
