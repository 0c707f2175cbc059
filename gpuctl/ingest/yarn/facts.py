"""Gathers one source's facts on applications, attempts and containers as rows of ``yarn_facts``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.ingest.yarn.ids import attempt_id, container_id, is_application

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

FIELDS = {
    "name": "text",
    "user": "text",
    "queue": "text",
    "state": "text",
    "final_status": "text",
    "priority": "long",
    "submit_ts": "time",
    "launch_ts": "time",
    "allocated_ts": "time",
    "running_ts": "time",
    "end_ts": "time",
    "gpus": "real",
    "cpus": "whole",
    "mem_mb": "long",
    "gpu_seconds": "real",
    "machine": "text",
    "is_master": "truth",
    "exit_code": "whole",
    "reason": "text",
}
"""Columns of ``yarn_facts`` that a source may fill, and their kinds. Times: milliseconds since 1970.

``launch_ts`` of a container is when room for it was reserved on a machine. The state RUNNING of a container is
identified by the ResourceManager's list of those that an attempt holds.
"""
NAME, USER, QUEUE, STATE, FINAL_STATUS, PRIORITY, SUBMIT, LAUNCH, ALLOCATED, RUNNING = range(10)
END, GPUS, CPUS, MEM, GPU_SECONDS, MACHINE, IS_MASTER, EXIT_CODE, REASON = range(10, len(FIELDS))

SPARK, HISTORY = "spark", "history"
LOCAL = {
    **{"summary": False, "rest": False, "ats": False, "epoch": False, "state": True, "audit": True, "nm": True},
    **{SPARK: False, HISTORY: False},
}
"""Kinds of places that facts on applications come from, and whether their times are of the host's own clock.

``summary``: ApplicationSummary lines; ``rest``: answers of the ResourceManager; ``ats``: of the timeline server;
``epoch``: epoch times within log lines; ``state``: log lines on states and allocations; ``audit``: of RMAuditLogger;
``nm``: of a NodeManager's log; ``spark``, ``history``: what an application itself wrote, Spark's event log or
MapReduce's job history. Facts on machines and on the ResourceManager itself: `gpuctl.ingest.yarn.events`.
"""
APP_STATES = (
    *("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "KILLING", "FINAL_SAVING", "FINISHING"),
    *("FINISHED", "FAILED", "KILLED"),
)
"""States of an application, each later than those before it; so are those of an attempt."""
ATTEMPT_STATES = (
    *("NEW", "SUBMITTED", "SCHEDULED", "ALLOCATED_SAVING", "ALLOCATED", "LAUNCHED_UNMANAGED_SAVING", "LAUNCHED"),
    *("RUNNING", "FINAL_SAVING", "FINISHING", "FINISHED", "FAILED", "KILLED"),
)
STAGES = {**{s: 10 * i for i, s in enumerate(ATTEMPT_STATES)}, "NEW_SAVING": 5, "ACCEPTED": 20, "KILLING": 75}
"""How late each state is; that of an application and that of an attempt are not compared."""
NO_ID = "not an id of an application, attempt or container (line cut off?)"
_FLUSH_AT = 100_000

Row = list[Any]


class Facts:
    """Rows of facts that were gathered and not yet written, one for each (kind of place, thing).

    Args:
        sink: where they go.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.many = False
        """Whether it is time to write what has been gathered."""
        self._count = 0
        self._tables: dict[str, dict[str, Row]] = {origin: {} for origin in LOCAL}

    def row(self, origin: str, entity: str) -> Row:
        """Return the row of an application, attempt or container, indexed by the positions in `FIELDS`.

        Args:
            origin: one of `LOCAL`.
            entity: the id as YARN writes it.

        Raises:
            RowError: this is not such an id.
        """
        table = self._tables[origin]
        row = table.get(entity)
        if row is None:
            _keys(entity)
            row = table[entity] = [None] * len(FIELDS)
            self._count += 1
            self.many = self._count >= _FLUSH_AT
        return row

    def flush(self) -> None:
        """Write what has been gathered; of what is added to later there will be a second row."""
        import pyarrow as pa

        if self._count:
            tables = [_arrow(origin, table) for origin, table in self._tables.items() if table]
            self._sink.insert("yarn_facts", pa.concat_tables(tables))
        for table in self._tables.values():
            table.clear()
        self._count, self.many = 0, False


def earliest(row: Row, field: int, millis: int | None) -> None:
    """Take a time if it is before the one that is known."""
    if millis is not None and (row[field] is None or millis < row[field]):
        row[field] = millis


def least(row: Row, field: int, value: Any) -> None:
    """Take a value unless it is empty; of different ones the least counts, so that their order does not matter."""
    if value is None or value == "":
        return
    if isinstance(value, str):
        value = value.encode("utf-8", "replace").decode()
    if row[field] is None or value < row[field]:
        row[field] = value


def most(row: Row, field: int, value: float | None) -> None:
    """Take a number if it is greater than the one that is known."""
    if value is not None and (row[field] is None or value > row[field]):
        row[field] = value


def advance(row: Row, state: str) -> None:
    """Take a state if it is later than the one that is known."""
    if row[STATE] is None or STAGES[state] > STAGES[row[STATE]]:
        row[STATE] = state


def epoch_millis(value: object) -> int | None:
    """Return a time of a JSON answer, a number or (2.10) a text of digits; None for 0 and less, which stand for none.

    Raises:
        RowError: it is not a time in milliseconds before the year 2200.
    """
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value < LATEST_S * 1000:
        raise RowError("a time is not milliseconds since 1970")
    return int(value) if value > 0 else None


def host(address: str) -> str | None:
    """Return the host of ``host:port``; None if there is none."""
    name, colon, port = address.rpartition(":")
    name = name if colon and port.isdigit() else address
    return name if name and name.isprintable() and " " not in name and name not in {"N/A", "null"} else None


def _keys(entity: str) -> tuple[str, int | None, str | None]:
    container = container_id(entity)
    if container is not None:
        return container.job, container.attempt, entity
    attempt = attempt_id(entity)
    if attempt is not None:
        return attempt.job, attempt.attempt, None
    if is_application(entity):
        return entity, None, None
    raise RowError(NO_ID)


def _arrow(origin: str, table: dict[str, Row]) -> Any:
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "whole": pa.int32(),
        "long": pa.int64(),
        "real": pa.float64(),
        "truth": pa.bool_(),
        "time": pa.timestamp("ms"),
    }
    jobs, attempts, containers = zip(*map(_keys, table), strict=True)
    columns = {
        "job": pa.array(jobs, pa.string()),
        "attempt": pa.array(attempts, pa.int32()),
        "container": pa.array(containers, pa.string()),
        "origin": pa.repeat(origin, len(table)),
        "local": pa.repeat(pa.scalar(LOCAL[origin]), len(table)),
    }
    for (name, kind), cells in zip(FIELDS.items(), zip(*table.values(), strict=True), strict=True):
        columns[name] = pa.array(cells, types[kind])
    return pa.table(columns)
