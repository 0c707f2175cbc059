"""What several sources describe the same machines and partitions, put together without double rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gpuctl.slurm.machines import Machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpuctl.ingest.core.format import Sink

BATCH_ROWS = 50_000
_ARROW = {
    "text": ("string", None),
    "real": ("float64", None),
    "whole": ("int32", None),
    "ms": ("timestamp", "ms"),
    "s": ("timestamp", "s"),
}


class Rows:
    """Rows of one table, inserted in batches so that memory stays bounded.

    Args:
        sink: where they go.
        table: the table.
        kinds: column -> text | real | whole | wholes (a list) | s | ms (times since the epoch, UTC).
    """

    def __init__(self, sink: Sink, table: str, kinds: Mapping[str, str]) -> None:
        self._sink = sink
        self._table = table
        self._kinds = dict(kinds)
        self._rows: list[tuple[Any, ...]] = []

    def add(self, *cells: Any) -> None:
        """Take one row, its cells in the order of the columns."""
        self._rows.append(cells)
        if len(self._rows) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Insert what has not been inserted yet."""
        import pyarrow as pa

        if not self._rows:
            return
        rows, self._rows = self._rows, []
        cells = zip(*rows, strict=True)
        made = {name: pa.array(c, _type(kind)) for (name, kind), c in zip(self._kinds.items(), cells, strict=True)}
        made["cluster"] = pa.repeat(self._sink.cluster, len(rows))
        made["source"] = pa.repeat(pa.scalar(self._sink.source, pa.int32()), len(rows))
        self._sink.insert(self._table, pa.table(made))


def put_machines(sink: Sink, machines: Iterable[Machine], *, keep: bool = False) -> None:
    """Add nodes that the store does not know, and fill in what it did not know of the others.

    Args:
        sink: where they go.
        machines: several of one name are taken together, the later one's word counts.
        keep: what the store knows already stays; else the new word counts (None is no word).
    """
    wanted: dict[str, Machine] = {}
    for machine in machines:
        before = wanted.get(machine.machine)
        wanted[machine.machine] = machine if before is None else _over(machine, before)
    if not wanted:
        return
    rows = sink.query("SELECT machine FROM machines WHERE cluster = $cluster", {"cluster": sink.cluster})
    known = set(rows["machine"])
    _update([m for m in wanted.values() if m.machine in known], sink, keep=keep)
    _insert([m for m in wanted.values() if m.machine not in known], sink)


def put_partitions(sink: Sink, partitions: Mapping[str, str | None]) -> None:
    """Add partitions as queues, without a second row for those that jobs have made known, and bind their QOS.

    Args:
        sink: where they go.
        partitions: name -> the QOS whose limits hold for it as a whole, or None.
    """
    import polars as pl

    rows = sink.query("SELECT DISTINCT queue FROM queues WHERE cluster = $cluster", {"cluster": sink.cluster})
    known = set(rows["queue"])
    old = [name for name in partitions if name in known]
    fresh = sorted(name for name in partitions if name not in known)
    if old:
        sink.execute(
            """
            UPDATE queues SET qos = bound.qos
            FROM (SELECT unnest($queues::VARCHAR[]) AS queue, unnest($qos::VARCHAR[]) AS qos) AS bound
            WHERE queues.cluster = $cluster AND queues.queue = bound.queue
            """,
            {"cluster": sink.cluster, "queues": old, "qos": [partitions[name] for name in old]},
        )
    if fresh:
        columns = {"queue": fresh, "qos": pl.Series([partitions[name] for name in fresh], dtype=pl.String)}
        sink.insert("queues", pl.DataFrame(columns).with_columns(cluster=pl.lit(sink.cluster)))
    put_quotas(sink)


def put_members(sink: Sink, members: Iterable[tuple[str, str]], *, whole: Literal["queue", "machine"]) -> None:
    """Mark which nodes belong to which partitions.

    Args:
        sink: where that goes.
        members: (partition, node).
        whole: of what all members are stated: what the store had of those partitions, or of those nodes, goes.
    """
    import polars as pl

    pairs = sorted(set(members))
    if not pairs:
        return
    queues, machines = [queue for queue, _ in pairs], [machine for _, machine in pairs]
    column, complete = ("queue", queues) if whole == "queue" else ("machine", machines)
    sink.execute(
        f"DELETE FROM queue_machines WHERE cluster = $cluster AND {column} IN (SELECT unnest($complete::VARCHAR[]))",  # noqa: S608
        {"cluster": sink.cluster, "complete": sorted(set(complete))},
    )
    frame = pl.DataFrame({"queue": queues, "machine": machines})
    sink.insert("queue_machines", frame.with_columns(cluster=pl.lit(sink.cluster)))


