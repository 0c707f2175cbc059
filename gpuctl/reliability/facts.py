"""Facts of a cluster's reliability: attempts with their causes, incidents, nodes, and how long each was seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import polars as pl

from gpuctl.reliability import causes, incidents, outages, runs, xids
from gpuctl.reliability.choices import DEFAULT, Choices
from gpuctl.reliability.intervals import DAY, Held, on_rows, union


@dataclass(frozen=True)
class Facts:
    """Times are seconds since `begin`.

    Attributes:
        attempts: one row an attempt that held something, with its cause, its run and its incident; ``entered_s``: how
            long it had run before the window, ``ended_by``: its cause, also where it ended after the window.
        places: ``row``, ``node``, ``gpus``, ``start_s``, ``end_s``.
        nodes: in the order of their numbers: ``machine``, ``gpu_type``, ``gpus``, ``rack``, ``installed_s``,
            ``since_s`` (from when it is at risk).
        outages: see `gpuctl.reliability.outages.find`.
        xids: see `gpuctl.reliability.xids.events`.
        incidents: one row a fault that ended attempts: ``incident``, ``at_s``, ``node``, ``shared``, ``cause``,
            ``component``, ``attempts``.
        options: of submissions.
        choices: of the user.
        begin: begin of the window, seconds since 1970.
        until: its end.
        has_events: whether any node event was loaded.
    """

    attempts: pl.DataFrame
    places: pl.DataFrame
    nodes: pl.DataFrame
    outages: pl.DataFrame
    xids: pl.DataFrame
    incidents: pl.DataFrame
    options: pl.DataFrame
    choices: Choices
    begin: float
    until: float
    has_events: bool

    @cached_property
    def busy_spans(self) -> pl.DataFrame:
        """When at least one attempt held GPUs of each node: ``node``, ``start``, ``end``."""
        return union(*(self.places[name].to_numpy() for name in ("node", "start_s", "end_s")))

    @cached_property
    def busy_days(self) -> np.ndarray:
        """Their length in days, by node."""
        node, start, end = (self.busy_spans[name].to_numpy() for name in ("node", "start", "end"))
        days: np.ndarray = np.bincount(node, weights=end - start, minlength=self.nodes.height) / DAY
        return days

    @cached_property
    def held_nodes(self) -> Held:
        """Their length until any instant, in seconds."""
        node, start, end = (self.busy_spans[name].to_numpy() for name in ("node", "start", "end"))
        return Held(node, start, end, np.ones(len(node)))

    @cached_property
    def up_days(self) -> np.ndarray:
        """Days of the window less the outages of each node."""
        rows = self.outages
        away = np.bincount(
            rows["node"].to_numpy(), weights=(rows["to_s"] - rows["from_s"]).to_numpy(), minlength=self.nodes.height
        )
        days: np.ndarray = np.maximum(self.at_risk_s(0.0, self.until) - away, 0) / DAY
        return days

    def at_risk_s(self, begin: float, end: float) -> np.ndarray:
        """Seconds from `begin` to `end` in which each node was part of the cluster."""
        seconds: np.ndarray = np.maximum(end - np.maximum(self.nodes["since_s"].to_numpy(), begin), 0.0)
        return seconds

    @cached_property
    def in_several(self) -> np.ndarray:
        """Whether each attempt is of a run of several attempts."""
        run = self.attempts["run"].to_numpy()
        several: np.ndarray = np.bincount(run)[run] > 1
        return several

    @cached_property
    def failures_of_nodes(self) -> pl.DataFrame:
        """Unplanned outages that began in the window."""
        return self.outages.filter(~pl.col("planned") & ~pl.col("earlier"))

    @cached_property
    def unclear(self) -> pl.DataFrame:
        """Attempts on GPUs whose cause is unknown: infrastructure may have ended them."""
        return self.attempts.filter((pl.col("cause") == causes.UNKNOWN) & (pl.col("gpus") > 0))

    @property
    def gpus_per_node(self) -> float:
        """The most usual number of GPUs of a node."""
        return float(self.nodes["gpus"].mode().max() or 1)  # type: ignore[arg-type]

    def sizes(self) -> pl.DataFrame:
        """By GPUs: attempts, hours run, interruptions by infrastructure, those and the unknown ones."""
        infra = pl.col("cause").is_in(causes.INFRASTRUCTURE)
        return (
            self.attempts.filter(pl.col("gpus") > 0)
            .group_by("gpus")
            .agg(
                attempts=pl.len(),
                nodes=pl.col("width").median(),
                run_h=(pl.col("end_s") - pl.col("start_s")).sum() / 3600,
                interruptions=infra.sum(),
                interruptions_high=(infra | (pl.col("cause") == causes.UNKNOWN)).sum(),
            )
            .sort("gpus")
        )

    def months(self) -> list[tuple[str, float, float]]:
        """Calendar months (UTC) of the window: name, begin, end."""
        found, at = [], self.begin
        while at < self.begin + self.until:
            day = datetime.fromtimestamp(at, UTC)
            following = datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC).timestamp()
            end = min(following, self.begin + self.until)
            found.append((f"{day:%Y-%m}", at - self.begin, end - self.begin))
            at = following
        return found


NO_COUNTERS = pl.DataFrame(schema={"machine": pl.String, "ts_s": pl.Float64, "signal": pl.String})
LEAD_S = DAY
"""The window may begin so many seconds before the first submission, with the cluster's registration or first event."""


