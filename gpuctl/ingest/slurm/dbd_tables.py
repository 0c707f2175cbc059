"""The tables of slurmdbd other than jobs: names of its numbers, and node events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.slurm import dbd_names, dbd_sql

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from gpuctl.ingest.core.format import Sink

NAME_TABLES: dict[str, frozenset[str]] = {
    "tres_table": frozenset({"id", "type", "name"}),
    "qos_table": frozenset({"id", "name"}),
    "_assoc_table": frozenset({"id_assoc", "user", "acct"}),
}
"""The end of a table's name -> the columns that are read of it."""
EVENT_COLUMNS = frozenset({"node_name", "time_start", "time_end", "reason", "state"})

_WHOLE = re.compile(r"\d{1,19}", re.ASCII)
_PREFIX = "slurmdbd."


class Association(NamedTuple):
    """Whose jobs an association has."""

    user: str
    account: str


_DUMP_HEAD = 64 << 10


def only_names(head: bytes) -> bool:
    """Whether an SQL dump, of which this is the beginning, is seen to its end and has no other table than names.

    Such a dump is loaded before the jobs. A longer one may have jobs further on.
    """
    tables = dbd_sql.tables_in(head)
    return len(head) < _DUMP_HEAD and bool(tables) and all(table.endswith(tuple(NAME_TABLES)) for table in tables)


class Names:
    """Names of the numbers in one cluster's database.

    Those of files read before are in the store's ``settings``, so that tables written out one by one know each other.

    Args:
        sink: whose cluster it is.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._fresh: dict[str, str] = {}
        self.tres = dict(dbd_names.TRES)
        self._tres_warned = False
        self.qos: dict[str, str] = {}
        self.associations: dict[str, Association] = {}
        sql = "SELECT name, value FROM settings WHERE cluster = $cluster AND name LIKE 'slurmdbd.%' ORDER BY source"
        for name, value in sink.query(sql, {"cluster": sink.cluster}).rows():
            self._take(name, value)

    def add(self, table: str, cells: Mapping[str, str | None]) -> None:
        """Take one row of a table of `NAME_TABLES`.

        Raises:
            RowError: it has no number.
        """
        number = cells.get("id_assoc" if table == "_assoc_table" else "id") or ""
        if not _WHOLE.fullmatch(number):
            raise RowError("no whole number as id")
        if table == "tres_table":
            kind, name = cells.get("type") or "", cells.get("name") or ""
            self._put(f"tres.{number}", f"{kind}/{name}" if name else kind)
        elif table == "qos_table":
            self._put(f"qos.{number}", cells.get("name") or "")
        else:
            self._put(f"assoc.{number}", f"{cells.get('user') or ''}\t{cells.get('acct') or ''}")

    def store(self) -> None:
        """Write what was added into the store's ``settings``."""
        import polars as pl

        if self._fresh:
            names = [_PREFIX + name for name in self._fresh]
            rows = pl.DataFrame({"name": names, "value": list(self._fresh.values())})
            source = pl.lit(self._sink.source, pl.Int32)
            self._sink.insert("settings", rows.with_columns(cluster=pl.lit(self._sink.cluster), source=source))

    def name(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Put words in place of the numbers of TRES, QOS and associations in a frame of jobs.

        TRES with a number that nothing names become the empty text, a QOS likewise; a user without an association
        stays the number of the account on the system.
        """
        import polars as pl

        known = pl.col("Association").replace_strict(
            {number: a.user for number, a in self.associations.items()}, default=None, return_dtype=pl.String
        )
        accounts = {number: a.account for number, a in self.associations.items()}
        account = pl.col("Association").replace_strict(accounts, default=None, return_dtype=pl.String)
        qos = pl.col("QOS").replace_strict(self.qos, default="", return_dtype=pl.String)
        return frame.with_columns(
            *(self._tres(frame[column]) for column in ("ReqTRES", "AllocTRES")),
            QOS=qos,
            User=pl.when(known.is_not_null() & (known != "")).then(known).otherwise("User"),
            Account=pl.when(pl.col("Account") == "").then(account.fill_null("")).otherwise("Account"),
        ).drop("Association")

    def _tres(self, column: pl.Series) -> pl.Series:
        import polars as pl

        words = {text: self._tres_text(text) for text in column.unique()}
        return column.replace_strict(words, return_dtype=pl.String)

    def _tres_text(self, text: str) -> str:
        if not self._tres_warned:
            return ""  # a text without a GPU would state that there is none, and is unknown what a GPU's number is
        try:
            return dbd_names.tres_text(text, self.tres) or ""
        except ValueError:
            return text  # no list of TRES at all: whatever process reads it next states so

    def usage(self, column: pl.Series) -> pl.Series:
        """Put names in place of the numbers of TRES in what steps used; counts stay in bytes, ms and percent."""
        import polars as pl

        words = {text: self._usage_text(text) for text in column.unique()}
        return column.replace_strict(words, return_dtype=pl.String)

    def _usage_text(self, text: str) -> str:
        parts = (part.partition("=") for part in text.split(",") if part)
        return ",".join(
            f"{self.tres[int(number)]}={count}"
            for number, _, count in parts
            if _WHOLE.fullmatch(number) and _WHOLE.fullmatch(count) and int(number) in self.tres
        )

    def _put(self, name: str, value: str) -> None:
        self._fresh[name] = value
        self._take(_PREFIX + name, value)

    def _take(self, name: str, value: str) -> None:
        kind, _, number = name.removeprefix(_PREFIX).partition(".")
        if kind == "tres":
            self._tres_warned = True
            self.tres[int(number)] = value
        elif kind == "qos":
            self.qos[number] = value
        elif kind == "assoc":
            user, _, account = value.partition("\t")
            self.associations[number] = Association(user, account)


def read_event(cells: Mapping[str, str | None]) -> tuple[str, int, int | None, str, str | None] | None:
    """Read one row of ``event_table``: node, from, to (seconds since the epoch; None: not over), state, reason.

    Returns:
        None for a row about the cluster as a whole.

    Raises:
        RowError: it is not what such a row looks like.
    """
    numbers = {name: cells.get(name) or "0" for name in ("time_start", "time_end", "state")}
    if not all(_WHOLE.fullmatch(text) for text in numbers.values()):
        raise RowError("time_start, time_end or state is not a whole number")
    start, end, state = (int(numbers[name]) for name in ("time_start", "time_end", "state"))
    machine = cells.get("node_name") or ""
    if not machine:
        return None
    if not start:
        raise RowError("an event without a start")
    if not machine.isprintable():
        raise RowError("node_name contains unprintable characters")
    if 0 < end < start:
        raise RowError("an event that ends before it starts")
    return machine, start, end or None, dbd_names.node_state(state), cells.get("reason") or None
