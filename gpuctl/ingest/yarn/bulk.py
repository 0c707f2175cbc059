"""Reads the records that make up most of what is worth reading of a ResourceManager's log, many at a time.

Whatever is not understood here is handed back and read one by one by `gpuctl.ingest.formats.yarn_rm_log`, which
states what is wrong with it. Both ways give the same facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.yarn.facts import APP_STATES, ATTEMPT_STATES, STAGES, host
from gpuctl.ingest.yarn.machines import Machine
from gpuctl.ingest.yarn.resources import gpus_of_extras, read_resource

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.ingest.core.format import Sink

MARKS = (
    *(b" Container Transitioned from ", b" State change from ", b"Assigned container ", b"USER="),
    b"Sending NMToken for nodeId : ",
)
"""Beginnings of the messages that are read here."""

_APP = r"(?<app>[0-9]{1,19}_[0-9]{4,10})"
_CONTAINER = rf"(?<container>container_(?:e[0-9]{{1,9}}_)?{_APP}_(?<nth>[0-9]{{2,6}})_[0-9]{{6,18}})"
_EXTRA = r"(?:, [A-Za-z0-9_./-]+: ?[0-9]+[A-Za-z0-9_]*)*"
_RESOURCE = (
    r"<memory:(?<mem_mb>[0-9]{1,15})(?:, max memory:[0-9]+)?, vCores:(?<cpus>[0-9]{1,9})(?:, max vCores:[0-9]+)?"
    rf"(?<inside>{_EXTRA})>(?<outside>{_EXTRA})"
)
_TRANSITION = (
    rf"^{_CONTAINER} Container Transitioned from [A-Z]+ to "
    r"(?<to>NEW|RESERVED|ALLOCATED|ACQUIRED|RUNNING|COMPLETED|RELEASED|EXPIRED|KILLED)$"
)
_APP_CHANGE = (
    rf"^application_{_APP} State change from (?<before>[A-Z_]+) to (?<to>{'|'.join(APP_STATES)})"
    r"(?: on event ?= ?(?<event>[A-Za-z0-9_]+))?$"
)
_ATTEMPT_CHANGE = (
    rf"^appattempt_{_APP}_(?<nth>[0-9]{{6,9}}) State change from [A-Z_]+ to (?<to>{'|'.join(ATTEMPT_STATES)})"
    r"(?: on event ?= ?(?<event>[A-Za-z0-9_]+))?$"
)
_ASSIGNED = (
    rf"^Assigned container {_CONTAINER} of capacity {_RESOURCE}"
    r" on host (?<address>\S+?:[0-9]+), which has [0-9]+ containers, (?<rest><memory.*)$"
)
_AUDITED = (
    r"^USER=[^\t]*(?:\tIP=[^\t]*)?\tOPERATION=AM (?<what>Allocated|Released) Container\tTARGET=[^\t]*\tRESULT=SUCCESS"
    rf"\tAPPID=[^\t]*(?:\tAPPATTEMPTID=[^\t]*)?\tCONTAINERID={_CONTAINER}(?:\tRESOURCE={_RESOURCE})?"
    r"(?:\t(?:QUEUENAME|CALLERCONTEXT|CALLERSIGNATURE|NODELABEL)=[^\t]*)*$"
)
_MASTERS = r"^USER=[^\t]*(?:\tIP=[^\t]*)?\tOPERATION=(?:Register|Unregister) App Master\t.*\tRESULT=SUCCESS\t"
_TOKEN = rf"^Sending NMToken for nodeId : (?<address>\S+) for container : {_CONTAINER}$"
_ENDS = ("COMPLETED", "RELEASED", "EXPIRED", "KILLED")
_OVER = ("FINAL_SAVING", "FINISHED", "FAILED", "KILLED")
_ROWS = 300_000


class Bulk:
    """Facts from many records at once.

    Args:
        sink: where they go.
        machines: what nodes offer is noted there.
    """

    def __init__(self, sink: Sink, machines: dict[str, Machine]) -> None:
        self._sink = sink
        self._machines = machines
        self._frames: list[pl.DataFrame] = []
        self._rows = 0
        self._readers = (self._transitions, self._changes, self._assigned, self._audited, self._tokens)

    def take(self, kind: int, records: pl.DataFrame) -> pl.Series:
        """Read records of one kind.

        Args:
            kind: the number of their mark in `MARKS`.
            records: ``millis`` of their dates, and ``text`` of their messages (NULL: not UTF-8).

        Returns:
            for each of them, whether it was understood.
        """
        return self._readers[kind](records)

    def flush(self) -> None:
        """Write what has been gathered."""
        import polars as pl

        of_containers = [frame for frame in self._frames if "container" in frame.columns]
        others = [frame for frame in self._frames if "container" not in frame.columns]
        if of_containers:
            others.append(_condensed(pl.concat(of_containers, how="diagonal")))
        if others:
            self._sink.insert("yarn_facts", pl.concat(others, how="diagonal"))
        self._frames, self._rows = [], 0

    def _transitions(self, records: pl.DataFrame) -> pl.Series:
        import polars as pl

        found, known = _read(records, _TRANSITION)
        to = pl.col("to")
        self._add(
            found.filter(~to.is_in(["NEW", "ACQUIRED"])).group_by("container"),
            "state",
            launch_ts=_at(to == "RESERVED"),
            allocated_ts=_at(to == "ALLOCATED"),
            running_ts=_at(to == "RUNNING"),
            end_ts=_at(to.is_in(_ENDS)),
            state=to.filter(to.is_in(_ENDS)).min(),
            **_keys(),
        )
        return known

    def _changes(self, records: pl.DataFrame) -> pl.Series:
        import polars as pl

        to = pl.col("to")
        live = (pl.col("event") != "RECOVER").fill_null(value=True)
        latest = to.get(to.replace_strict(STAGES, return_dtype=pl.Int64).arg_max())
        apps, app_known = _read(records, _APP_CHANGE, with_attempt=False)
        self._add(
            apps.group_by("job"),
            "state",
            submit_ts=_at(live & (pl.col("before") == "NEW")),
            end_ts=_at(live & to.is_in(_OVER)),
            state=latest,
        )
        attempts, attempt_known = _read(records, _ATTEMPT_CHANGE)
        self._add(
            attempts.group_by("job", "attempt"),
            "state",
            submit_ts=_at(live & (to == "SUBMITTED")),
            allocated_ts=_at(live & (to == "ALLOCATED_SAVING")),
            launch_ts=_at(live & (to == "LAUNCHED")),
            running_ts=_at(live & (to == "RUNNING")),
            end_ts=_at(live & to.is_in(_OVER)),
            state=latest,
        )
        return app_known | attempt_known

    def _assigned(self, records: pl.DataFrame) -> pl.Series:
        import polars as pl

        found, known = _read(records, _ASSIGNED)
        sized = _with_gpus(_with_machine(found))
        one = {name: pl.col(name).min() for name in ("gpus", "cpus", "mem_mb", "machine")}
        self._add(sized.group_by("container"), "state", **one, **_keys())
        # what is used and what is left make up the whole; there are few different ones
        for machine, rest in sized.drop_nulls("machine").select("machine", "rest").unique().iter_rows():
            self._offer(machine, rest)
        return known

    def _offer(self, machine: str, rest: str) -> None:
        used = read_resource(rest)
        free = read_resource(rest, used[1] + len(" used and ")) if used else None
        if used is not None and free is not None:
            mem_mb, cpus, gpus = (a + b for a, b in zip(used[0], free[0], strict=True))
            self._machines.setdefault(machine, Machine()).offers(int(mem_mb), int(cpus), gpus)

    def _audited(self, records: pl.DataFrame) -> pl.Series:
        import polars as pl

        found, known = _read(records, _AUDITED)
        what = pl.col("what")
        sized = _with_gpus(found)
        one = {name: pl.col(name).min() for name in ("gpus", "cpus", "mem_mb")}
        self._add(
            sized.group_by("container"),
            "audit",
            allocated_ts=_at(what == "Allocated"),
            end_ts=_at(what == "Released"),
            **one,
            **_keys(),
        )
        # that a master came and went is stated by the state changes as well
        return known | records["text"].str.contains(_MASTERS).fill_null(value=False)

    def _tokens(self, records: pl.DataFrame) -> pl.Series:
        import polars as pl

        found, known = _read(records, _TOKEN)
        groups = _with_machine(found).group_by("container")
        self._add(groups, "state", machine=pl.col("machine").min(), **_keys())
        return known

    def _add(self, groups: pl.dataframe.group_by.GroupBy, origin: str, **fields: pl.Expr) -> None:
        import polars as pl

        frame = groups.agg(**fields)
        if frame.height:
            self._frames.append(frame.with_columns(origin=pl.lit(origin), local=pl.lit(value=True)))
            self._rows += frame.height
        if self._rows >= _ROWS:
            self.flush()


def _condensed(facts: pl.DataFrame) -> pl.DataFrame:
    """One row for each container and kind of place, and none of an audit line that shows what state lines show.

    Of rows of one rank and source the least values count, and state lines come before audit lines: so nothing is lost.
    """
    import polars as pl

    names = ("container", "origin", "job", "attempt", "local")
    fields = [name for name in facts.columns if name not in names]
    rows = facts.group_by("container", "origin").agg(pl.col(names[2:]).first(), pl.col(fields).min())
    stated = rows.filter(pl.col("origin") == "state").select("container", pl.col(fields).name.suffix("_stated"))
    joined = rows.join(stated, on="container", how="left")
    news = [pl.col(name).is_not_null() & pl.col(f"{name}_stated").is_null() for name in fields]
    return joined.filter((pl.col("origin") == "state") | pl.any_horizontal(news)).select(*names, *fields)


def _keys() -> dict[str, pl.Expr]:
    import polars as pl

    return {"job": pl.col("job").first(), "attempt": pl.col("attempt").first()}


def _read(records: pl.DataFrame, pattern: str, *, with_attempt: bool = True) -> tuple[pl.DataFrame, pl.Series]:
    """The groups of a pattern for the records that it fits, with ``ts``, ``job`` and ``attempt``; and which it fits."""
    import polars as pl

    frame = records.with_columns(pl.col("text").str.extract_groups(pattern)).unnest("text")
    frame = frame.with_columns(
        ts=pl.col("millis").cast(pl.Datetime("ms")),
        job="application_" + pl.col("app"),
        **({"attempt": pl.col("nth").cast(pl.Int32) - 1} if with_attempt else {}),
    )
    known = frame["app"].is_not_null()
    if with_attempt:
        known &= (frame["attempt"] >= 0).fill_null(value=False)
    return frame.filter(known), known


def _with_machine(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    names = {address: host(address) for address in frame["address"].unique().to_list()}
    return frame.with_columns(machine=pl.col("address").replace_strict(names, default=None, return_dtype=pl.String))


def _with_gpus(frame: pl.DataFrame) -> pl.DataFrame:
    """Sizes as numbers; GPUs are read once for each way that they are written in."""
    import polars as pl

    extras = pl.col("inside") + pl.col("outside")
    written = frame.select(extras.unique().drop_nulls().alias("extras"))["extras"].to_list()
    gpus = {text: gpus_of_extras(text) for text in written}
    return frame.with_columns(
        gpus=extras.replace_strict(gpus, default=None, return_dtype=pl.Float64),
        mem_mb=pl.col("mem_mb").cast(pl.Int64),
        cpus=pl.col("cpus").cast(pl.Int32),
    )


def _at(holds: pl.Expr) -> pl.Expr:
    """The earliest of the times at which something holds."""
    import polars as pl

    return pl.col("ts").filter(holds).min()
