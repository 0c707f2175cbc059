"""The choices that shape the figures of an analysis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gpuctl.core.job_filter import EVERY_JOB, JobFilter

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.analyze.site_files import Price
    from gpuctl.queries.catalogue import Query


@dataclass(frozen=True)
class Options:
    """The choices that shape the figures.

    Attributes:
        cluster: which cluster of the store; may be left out where it holds only one.
        definition: ``gpuctl``, or ``notebook`` for the published notebook's waits and run times.
        duration: a job's run time: ``span`` (last end - first start), ``sum`` (over attempts), ``last`` (attempt);
            None for ``span``, or ``sum`` where the source tells nothing else.
        quotas: GPUs of each queue's quota, as the user gave them.
        racks: rack of each node, as the user gave them.
        borrow_below: share of busy GPUs up to which a queue may exceed its quota; 0 never; None where it is inferred.
        by: the periods of series over time, in UTC, and of charges; None: an hour, of charges a month.
        charge_zone: IANA name of the zone in which charges are cut; None: that of the log.
        prices: what a GPU-hour costs, by type, account and date.
        forgive: states of attempts that are not charged.
        idle_below: mean GPU utilization, %, below which a job counts as idle.
        brief: leave empty what only GPU telemetry tells of users, queues and accounts: the first screen has none of it.
        reference: a key of `registry.REFERENCES`, or None.
        sections: keys of the sections to run; with no `tables` either, all.
        tables: names of the tables to run beside those of `sections`.
        exports: with neither `sections` nor `tables`, whether those that no screen or page shows run, too.
        signatures: the user's own signature tables, beside gpuctl's.
        learned: whether a learned reader answers where no signature knows a log's last words.
        filter: which jobs the figures are of; those of the cluster are of all jobs.
        own: the analyses of files that the user named; which of them run, `tables` says.
        command: the command line, for the record.
    """

    cluster: str | None = None
    definition: Literal["gpuctl", "notebook"] = "gpuctl"
    duration: Literal["span", "sum", "last"] | None = None
    quotas: dict[str, float] = field(default_factory=dict)
    racks: dict[str, str] = field(default_factory=dict)
    borrow_below: float | None = None
    by: Literal["hour", "day", "week", "month", "quarter"] | None = None
    charge_zone: str | None = None
    prices: tuple[Price, ...] = ()
    forgive: tuple[str, ...] = ()
    idle_below: float = 5.0
    brief: bool = False
    reference: str | None = None
    sections: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    exports: bool = True
    signatures: tuple[Path, ...] = ()
    learned: bool = True
    filter: JobFilter = EVERY_JOB
    own: tuple[Query, ...] = ()
    command: str = ""
