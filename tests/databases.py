"""Has stores attached to databases that are there already: to make one, DuckDB registers 3,000 functions (14 ms).

A store is a file that the program attaches to an empty database in memory, which it makes for it alone. The tests open
thousands of stores: here the database of a store that was closed serves the next one, through a connection of its own,
which has temporary tables and settings of its own. What it may reach is fixed as the program fixes it, but once: the
folders of tests, and nothing else (a test of what a store may reach asks for `own_databases`). Whatever cannot be had
so has a database of its own: a store elsewhere, one with a lake, one that cannot be opened, one whose statements change
other settings than those that are put back.

Forks of the server (tests/warm.py) take one that their parent made: it is the fork's own, and nothing is fixed in it.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from typing import Any

import duckdb

from gpuctl.store import database

as_the_program_does = database._database
_FIXES = "SET enable_external_access"
_SETTING = re.compile(r"\s*(SET|RESET|PRAGMA|LOAD|INSTALL|CREATE\s+(PERSISTENT\s+)?SECRET)\b", re.IGNORECASE)
_PUT_BACK = re.compile(
    r"(SET memory_limit = |(SET threads = 1|RESET threads)$|SET TimeZone = 'UTC'$|SET enable_progress_bar = false$"
    r"|SET preserve_insertion_order = false$|SET enable_external_access = false$)"
)
_free: list[duckdb.DuckDBPyConnection] = []
_mine = os.getpid()
_MOST = 4
_of_the_parent: list[duckdb.DuckDBPyConnection] = []
_kept: list[duckdb.DuckDBPyConnection] = []
QUOTE = "'"


def share() -> None:
    """Have the stores of this process share databases, one at a time each."""
    database._database = Lent  # type: ignore[assignment]


def hand_down(count: int) -> None:
    """Make databases for forks of this process, which has no thread of theirs; a fork uses each of them once."""
    for _ in range(count):
        config = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        _of_the_parent.append(as_the_program_does({**config, "threads": "1", "async_threads": "0"}))
    database._database = _inherited  # type: ignore[assignment]


def make() -> None:
    """Have each store make a database for itself, as the program does."""
    database._database = as_the_program_does


class Lent:
    """A connection to a database that other stores were attached to before, as long as that makes no difference.

    Args:
        config: what the program gives its own database.
    """

    def __init__(self, config: dict[str, str]) -> None:
        self._config = config
        self._attached: list[str] = []
        self._fixed = False
        self._whole = True
        self._base: duckdb.DuckDBPyConnection | None = None
        self._con = self._lend() if os.getpid() == _mine else as_the_program_does(config)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)

    def execute(self, sql: str, params: Any = None) -> Any:
        if self._base is not None:
            if not self._fixed:
                return self._before_it_is_fixed(sql)
            if _SETTING.match(sql) and not _PUT_BACK.match(sql):
                self._whole = False
        return self._con.execute(sql, params) if params else self._con.execute(sql)

    def _before_it_is_fixed(self, sql: str) -> Any:
        self._fixed = sql.startswith(_FIXES)
        if self._fixed or sql.startswith(("ATTACH ", "DETACH ")):
            try:
                done = self._con.execute(sql)
                self._attached.append(sql)
                return done
            except duckdb.Error:
                self._whole = False
        self.close()
        self._con, self._base = as_the_program_does(self._config), None
        for each in self._attached:
            self._con.execute(each)
        return self._con.execute(sql)

    def _lend(self) -> duckdb.DuckDBPyConnection:
        self._base = _free.pop() if _free else _fixed(self._config)
        con = self._base.cursor()
        con.execute(f"SET memory_limit = '{self._config['memory_limit']}'")
        return con

    def close(self) -> None:
        """Close the file; let the next store have the database, unless something in it is not as it was."""
        self._con.close()
        base, self._base = self._base, None
        if base is None:
            return
        with suppress(duckdb.Error):
            base.execute("DETACH DATABASE IF EXISTS trace")
            if self._whole and len(_free) < _MOST:
                base.execute("RESET threads")
                _free.append(base)
                return
        base.close()


class Inherited:
    """A connection to a database that the parent made; it stays until the process ends, which costs less."""

    def __init__(self, config: dict[str, str]) -> None:
        self._base = _of_the_parent.pop()
        _kept.append(self._base)
        for name in ("memory_limit", "temp_directory"):
            self._base.execute(f"SET {name} = '{config[name].replace(QUOTE, QUOTE * 2)}'")
        for name in ("threads", "async_threads"):
            self._base.execute(f"RESET {name}")
        self._con = self._base.cursor()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)

    def close(self) -> None:
        """Close the file."""
        self._con.close()
        self._base.execute("DETACH DATABASE IF EXISTS trace")


def _inherited(config: dict[str, str]) -> duckdb.DuckDBPyConnection | Inherited:
    return Inherited(config) if _of_the_parent else as_the_program_does(config)


def _fixed(config: dict[str, str]) -> duckdb.DuckDBPyConnection:
    con = as_the_program_does({**config, "temp_directory": f"{tempfile.gettempdir()}/gpuctl-spilled-{_mine}"})
    con.execute(f"SET allowed_directories = ['{tempfile.gettempdir()}/']")
    con.execute("SET enable_external_access = false")
    return con
