"""Input of a replay's tables, and its settings and warnings."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import NONE, NamedValue, Note, listed, literal, named, note, together, untrusted
from gpuctl.replay.results import intervals, metrics, timelines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.replay.models.records import Cluster, Outcome, Workload
    from gpuctl.replay.results.comparison import Nearness

_SPEC = re.compile(r"\d+x\d+|pool:\d+", re.ASCII)
"""Short form of nodes given by number and size."""


@dataclass(frozen=True)
class Unchanged:
    """The same jobs replayed without what an option changes.

    Attributes:
        outcomes: of policies also replayed with the change, by the same names.
        workload: with as many jobs, in the same order.
        changes: the options.
    """

    outcomes: tuple[Outcome, ...]
    workload: Workload
    changes: Note


@dataclass(frozen=True)
class Replays:
    """Input of all tables; outcomes have distinct names."""

    outcomes: tuple[Outcome, ...]
    workload: Workload
    cluster: Cluster
    baseline: Outcome
    warmup: float
    resamples: int
    seed: int
    window: tuple[float, float] | None = None
    unchanged: Unchanged | None = None
    nearness: Nearness | None = None
    failure_seed: int = 0

    @property
    def jobs(self) -> Note:
        """The population of every table."""
        left_out = metrics.warmup_jobs(self.workload, self.warmup)
        text = note(
            "{size:,} job{size||s} of {name}, replayed on {name_2}",
            size=self.workload.size,
            name=NamedValue("cluster", self.workload.name),
            name_2=nodes_note(self.cluster),
        )
        if not left_out:
            return note("{text}; no warm-up excluded.", text=text)
        return note(
            "{text}; the first {left_out:,} by submission (warm-up, {warmup:.0%}) are excluded.",
            text=text,
            left_out=left_out,
            warmup=self.warmup,
        )


def span(replays: Replays) -> tuple[float, float]:
    """Return the seconds between which some policy's replay is measured."""
    windows = [timelines.window(o) for o in replays.outcomes]
    return min(w[0] for w in windows), max(w[1] for w in windows)


def calendar(workload: Workload, seconds: str = "t_s", name: str = "ts") -> pl.Expr:
    """Return seconds of a replay as instants of the calendar (UTC); nulls if the workload has none."""
    kind = pl.Datetime("us", "UTC")
    if workload.origin is None:
        return pl.lit(None, dtype=kind).alias(name)
    origin = pl.lit(workload.origin.astimezone(UTC), dtype=kind)
    return (origin + pl.duration(microseconds=(pl.col(seconds) * 1e6).round())).alias(name)


