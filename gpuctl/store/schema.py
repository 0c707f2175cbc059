"""Checks that a trace store has the tables and columns that gpuctl creates, and nothing else.

A store may be untrusted, and DuckDB runs the code in it: a macro shadows a function of the same name, a view in place
of a table may run any query, a default or a generated column is computed when it is read or written. So the whole
catalogue is compared with that of a store created here, before any other query. All names are qualified, so that no
macro of the store shadows a function used here.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterator

MIGRATIONS = (
    "0001_initial.sql",
    "0002_cluster_managers.sql",
    "0003_queue_limits.sql",
    "0004_profiles.sql",
    "0005_job_logs.sql",
    "0006_results.sql",
    "0007_predictors.sql",
    "0008_lake.sql",
    "0009_traces.sql",
    "0010_telemetry_summary.sql",
    "0011_trace_jobs.sql",
    "0012_part17.sql",
    "0013_gpu_type_request.sql",
    "0014_usage_of_requests.sql",
    "0015_gpu_telemetry.sql",
    "0016_reliability.sql",
    "0017_deadlines.sql",
)
"""Applied in order; the schema version is how many have been applied. Never edit one that was released."""
STORED = {"jobs": "job_rows", "attempts": "attempt_rows"}
"""Of the names that are views of several tables, the table that rows are written to."""
TRACE_JOBS = ("trace_jobs", "trace_jobs_short")
"""Tables of jobs of which those views make an attempt, too."""
_VERSIONS = "gpuctl_schema"
SCHEMA_TABLE = "CREATE TABLE IF NOT EXISTS gpuctl_schema (version INTEGER NOT NULL, migration VARCHAR NOT NULL)"
_SHOWN = 4

_OBJECTS = (
    ("table", "table_name", "sql", "duckdb_tables() WHERE NOT temporary"),
    ("view", "view_name", "sql", "duckdb_views() WHERE NOT internal"),
    ("macro", "function_name", "macro_definition", "duckdb_functions() WHERE NOT internal"),
    ("type", "type_name", "logical_type", "duckdb_types() WHERE NOT internal"),
    ("index", "index_name", "sql", "duckdb_indexes() WHERE true"),
    ("sequence", "sequence_name", "sql", "duckdb_sequences() WHERE NOT temporary"),
)
"""What a store may hold: its kind, and where DuckDB shows its name and what it is made by."""


class Objects(NamedTuple):
    """The objects of a database.

    Attributes:
        made: (kind, schema, name) -> its definition.
        columns: (table, column) -> its type.
    """

    made: dict[tuple[str, str, str], str]
    columns: dict[tuple[str, str], str]


def migration(name: str) -> str:
    """Return the SQL of a migration."""
    return files("gpuctl.store").joinpath("migrations").joinpath(name).read_text("utf-8")


def objects(con: duckdb.DuckDBPyConnection, database: str) -> Objects:
    """List the objects of a database; the connection must not have the database in its search path.

    Raises:
        duckdb.Error: its catalogue cannot be read.
    """
    made: dict[tuple[str, str, str], str] = {}
    for kind, name, text, source in _OBJECTS:
        rows = con.execute(
            f"SELECT schema_name, {name}, {text} FROM system.main.{source} AND database_name = ?",  # noqa: S608
            [database],
        ).fetchall()
        made |= {(kind, schema, one): str(sql) for schema, one, sql in rows}
    schemas = "SELECT schema_name FROM system.main.duckdb_schemas() WHERE NOT internal AND database_name = ?"
    made |= {("schema", "", row[0]): "" for row in con.execute(schemas, [database]).fetchall()}
    rows = con.execute(
        "SELECT table_name, column_name, data_type FROM system.main.duckdb_columns() "
        "WHERE NOT internal AND schema_name = 'main' AND database_name = ?",
        [database],
    ).fetchall()
    return Objects(made, {(table, column): kind for table, column, kind in rows})


@cache
def own_objects(version: int) -> Objects:
    """Return the objects of a store of a schema version."""
    with duckdb.connect() as con:
        con.execute(SCHEMA_TABLE)
        for name in MIGRATIONS[:version]:
            con.execute(migration(name))
        con.execute("ATTACH ':memory:' AS apart")
        con.execute("USE apart")
        return objects(con, "memory")


def of_every_version() -> dict[tuple[str, str, str], str]:
    """Return the definitions of all objects of a store of any schema version, by (kind, schema, name)."""
    return {
        key: text
        for key, text in own_objects(len(MIGRATIONS)).made.items()
        if key[0] == "schema" or key[2] == _VERSIONS
    }


def difference_text(found: Objects, version: int) -> str:
    """Describe how a store differs from what gpuctl creates; empty if it does not."""
    differences = list(_differences(found, own_objects(version)))
    more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
    return "; ".join(differences[:_SHOWN]) + more


def _differences(found: Objects, own: Objects) -> Iterator[str]:
    for kind, schema, name in sorted(found.made.keys() - own.made.keys()):
        yield f"a {kind} that gpuctl did not make: {name if schema in {'', 'main'} else f'{schema}.{name}'}"
    for kind, _, name in sorted(own.made.keys() - found.made.keys()):
        yield f"no {kind} {name}"
    for kind, schema, name in sorted(own.made.keys() & found.made.keys()):
        if found.made[kind, schema, name] != own.made[kind, schema, name]:
            columns = list(_columns(name, found, own))
            yield from columns
            if not columns:
                yield f"{kind} {name} has another definition (its defaults, constraints or computed columns)"


def _columns(table: str, found: Objects, own: Objects) -> Iterator[str]:
    there = {column: kind for (name, column), kind in found.columns.items() if name == table}
    expected = {column: kind for (name, column), kind in own.columns.items() if name == table}
    for column in sorted(there.keys() | expected.keys()):
        if column not in there:
            yield f"no column {column} in {table}"
        elif column not in expected:
            yield f"a column that gpuctl did not make: {table}.{column}"
        elif there[column] != expected[column]:
            yield f"column {table}.{column} is {there[column]}, expected {expected[column]}"