def _begin(first: float, registered: float | None, events: pl.DataFrame, xid_lines: pl.DataFrame) -> float:
    """When the cluster's log begins: an idle cluster without jobs is observed, too.

    An event long before the first submission does not count: accounting may have been cut there.
    """
    signs = [*events["from_s"].to_list(), *xid_lines["ts_s"].to_list(), *([] if registered is None else [registered])]
    return min((at for at in signs if first - LEAD_S <= at < first), default=first)


def _since(nodes: pl.DataFrame, places: pl.DataFrame, down: pl.DataFrame) -> np.ndarray:
    """From when each node is at risk: its installation, unless jobs or events are on it before; 0: the begin."""
    since = nodes["installed_s"].fill_null(0.0).to_numpy().astype(float).clip(min=0.0)
    for rows, column in ((places, "start_s"), (down, "from_s")):
        np.minimum.at(since, rows["node"].to_numpy(), rows[column].to_numpy())
    return since.clip(min=0.0)


def _held(places: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """What attempts held on nodes: see `Facts.places`; in the order of rows and nodes."""
    at = places.join(attempts.select("number", "row"), on="number", maintain_order="left").select("row", "node", "gpus")
    row, node = at["row"].to_numpy().astype(np.int64), at["node"].to_numpy()
    if ((row[1:] < row[:-1]) | ((row[1:] == row[:-1]) & (node[1:] < node[:-1]))).any():
        at = at.sort("row", "node")
    return at.with_columns(attempts[name].gather(at["row"]) for name in ("start_s", "end_s"))


def gather(
    *,
    attempts: pl.DataFrame,
    places: pl.DataFrame,
    nodes: pl.DataFrame,
    events: pl.DataFrame,
    xid_lines: pl.DataFrame,
    options: pl.DataFrame,
    counters: pl.DataFrame = NO_COUNTERS,
    registered: float | None = None,
    choices: Choices = DEFAULT,
) -> Facts:
    """Find causes, runs and incidents.

    Args:
        attempts: see ``queries/base/reliability_attempts.sql``, with ``reason`` and ``user_reason`` of logs; times in
            seconds since 1970, as in all of these.
        places: ``number``, ``machine``, ``gpus``.
        nodes: see ``queries/base/reliability_nodes.sql``.
        events: ``machine``, ``from_s``, ``to_s``, ``state``, ``reason``.
        xid_lines: ``machine``, ``ts_s``, ``device``, ``xid``, ``message``.
        options: ``job``, ``option``, ``value``.
        counters: faults of GPUs that telemetry shows: ``machine``, ``ts_s``, ``signal``.
        registered: when the cluster registered with its accounting.
        choices: of the user.
    """
    begin = _begin(float(attempts["queued_s"].min()), registered, events, xid_lines)  # type: ignore[arg-type]
    end = float(attempts["end_s"].max())  # type: ignore[arg-type]
    code = nodes.select("machine").with_row_index("node").with_columns(pl.col("node").cast(pl.Int64))
    a = attempts.with_row_index("row").with_columns(pl.col("queued_s", "eligible_s", "start_s", "end_s") - begin)
    a = a.with_columns(pl.col("end_s").clip(lower_bound=pl.col("start_s")))
    at = _held(places.join(code, on="machine", maintain_order="left"), a)
    nodes = nodes.with_columns(pl.col("installed_s") - begin)
    racks = nodes.select("rack").with_row_index("node").with_columns(pl.col("node").cast(pl.Int64))
    seen = (
        events.join(code, on="machine")
        .with_columns(pl.col("from_s", "to_s") - begin)
        .filter(pl.col("from_s") < end - begin)
    )
    # what began before the window counts from its begin
    seen = seen.filter((pl.col("to_s") > 0).fill_null(True)).with_columns(pl.col("from_s").clip(lower_bound=0))
    down = outages.find(seen.select("node", "from_s", "to_s", "state", "reason"), racks, end - begin)
    down = down.with_columns(earlier=pl.lit(value=False))
    lines = xid_lines.join(code, on="machine").with_columns(pl.col("ts_s") - begin).filter(pl.col("ts_s") >= 0)
    faults = xids.events(lines.select("node", "ts_s", "device", "xid", "message"))
    a = a.with_columns(width=pl.Series(np.maximum(np.bincount(at["row"].to_numpy(), minlength=a.height), 1)))
    shown = counters.join(code, on="machine").select("node", pl.col("ts_s") - begin, "signal")
    a = a.hstack(causes.classify(causes.Evidence(a, at, down, faults, shown, choices.window)))
    a = a.hstack(runs.link(a, options, choices))
    found = incidents.group(a, at, down, racks)
    met = on_rows(a.height, found["row"], found.select("incident", "node", "cause", "component"))
    a = a.with_columns(
        cause=pl.coalesce(met["cause"], "cause"),
        component=pl.coalesce(met["component"], "component"),
    ).hstack(met.select("incident", "node"))
    second = runs.second_order(a, at)
    a = a.hstack(on_rows(a.height, second["row"], second.select("certain")))
    counted = (
        found.sort("incident", "row")
        .group_by("incident", maintain_order=True)
        .agg(
            pl.col("at_s", "node", "shared").first(),
            # of the causes seen, the one that says most
            cause=pl.col("cause").sort_by(pl.col("cause") == causes.INFRA, maintain_order=True).first(),
            component=pl.col("component").drop_nulls().first(),
            attempts=pl.len(),
        )
    )
    nodes = nodes.with_columns(since_s=_since(nodes, at, down))
    a = a.with_columns(entered_s=pl.lit(0.0), ended_by="cause")
    return Facts(a, at, nodes, down, faults, counted, options, choices, begin, end - begin, not events.is_empty())
