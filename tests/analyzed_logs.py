"""Small logs as texts, ingested one after the other, and the tables that analyze makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import formats_for
from gpuctl.store.database import Store
from tests.result_tables import table_of

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import Analysis


def ingested(folder: Path, files: dict[str, str], **how: str) -> Path:
    """Write files and load them in their order, each by a call of its own; the path of the store.

    Args:
        folder: an empty one.
        files: texts by name.
        how: what `formats_for` takes, such as ``swf_unit``.
    """
    path = folder / "trace.duckdb"
    for name, text in files.items():
        (folder / name).write_text(text)
        ingest([folder / name], path, cluster="c", formats=formats_for(None, **how))
    return path


def analyzed(path: Path, *tables: str) -> Analysis:
    """What analyze says of a store, with some of its tables."""
    with Store(path) as store:
        return analyze(store, Options(tables=tables))


def rows(path: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a result table."""
    return table_of(analyzed(path, table), table).frame.to_dicts()


def findings(path: Path) -> dict[str, tuple[int, str]]:
    """The table data_quality: number of rows and treatment, by finding."""
    return {row["finding"]: (row["rows"], row["treatment"]) for row in rows(path, "data_quality")}


def stored(path: Path, sql: str) -> list[dict[str, Any]]:
    """The rows of a query over the tables of a store."""
    with Store(path) as store:
        return store.frame(sql).to_dicts()