def with_distinct_names(outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Return the outcomes with their parameters, or a number, added to duplicate names."""
    names: list[str] = []
    given = [o.policy for o in outcomes]
    for outcome in outcomes:
        name = outcome.policy
        if given.count(name) > 1:
            name = f"{name} ({_parameters(outcome)})" if outcome.params else name
        copies = 1 + sum(n == name or n.startswith(f"{name} #") for n in names)
        names.append(name if copies == 1 else f"{name} #{copies}")
    return tuple(replace(o, policy=n) for o, n in zip(outcomes, names, strict=True))


def _parameters(outcome: Outcome) -> str:
    return ", ".join(f"{k}={v}" for k, v in outcome.params.items())


def settings(replays: Replays) -> dict[str, Note]:
    """Return the settings of the replay: parameters of policies, workload, cluster, method."""
    settings: dict[str, Note] = {}
    for outcome in replays.outcomes:
        for name, value in outcome.settings.items():
            if settings.setdefault(name, value) != value:
                settings[note("{name} ({policy})", name=literal(name), policy=NamedValue("policy", outcome.policy))] = (
                    value
                )
        own = (
            note("{kind}: ", kind=NamedValue("policy", outcome.kind))
            if outcome.kind not in {"", outcome.policy}
            else NONE
        )
        params_text = together(", ", [note("{k}={v}", k=literal(k), v=_value(v)) for k, v in outcome.params.items()])
        key = note("policy {policy}", policy=NamedValue("policy", outcome.policy))
        settings[key] = note("{own}{params_text}", own=own, params_text=params_text or note("no parameters"))
    oracles = [o.policy for o in replays.outcomes if o.oracle]
    settings |= {
        "workload": note(
            "{name}, {jobs:,} job{jobs||s}",
            name=NamedValue("cluster", replays.workload.name),
            jobs=replays.workload.size,
        ),
        "cluster": note(
            "{name}, {gpus:,} GPU{gpus||s}{nodes}",
            name=nodes_note(replays.cluster),
            gpus=replays.cluster.total_gpus,
            nodes=note("") if replays.cluster.pool else note(" on {k:,} node{k||s}", k=len(replays.cluster.nodes)),
        ),
        "quotas": literal(replays.cluster.quota_source),
        "told true run times": listed("policy", oracles) if oracles else note("none of the policies"),
        "warm-up": note("{share:.0%} of the jobs, in order of submission", share=replays.warmup),
        "intervals": note(
            "95 %, for a long run of the same workload; of means: Student's t of {parts:,} part{parts||s} of equal "
            "time, with correlation of neighbours, and the error of the load; none if the trace is too short "
            "; of percentiles also: bootstrap over the parts, {resamples:,} resample{resamples||s}, seed {seed}",
            parts=intervals.PARTS,
            resamples=replays.resamples,
            seed=replays.seed,
        ),
    }
    if replays.nearness is not None:
        settings["fidelity"] = replays.nearness.text
    if replays.unchanged is not None:
        settings["changes"] = replays.unchanged.changes
    if len(replays.outcomes) > 1:
        settings["baseline"] = named("policy", replays.baseline.policy)
    return settings


def _value(value: object) -> Note:
    """A parameter's value: numbers are literal, text that is no note may be a path or a name."""
    if isinstance(value, Note):
        return value
    return named("value", value) if isinstance(value, str) else literal(str(value))


def nodes_note(cluster: Cluster) -> Note:
    """Name of the nodes: those of --cluster by number and size, else by a name."""
    if _SPEC.fullmatch(cluster.name):
        return literal(cluster.name)
    return named("cluster", cluster.name)


def oracle_note(replays: Replays) -> tuple[Note, ...]:
    """Return which policies know true run times, if any do."""
    text = [o.policy for o in replays.outcomes if o.oracle]
    if not text:
        return ()
    return (
        note(
            "Oracles, which know true run times, unlike real schedulers: {text}.",
            text=listed("policy", text),
        ),
    )


def warnings(replays: Replays, *, against_recorded: bool) -> tuple[Note, ...]:
    """Return the warnings for readers of any table of this replay."""
    found = list(oracle_note(replays))
    ended = {o.policy: o.jobs["state"].value_counts() for o in replays.outcomes}
    left = {p: int(c.filter(~pl.col("state").is_in(timelines.ENDED))["count"].sum()) for p, c in ended.items()}
    cut = {p: int(c.filter(pl.col("state") == "cut")["count"].sum()) for p, c in ended.items()}
    if any(left.values()):
        each = together(", ", [note("{p} {n:,}", p=NamedValue("policy", p), n=n) for p, n in left.items()])
        found.append(
            note(
                "Unfinished jobs, excluded from means and percentiles: {each}. Where these numbers differ, the "
                "means are over different jobs; the job-by-job differences compare the same jobs. "
                "replay_unfinished lists them.",
                each=each,
            )
        )
    if any(cut.values()):
        each = together(", ", [note("{p} {n:,}", p=NamedValue("policy", p), n=n) for p, n in cut.items()])
        found.append(
            note(
                "Jobs cut at their time limit: {each}. Waits and JCT count them; slowdown and finished work do not, "
                "for some of their work was never done.",
                each=each,
            )
        )
    if replays.cluster.quota_source == "inferred":
        found.append(note("The quotas of the queues are inferred from the trace, not configured ones."))
    if against_recorded and np.isnan(replays.workload.recorded_start).all():
        found.append(note("The workload has no recorded starts to compare a replay with."))
    if replays.nearness is not None and not replays.nearness.calibrated:
        found.append(replays.nearness.text)
    return tuple(found)


_SHARED = ("speed", "preemption overhead", "packed jobs", "placement", "preemption", "time limits")
"""Settings that decide whether a comparison is fair, as `gpuctl.replay.engine.setup.Settings.text` names them."""


def shared_notes(replays: Replays) -> tuple[Note, ...]:
    """Return what all policies of a comparison have in common, and what some of them have of their own."""
    outcomes = replays.outcomes
    if len(outcomes) < 2:
        return ()
    same, apart = [], []
    for name in _SHARED:
        of: dict[Note, list[str]] = {}
        for outcome in outcomes:
            if name in outcome.settings:
                of.setdefault(untrusted(outcome.settings[name]), []).append(outcome.policy)
        if len(of) == 1:
            same.append(note("{name}: {text}", name=literal(name), text=next(iter(of))))
        elif of:
            each = [
                note("{names}: {text}", names=listed("policy", names), text=text)
                for text, names in sorted(of.items(), key=lambda pair: -len(pair[1]))
            ]
            apart.append(note("Not the same, {name}: {each}.", name=literal(name), each=together("; ", each)))
    text = note(
        "The same for all {n:,} policies: {size:,} job{size||s}, {nodes}; {same}.",
        n=len(outcomes),
        size=replays.workload.size,
        nodes=nodes_note(replays.cluster),
        same=together("; ", same),
    )
    return (text, *apart)


def policy_notes(outcomes: Sequence[Outcome]) -> list[Note]:
    """Return the policies' notes on a replay, each once, with its policies."""
    of: dict[Note, list[str]] = {}
    for outcome in outcomes:
        for text in outcome.notes:
            of.setdefault(untrusted(text), []).append(outcome.policy)
    return [note("{names}: {text}", names=listed("policy", names), text=text) for text, names in of.items()]