def put_quotas(sink: Sink) -> None:
    """Set the quota of every partition with a QOS of its own to that QOS's limit on its jobs' GPUs together.

    Only a limit on GPUs of all types (``gres/gpu``) is taken, for only that bounds what the partition holds.
    """
    sink.execute(
        """
        UPDATE queues SET quota_gpus = found.gpus,
               quota_source = CASE WHEN found.gpus IS NOT NULL THEN 'configured' END
        FROM (
            SELECT q.queue, max_by(l.gpus, l.source) AS gpus
            FROM queues AS q
            LEFT JOIN gpu_limits AS l ON l.cluster = q.cluster AND l.scope = 'qos' AND l.qos = q.qos
                                         AND l.limit_kind = 'group' AND l.gpu_type IS NULL
            WHERE q.cluster = $cluster AND q.qos IS NOT NULL
            GROUP BY q.queue
        ) AS found
        WHERE queues.cluster = $cluster AND queues.queue = found.queue
        """,
        {"cluster": sink.cluster},
    )


def _over(new: Machine, old: Machine) -> Machine:
    return old._replace(**{name: cell for name, cell in new._asdict().items() if cell is not None})


def _insert(machines: Sequence[Machine], sink: Sink) -> None:
    import polars as pl

    if not machines:
        return
    frame = pl.DataFrame(
        {
            "machine": [m.machine for m in machines],
            "gpus_labelled": pl.Series([m.gpus for m in machines], dtype=pl.Int32),
            "gpu_type": pl.Series([m.gpu_type for m in machines], dtype=pl.String),
            "cpus": pl.Series([m.cpus for m in machines], dtype=pl.Int32),
            "mem_mb": pl.Series([m.mem_mb for m in machines], dtype=pl.Int64),
            "partition": pl.Series([m.partition for m in machines], dtype=pl.String),
            "rack": pl.Series([m.rack for m in machines], dtype=pl.String),
        }
    )
    sink.insert("machines", frame.with_columns(cluster=pl.lit(sink.cluster)))


def _update(machines: Sequence[Machine], sink: Sink, *, keep: bool) -> None:
    if not machines:
        return
    sink.execute(
        """
        UPDATE machines SET
            gpus_labelled = coalesce(CASE WHEN $keep THEN machines.gpus_labelled END, n.gpus, machines.gpus_labelled),
            gpu_type = coalesce(CASE WHEN $keep THEN machines.gpu_type END, n.gpu_type, machines.gpu_type),
            cpus = coalesce(CASE WHEN $keep THEN machines.cpus END, n.cpus, machines.cpus),
            mem_mb = coalesce(CASE WHEN $keep THEN machines.mem_mb END, n.mem_mb, machines.mem_mb),
            partition = coalesce(CASE WHEN $keep THEN machines.partition END, n.part, machines.partition),
            rack = coalesce(CASE WHEN $keep THEN machines.rack END, n.rack, machines.rack)
        FROM (
            SELECT unnest($machine::VARCHAR[]) AS machine, unnest($gpus::INTEGER[]) AS gpus,
                   unnest($gpu_type::VARCHAR[]) AS gpu_type, unnest($cpus::INTEGER[]) AS cpus,
                   unnest($mem_mb::BIGINT[]) AS mem_mb, unnest($partition::VARCHAR[]) AS part,
                   unnest($rack::VARCHAR[]) AS rack
        ) AS n
        WHERE machines.cluster = $cluster AND machines.machine = n.machine
        """,
        {
            "cluster": sink.cluster,
            "keep": keep,
            **{name: [getattr(m, name) for m in machines] for name in Machine._fields},
        },
    )


def _type(kind: str) -> Any:
    import pyarrow as pa

    if kind == "wholes":
        return pa.list_(pa.int32())
    name, unit = _ARROW[kind]
    return pa.timestamp(unit, "UTC") if unit else getattr(pa, name)()
