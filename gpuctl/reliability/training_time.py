"""Effective training time of runs, and every GPU-hour of the cluster in one class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from gpuctl.reliability.causes import INFRASTRUCTURE, PREEMPTED, RUNNING, UNKNOWN
from gpuctl.reliability.intervals import DAY, Held
from gpuctl.reliability.pace import Pace, Point, Work, first_load, pace, split
from gpuctl.reliability.survival import facts_rates

if TYPE_CHECKING:
    from gpuctl.reliability.choices import Choices
    from gpuctl.reliability.facts import Facts

MOST_RUNS = 10_000
_OF_RUNS = (
    "row", "run", "attempt", "unit", "name", "user", "gpus", "gpu_type", "link", "width", "has_log", "cause",
    "queued_s", "eligible_s", "start_s", "end_s",
)  # fmt: skip
LOST = ("infrastructure", "second_order", "preempted", "user_program", "time_limit", "user_cancel", "unknown")


@dataclass(frozen=True)
class Assumed:
    """What runs without logs are assumed to do.

    Attributes:
        checkpoint_s: seconds of work between checkpoints (Kokolis et al., HPCA 2025: one hour).
        longest_checkpoint_s: the longest interval of the range.
        load_s: from start to first step (the same source: five minutes).
        longest_load_s: the longest of the range.
        write_share: the largest share of run time that checkpoints' writes may take.
    """

    checkpoint_s: float = 3600.0
    longest_checkpoint_s: float = 14_400.0
    load_s: float = 300.0
    longest_load_s: float = 900.0
    write_share: float = 0.1

    @classmethod
    def of(cls, choices: Choices) -> Assumed:
        """With the interval between checkpoints that the user assumes."""
        return cls(choices.checkpoint_s, max(choices.checkpoint_s, cls.longest_checkpoint_s))


def modelled_ettr(nodes: float, rate: float, interval: float, write: float, restart: float) -> float | None:
    """Expected share of running time that is productive, for exponential failures (Daly 2006, FGCS 22, equation 20).

    Args:
        nodes: of the job.
        rate: failures a node-day.
        interval: seconds of work between checkpoints.
        write: seconds for which one blocks.
        restart: seconds of detection and load.
    """
    if rate <= 0 or interval <= 0:
        return interval / (interval + write) if interval > 0 else None
    mean = DAY / (nodes * rate)
    exponent = (interval + write) / mean
    if exponent > 700 or restart / mean > 700:
        return 0.0
    return interval / (mean * math.exp(restart / mean) * math.expm1(exponent))


def linear_ettr(  # noqa: PLR0917 - the symbols of the formula
    nodes: float, rate: float, interval: float, write: float, restart: float, queue: float = 0.0
) -> float | None:
    """The same to first order, with the wait after an interruption (Kokolis et al., HPCA 2025; the queue is ours).

    Args:
        nodes: of the job.
        rate: failures a node-day.
        interval: seconds of work between checkpoints.
        write: seconds for which one blocks.
        restart: seconds of detection and load.
        queue: seconds that an interrupted job waits.

    Returns:
        None where the formula does not hold: it loses more than there is.
    """
    if interval <= 0:
        return None
    hazard = nodes * rate / DAY
    kept = 1 - hazard * (restart + interval / 2)
    return kept / ((1 + write / interval) * (1 + hazard * queue)) if kept > 0 else None


class Accounts:
    """Splits the time of every attempt.

    Args:
        facts: of the cluster.
        points: ``number``, ``kind``, ``step``, ``value``, ``ts_s`` (seconds since 1970), in the order of lines.
        assumed: for what no log tells.
    """

    def __init__(self, facts: Facts, points: pl.DataFrame, assumed: Assumed) -> None:
        self.facts, self.assumed = facts, assumed
        self.logs = self._logs(points)
        self.work: dict[int, Work] = {}
        """Of attempts, by row, whose logs tell."""
        self.paces: dict[int, Pace] = {}
        """Of runs whose logs tell."""
        a = facts.attempts.select("row", "run", "start_s", "end_s", "attempt", "cause")
        logged = a.filter(pl.col("row").is_in(list(self.logs))).select("run").unique()
        some = a.join(logged, on="run", how="semi").sort("run", "start_s", "attempt")
        for part in some.partition_by("run", maintain_order=True):
            self._measure(int(part["run"][0]), part)

    def _logs(self, points: pl.DataFrame) -> dict[int, list[Point]]:
        row_of = self.facts.attempts.select("number", "row")
        rows = points.join(row_of, on="number", how="left", maintain_order="left").drop_nulls("row")
        found: dict[int, list[Point]] = {}
        begin = self.facts.begin
        for row, kind, step, ts, value in rows.select("row", "kind", "step", "ts_s", "value").iter_rows():
            found.setdefault(row, []).append(Point(kind, step, None if ts is None else ts - begin, value))
        return found

    def _measure(self, run: int, part: pl.DataFrame) -> None:
        rows, start, end = (part[name].to_list() for name in ("row", "start_s", "end_s"))
        logs = [self.logs.get(row, []) for row in rows]
        found = pace(logs)
        if found.step_s is None:
            return
        self.paces[run] = found
        begun = self._begun(logs)
        loads = [first_load(s, log, found, b) for s, log, b in zip(start, logs, begun, strict=True)]
        usual = median([load for load in loads if load is not None] or [self.assumed.load_s])
        for i, (row, cause) in enumerate(zip(rows, part["cause"], strict=True)):
            work = split(
                end[i] - start[i],
                start[i],
                logs[i],
                found,
                usual,
                begun=begun[i],
                resumed=begun[i + 1] if i + 1 < len(rows) else None,
                whole=cause in {"completed", RUNNING},
            )
            if work is not None:
                self.work[row] = work

    @staticmethod
    def _begun(logs: list[list[Point]]) -> list[int]:
        """The step from which each attempt went on: that which it loaded, else the last one saved before."""
        found, saved = [], 0
        for log in logs:
            loaded = next((point.step for point in log if point.kind == "loaded" and point.step is not None), None)
            found.append(saved if loaded is None else loaded)
            saved = max(
                (point.step for point in log if point.kind == "saved" and point.step is not None), default=found[-1]
            )
        return found

    def spent(self) -> pl.DataFrame:
        """One row an attempt: seconds of each class, measured where logs tell, else assumed with a range.

        ``row``, ``productive``, ``checkpoint``, ``load``, ``lost``, ``stalled``, ``productive_low``,
        ``productive_high``, ``measured``, ``lost_low``, ``lost_high``.
        """
        a, given = self.facts.attempts, self.assumed
        run = pl.col("end_s") - pl.col("start_s")
        whole = pl.col("cause").is_in(["completed", RUNNING])
        several = pl.Series(self.facts.in_several)
        at_risk = (run - given.longest_load_s - given.longest_checkpoint_s).clip(lower_bound=0) * (
            1 - given.write_share
        )
        low_lost = pl.min_horizontal(run, pl.lit(given.checkpoint_s / 2))
        lost = pl.when(whole).then(0.0).when(several).then(low_lost).otherwise(run)
        base = a.select(
            "row",
            productive=run - lost,
            checkpoint=pl.lit(0.0),
            load=pl.lit(0.0),
            lost=lost,
            stalled=pl.lit(0.0),
            productive_low=pl.when(whole)
            .then((run - given.longest_load_s).clip(lower_bound=0) * (1 - given.write_share))
            .otherwise(at_risk),
            productive_high=run,
            lost_low=pl.when(whole).then(0.0).otherwise(low_lost),
            lost_high=pl.when(whole).then(0.0).otherwise(run),
            measured=pl.lit(value=False),
        )
        own = pl.DataFrame(
            [
                (
                    row,
                    w.productive,
                    w.checkpoint,
                    w.load,
                    w.lost,
                    w.stalled,
                    w.productive,
                    w.productive,
                    w.lost,
                    w.lost + w.uncertain,
                    True,
                )
                for row, w in self.work.items()
            ],
            schema={
                "row": base["row"].dtype,
                **dict.fromkeys(
                    (
                        "productive",
                        "checkpoint",
                        "load",
                        "lost",
                        "stalled",
                        "productive_low",
                        "productive_high",
                        "lost_low",
                        "lost_high",
                    ),
                    pl.Float64,
                ),
                "measured": pl.Boolean,
            },
            orient="row",
        )
        return base.update(own, on="row", how="left") if own.height else base

    def table(self, spent: pl.DataFrame) -> pl.DataFrame:
        """The rows of ``ettr``: runs of several attempts, and those of whole nodes; those that held most first."""
        facts = self.facts
        chosen = self._largest_runs()
        a = facts.attempts.select(_OF_RUNS).join(chosen, on="run", how="semi").sort("run", "start_s", "attempt")
        a = a.join(spent, on="row", maintain_order="left")
        run = pl.col("end_s") - pl.col("start_s")
        ended = pl.col("end_s").shift().over("run")
        waited = (pl.col("start_s") - pl.max_horizontal("eligible_s", ended)).clip(lower_bound=0)
        gap = (pl.max_horizontal("eligible_s", "queued_s") - ended).clip(lower_bound=0).fill_null(0.0)
        a = a.with_columns(waited=waited, gap=gap, seconds=run, infra=pl.col("cause").is_in(INFRASTRUCTURE))
        hours = {
            name: pl.col(name).sum() / 3600
            for name in ("productive", "checkpoint", "load", "lost", "stalled", "productive_low", "productive_high")
        }
        rows = a.group_by("run", maintain_order=True).agg(
            pl.col("name", "user", "gpus", "link").first(),
            attempts=pl.len(),
            jobs=pl.col("unit").n_unique(),
            queue_h=pl.col("waited").sum() / 3600,
            gap_h=pl.col("gap").sum() / 3600,
            run_h=pl.col("seconds").sum() / 3600,
            interruptions=pl.col("infra").sum(),
            measured=pl.col("measured").all(),
            any_log=pl.col("has_log").any(),
            width=pl.col("width").first(),
            first=pl.col("start_s").min(),
            kind=pl.col("gpu_type").first(),
            **hours,
        )
        rows = rows.sort(pl.col("gpus") * pl.col("run_h"), "run", descending=[True, False])
        total = pl.col("queue_h") + pl.col("run_h")
        mid = pl.when("measured").then("productive").otherwise(self._middle())
        rows = rows.with_columns(productive=mid).with_columns(
            ettr=pl.col("productive") / total,
            ettr_low=pl.col("productive_low") / total,
            ettr_high=pl.col("productive_high") / total,
            ettr_running=pl.col("productive") / pl.col("run_h"),
            basis=pl.when("measured")
            .then(pl.lit("measured"))
            .when("any_log")
            .then(pl.lit("estimated"))
            .otherwise(pl.lit("modelled")),
        )
        return self._with_pace(rows)

    def _largest_runs(self) -> pl.DataFrame:
        """The runs of the table: ``run``."""
        facts = self.facts
        a = facts.attempts.select("run", "gpus", "start_s", "end_s", several=pl.Series(facts.in_several))
        # of a run of one attempt its size is the run's
        a = a.filter(
            (pl.col("end_s") > pl.col("start_s")) & (pl.col("several") | (pl.col("gpus") >= facts.gpus_per_node))
        )
        size = pl.col("gpus").get(pl.col("start_s").arg_min())
        rows = a.group_by("run").agg(gpus=size, seconds=(pl.col("end_s") - pl.col("start_s")).sum())
        rows = rows.filter(pl.col("gpus") > 0)
        order = rows.sort(pl.col("gpus") * pl.col("seconds"), "run", descending=[True, False])
        return order.head(MOST_RUNS).select("run")

    @staticmethod
    def _middle() -> pl.Expr:
        return (pl.col("productive_low") + pl.col("productive_high")) / 2

    def _with_pace(self, rows: pl.DataFrame) -> pl.DataFrame:
        rate = _rate_by_type(self.facts)
        every, write, model, linear = [], [], [], []
        load = {}
        for row in rows.iter_rows(named=True):
            own = self.paces.get(row["run"])
            steps = None if own is None else own.interval_steps
            interval = None if own is None or steps is None or own.step_s is None else steps * own.step_s
            every.append(interval)
            write.append((None, None, None) if own is None or interval is None else (own.write_s, *own.write_range))
            load[row["run"]] = row["load"] * 3600 / row["attempts"] if row["measured"] else self.assumed.load_s
            each = rate.get(row["kind"], rate[None])
            symbols = (
                row["width"],
                each,
                interval or self.assumed.checkpoint_s,
                own.write_s if own else 0.0,
                load[row["run"]],
            )
            model.append(modelled_ettr(*symbols))
            linear.append(linear_ettr(*symbols))
        rows = rows.with_columns(
            checkpoint_s=pl.Series(every, dtype=pl.Float64),
            **{
                name: pl.Series([each[i] for each in write], dtype=pl.Float64)
                for i, name in enumerate(("write_s", "write_low_s", "write_high_s"))
            },
            model_ettr=pl.Series(model, dtype=pl.Float64),
            linear_ettr=pl.Series(linear, dtype=pl.Float64),
        )
        unknown = ~pl.col("measured")
        known = [
            pl.when(unknown).then(None).otherwise(name).alias(f"{name}_h")
            for name in ("checkpoint", "load", "lost", "stalled")
        ]
        return rows.select(
            pl.col("name").fill_null("").alias("run"),
            "user",
            "gpus",
            "link",
            "attempts",
            "jobs",
            "queue_h",
            "gap_h",
            "run_h",
            pl.col("productive").alias("productive_h"),
            *known,
            "interruptions",
            "ettr",
            "ettr_low",
            "ettr_high",
            "ettr_running",
            "checkpoint_s",
            "write_s",
            "basis",
            "model_ettr",
            "linear_ettr",
            number="run",
            width="width",
            write_low_s="write_low_s",
            write_high_s="write_high_s",
            gpu_type="kind",
        )

    def goodput(self, spent: pl.DataFrame) -> pl.DataFrame:
        """The rows of ``goodput_loss``: every GPU-hour of the window once."""
        facts = self.facts
        held = facts.places.group_by("row").agg(held=pl.col("gpus").sum())
        ran = pl.col("end_s") - pl.col("start_s")
        a = facts.attempts.select("row", "gpus", "certain", "ended_by", ran=ran).join(spent, on="row")
        a = a.join(held, on="row", how="left")
        gpus = pl.coalesce("held", "gpus") / 3600
        second = pl.col("certain").fill_null(False)
        perhaps = pl.col("certain").is_not_null() & ~second
        why = (
            pl.when(pl.col("ended_by").is_in(INFRASTRUCTURE))
            .then(pl.lit("infrastructure"))
            .when((pl.col("ended_by") == PREEMPTED) & second)
            .then(pl.lit("second_order"))
            .otherwise("ended_by")
        )
        a = a.with_columns(why=why, perhaps=perhaps)
        lost = {
            name: dict(a.group_by("why").agg((pl.col(name) * gpus).sum()).iter_rows())
            for name in ("lost", "lost_low", "lost_high")
        }
        rows = self._used(a.with_columns(weight=gpus))
        shares = dict(a.group_by("why").agg((pl.col("lost") * gpus).filter(pl.col("measured")).sum()).iter_rows())
        maybe = float(a.select((pl.col("lost_high") * gpus).filter(pl.col("perhaps")).sum()).item())
        for name in LOST:
            value = lost["lost"].get(name, 0.0)
            high = lost["lost_high"].get(name, 0.0)
            if name == "infrastructure":
                high += lost["lost_high"].get(UNKNOWN, 0.0)
            if name == "second_order":
                high += maybe
            part = shares.get(name, 0.0)
            told = "measured" if part >= value else "assumed" if not part else "partly measured"
            low = min(value, lost["lost_low"].get(name, 0.0))
            rows.append(_class(f"lost_{name}", value, told, low, max(high, value)))
        rows += self._down()
        capacity = float((facts.nodes["gpus"].to_numpy() * facts.at_risk_s(0.0, facts.until)).sum()) / 3600
        idle = capacity - sum(row.gpu_hours for row in rows)
        rows.append(_class("idle", idle, "capacity minus all others"))
        rows.append(_class("all", capacity, "GPUs of nodes times the window"))
        table = pl.DataFrame(rows)
        return table.with_columns(pct=100 * pl.col("gpu_hours") / capacity)

    def _used(self, a: pl.DataFrame) -> list[_Class]:
        """GPU-hours that were productive, or went into checkpoints, loading and stalls.

        Without a log all run time that was not lost counts as productive; the others have ranges from none to the most
        that is assumed, stalls to all that may be lost.
        """
        given, logged = self.assumed, pl.col("measured")
        none = pl.lit(0.0)
        ends = {
            "productive": (
                pl.min_horizontal("productive_low", pl.col("ran") - pl.col("lost_high")),
                pl.col("productive_high"),
            ),
            "checkpoint": (none, given.write_share * pl.col("ran")),
            "load": (none, pl.min_horizontal("ran", pl.lit(given.longest_load_s))),
            "stalled": (none, pl.col("lost_high")),
        }
        basis = "measured" if a["measured"].all() else "partly measured" if a["measured"].any() else "assumed"
        rows = []
        for name, (low, high) in ends.items():
            least, most = (pl.when(logged).then(name).otherwise(end) for end in (low, high))
            sums = a.select(
                value=(pl.col(name) * pl.col("weight")).sum(),
                low=(least * pl.col("weight")).sum(),
                high=(most * pl.col("weight")).sum(),
            ).row(0)
            value = float(sums[0])
            rest = "measured from logs, else run time that was not lost"
            rows.append(
                _class(name, value, rest if name == "productive" else basis, min(value, sums[1]), max(value, sums[2]))
            )
        return rows

    def _down(self) -> list[_Class]:
        """GPU-hours of nodes out of service that no draining job held."""
        facts = self.facts
        if not facts.has_events:
            return []
        held = Held(*(facts.places[name].to_numpy() for name in ("node", "start_s", "end_s", "gpus")))
        found = []
        gpus = facts.nodes["gpus"].to_numpy()
        for kind, flag in (("down_unplanned", False), ("down_planned", True)):
            rows = facts.outages.filter(pl.col("planned") == flag)
            node, start, end = (rows[name].to_numpy() for name in ("node", "from_s", "to_s"))
            used = held.between(node, start, end)
            value = float(np.maximum(gpus[node] * (end - start) - used, 0).sum()) / 3600
            found.append(_class(kind, value, "node events"))
        return found


class _Class(NamedTuple):
    """A row of ``goodput_loss``."""

    kind: str
    gpu_hours: float
    gpu_hours_low: float
    gpu_hours_high: float
    basis: str


def _class(kind: str, hours: float, basis: str, low: float | None = None, high: float | None = None) -> _Class:
    return _Class(kind, hours, hours if low is None else low, hours if high is None else high, basis)


def _rate_by_type(facts: Facts) -> dict[str | None, float]:
    """Incidents a busy node-day, by GPU type; under None that of all."""
    days = float(facts.busy_days.sum())
    alone = facts.incidents.filter(pl.col("node").is_not_null()).height
    found: dict[str | None, float] = {None: alone / days if days else 0.0}
    for kind, rate in zip(facts.nodes["gpu_type"], facts_rates(facts), strict=True):
        if kind is not None:
            found[kind] = float(rate)
    return found
