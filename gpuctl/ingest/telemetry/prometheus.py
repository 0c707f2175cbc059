"""Samples of Prometheus's metrics, series by series, into ``gpu_readings`` and ``gpu_events``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpuctl.ingest.telemetry import health
from gpuctl.ingest.telemetry.exporters import Metric, device, identity, metric_of, unused, whole
from gpuctl.ingest.telemetry.recorder import Identity, Recorder, cleaned, fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from gpuctl.ingest.core.format import Sink

_PLACE = ("machine", "gpu", "uuid", "instance")
NO_NAME = "no name of a metric: a result of avg() and its like; query the metric itself, e.g. DCGM_FI_DEV_GPU_UTIL"


class Series(NamedTuple):
    """A series that is read.

    Attributes:
        number: of its identity.
        metric: how its values are read.
        identity: of the GPU.
        text: in messages.
        name: of the metric.
        code: the XID that its label states.
    """

    number: int
    metric: Metric
    identity: Identity
    text: str
    name: str
    code: int | None


class Samples:
    """Takes samples by series and counts every one of them once."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._recorder = Recorder(sink, node_clock=False)
        self._last: dict[tuple[int, str, int | None], health.Last] = {}

    def series(self, labels: Mapping[str, str], text: str = "") -> Series | str:
        """The series of some labels, or why its samples are not read."""
        metric = metric_of(labels.get("__name__"))
        if metric is None:
            name = labels.get("__name__")
            return NO_NAME if name is None else f"no metric of a GPU's activity that gpuctl reads: {name}"
        if why := unused(metric, labels):
            return why
        found = identity(metric, labels)
        if mapped := device(labels, found):
            self._recorder.device(mapped)
        name = labels["__name__"]
        return Series(self._recorder.number(found), metric, found, text or name, name, whole(labels.get("xid")))

    def add(self, series: Series, rows: pl.DataFrame, line_no: int) -> None:
        """Take the samples of a series: ``ts`` (microseconds), ``value`` (null where it is no number)."""
        import polars as pl

        self._sink.seen(rows.height)
        column, scale = series.metric.column, series.metric.scale
        if column == "xid":
            self._xids(series, health.known(rows))
        elif column == "fault":
            self._faults(series, health.known(rows))
        elif column not in {"info", "occupancy"}:
            rows = rows.with_columns(cleaned(column, pl.col("value") * scale))
            wrong = rows.filter(fault(column, pl.col("value")) | pl.col("ts").is_null())
            for ts, value in wrong.select("ts", "value").iter_rows():
                self._sink.reject(line_no, f"a value of {series.text} that cannot be right", f"[{ts}, {value}]")
            rows = rows.filter(~fault(column, pl.col("value")) & pl.col("ts").is_not_null())
            self._recorder.add(rows.select("ts", pl.lit(series.number).alias("series"), pl.col("value").alias(column)))
        self._sink.loaded(rows.height)

    def refuse(self, why: str, rows: int, line_no: int, raw: str) -> None:
        """Reject the samples of a series that is not read: one row of the ledger for each series."""
        del rows
        self._sink.seen()
        self._sink.reject(line_no, why, raw)

    def finish(self) -> None:
        """Write what has not been written yet."""
        self._recorder.finish()

    def _xids(self, series: Series, rows: pl.DataFrame) -> None:
        """Events: the gauge of the last XID changes to another one; its first value is history."""
        events = []
        key = series.number, series.name, series.code
        last = self._last.get(key)
        for ts, value in rows.iter_rows():
            if last is not None and value not in {last.value, 0}:
                events.append(_event(series, "xid", ts, last.ts) | {"code": int(value), "origin": "gauge"})
            last = health.Last(ts, value)
        if last is not None:
            self._last[key] = last
        self._recorder.event(events)

    def _faults(self, series: Series, rows: pl.DataFrame) -> None:
        """Events: a counter rises, a gauge becomes true."""
        signal, key = health.SIGNALS[series.name], (series.number, series.name, series.code)
        if rows.is_empty() or (signal.name == "xid" and series.code is None):
            return
        found = health.events(rows, signal, self._last.get(key))
        self._last[key] = health.Last(*rows.row(-1))
        more = {"code": series.code, "origin": "counter"}
        self._recorder.event(
            [_event(series, signal.name, ts, since) | more | {"value": value} for ts, since, value in found.iter_rows()]
        )


def _event(series: Series, signal: str, ts: int, since: int) -> dict[str, object]:
    place = {name: getattr(series.identity, name) for name in _PLACE}
    return {"ts": ts, "since_ts": since, "signal": signal} | place
