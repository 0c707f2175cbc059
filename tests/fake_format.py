"""A format small enough to see through: after ``#fake`` each line is ``machine,value`` or is rejected."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

HEADER = b"#fake\n"
START = datetime(2024, 1, 1, tzinfo=UTC)


def sniff(name: str, head: bytes) -> str | None:
    return "first line #fake" if head.startswith(HEADER) else None


def load(stream: BinaryIO, sink: Sink) -> None:
    import polars as pl

    rows: dict[str, list[object]] = {"ts": [], "machine": [], "cpu_pct": []}
    for number, line in enumerate(stream, 1):
        if number == 1:
            continue
        text = line.decode("utf-8", "replace").strip()
        if text == "give up":
            raise InputError("cannot go on", path="the file", line=number)
        sink.seen()
        machine, _, value = text.partition(",")
        try:
            number_of = float(value)
        except ValueError:
            sink.reject(number, "not a number", line)
            continue
        rows["ts"].append(START + timedelta(minutes=number))
        rows["machine"].append(machine)
        rows["cpu_pct"].append(number_of)
        sink.loaded()
    sink.insert(
        "host_util", pl.DataFrame(rows, schema_overrides={"ts": pl.Datetime("us", "UTC"), "cpu_pct": pl.Float32})
    )


FAKE = Format(
    name="fake",
    title="lines of machine,value",
    fills=("host_util",),
    file_names=("*.fake",),
    order=50,
    timezone="America/Los_Angeles",
    clock="wall",
    parser_version=1,
    sniff=sniff,
    load=load,
)


def variant(**changes: Any) -> Format:
    """The fake format with something else about it."""
    return replace(FAKE, **changes)


def lines(count: int, *, bad: int = 0) -> bytes:
    """A file of the fake format."""
    rows = [f"m{i % 7},{i}\n" for i in range(count)] + [f"m0,x{i}\n" for i in range(bad)]
    return HEADER + "".join(rows).encode()


def contents(db: Path, *, without: tuple[str, ...] = ("loaded_at",)) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table of a store, sorted; times as text."""
    asked = """
        SELECT table_name, list(column_name ORDER BY column_index)
        FROM duckdb_tables() JOIN duckdb_columns() USING (database_name, schema_name, table_name)
        WHERE NOT temporary GROUP BY ALL ORDER BY 1
    """
    with Store(db) as store:
        found = {}
        for table, names in store.execute(asked).fetchall():
            shown = ", ".join(f'"{name}"::VARCHAR' for name in names if name not in without)
            found[table] = store.execute(f"SELECT {shown} FROM trace.main.{table} ORDER BY ALL").fetchall()
        return found
