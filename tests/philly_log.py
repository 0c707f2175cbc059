"""Philly-format logs for tests: building them, and loading one file into a store of its own."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpuctl.ingest.core.format import RAW_LIMIT
from gpuctl.ingest.core.sink import WITH_SOURCE
from gpuctl.store.database import Store
from gpuctl.store.schema import STORED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

    from gpuctl.ingest.core.format import Format

CLUSTER = "philly"


@dataclass
class RecordingSink:
    """A sink of an empty store that keeps what is inserted, and counts as the ledger does."""

    cluster: str = CLUSTER
    source: int = 1
    timezone: str = "America/Los_Angeles"
    epoch: str = ""
    rows_in: int = 0
    rows_loaded: int = 0
    rows_already_stored: int = 0
    rejects: list[tuple[int, str, bytes]] = field(default_factory=list)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def seen(self, rows: int = 1) -> None:
        self.rows_in += rows

    def loaded(self, rows: int = 1) -> None:
        self.rows_loaded += rows

    def already_stored(self, rows: int = 1) -> None:
        self.rows_already_stored += rows

    def reject(self, line_no: int, reason: str, raw: bytes | str) -> None:
        data = raw.encode() if isinstance(raw, str) else raw
        self.rejects.append((line_no, reason, data[:RAW_LIMIT]))

    def insert(self, table: str, rows: Any) -> None:
        arrow = rows.to_arrow() if hasattr(rows, "to_arrow") else rows
        columns = {name: column.to_pylist() for name, column in zip(arrow.column_names, arrow.columns, strict=True)}
        self.tables.setdefault(table, []).extend(
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        )

    def after(self, work: Callable[..., None], *given: object) -> None:
        work(self, *given)

    def query(self, sql: str, params: dict[str, object] | None = None) -> pl.DataFrame:
        import polars as pl

        names = re.findall(r"\w+", sql.partition("FROM")[0].removeprefix("SELECT"))
        return pl.DataFrame(schema=dict.fromkeys(names, pl.Null))

    def execute(self, sql: str, params: dict[str, object] | None = None) -> None:
        raise AssertionError(f"nothing to change in an empty store: {sql} {params}")

    def column(self, table: str, name: str) -> list[Any]:
        """One column of what was inserted into a table."""
        return [row[name] for row in self.tables.get(table, [])]

    @property
    def reasons(self) -> list[str]:
        """Why rows were rejected, in the order of the file."""
        return [reason for _, reason, _ in sorted(self.rejects)]


@dataclass
class OneFile(RecordingSink):
    """A sink that writes straight into a store."""

    store: Store = field(kw_only=True)

    def insert(self, table: str, rows: Any) -> None:
        self.store.view("incoming", rows)
        names = rows.schema.names() if callable(rows.schema.names) else rows.schema.names
        own = {"cluster": self.cluster, **({"source": self.source} if table in WITH_SOURCE else {})}
        values = {name: value for name, value in own.items() if name not in names}
        added = "".join(f", ${name} AS {name}" for name in values)
        self.store.execute(f"INSERT INTO {STORED.get(table, table)} BY NAME SELECT *{added} FROM incoming", values)
        self.store.drop_view("incoming")

    def query(self, sql: str, params: dict[str, object] | None = None) -> pl.DataFrame:
        return self.store.frame(sql, params)

    def execute(self, sql: str, params: dict[str, object] | None = None) -> None:
        self.store.execute(sql, params)

    def rows(self, table: str, order: str = "ALL") -> list[dict[str, Any]]:
        """All rows of a table; times as naive UTC text."""
        frame = self.store.frame(f"SELECT * FROM {table} ORDER BY {order}")
        stamps = [name for name, dtype in frame.schema.items() if str(dtype).startswith("Datetime")]
        return frame.with_columns(frame[name].dt.strftime("%Y-%m-%d %H:%M:%S") for name in stamps).to_dicts()


def load_into(sink: RecordingSink, fmt: Format, data: bytes | str) -> None:
    """Load bytes as one file of a format; the ledger's sum is checked."""
    fmt.load(io.BytesIO(data.encode() if isinstance(data, str) else data), sink)
    assert sink.rows_in == sink.rows_loaded + sink.rows_already_stored + len(sink.rejects)


def load(fmt: Format, data: bytes | str, store: Store, **settings: Any) -> OneFile:
    """Load bytes into a store as one file of a format."""
    sink = OneFile(store=store, **settings)
    load_into(sink, fmt, data)
    return sink


def new_store(folder: Path) -> Store:
    """An empty store."""
    return Store(folder / "gpuctl.duckdb", write=True)


def attempt(start: str | None, end: str | None, *places: tuple[str, list[int]]) -> dict[str, Any]:
    """One attempt as the log has it."""
    detail = [{"ip": machine, "gpus": [f"gpu{i}" for i in gpus]} for machine, gpus in places]
    return {"start_time": start, "end_time": end, "detail": detail}


def job(name: str, submit: str | None, *attempts: dict[str, Any], **other: Any) -> dict[str, Any]:
    """One job as the log has it."""
    whole = {"status": "Pass", "vc": "aa11", "jobid": name, "attempts": list(attempts), "submitted_time": submit}
    return {**whole, "user": "u1", **other}


def log(*jobs: Any) -> str:
    """A job log."""
    return json.dumps(list(jobs), indent=1)
