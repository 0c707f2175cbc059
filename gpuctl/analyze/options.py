"""The options that shape the figures of an analysis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gpuctl.core.job_filter import EVERY_JOB, JobFilter
from gpuctl.reliability.choices import DEFAULT, Choices

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpuctl.analyze.site_files import Price
    from gpuctl.queries.catalogue import Query


@dataclass(frozen=True)
class Options:
    """The options that shape the figures.

    Attributes:
        cluster: the cluster; optional if the store holds only one.
        definition: ``gpuctl``, or ``notebook`` for the published notebook's waits and run times.
        duration: a job's run time: ``span`` (last end - first start), ``sum`` (over attempts), ``last`` (attempt);
            None for ``span``, or ``sum`` if the source has nothing else.
        quotas: GPUs of each queue's quota, from the user.
        racks: rack of each node, from the user.
        borrow_below: share of busy GPUs up to which a queue may exceed its quota; 0: never; None: inferred.
        by: the periods of series over time and of charges; None: an hour, a month for charges.
        period_zone: IANA name of the zone in which periods longer than an hour begin; None: that of the log.
        prices: prices of GPU-hours, by type, account and date.
        forgive: states of attempts that are not charged.
        idle_below: mean GPU utilization, %, below which a job counts as idle.
        reliability: counting rules and assumptions of the reliability tables.
        brief: leave empty the figures of users, queues and accounts that need GPU telemetry: the first screen has none
            of them.
        reference: a key of `registry.REFERENCES`, or None.
        sections: keys of the sections to run; with no `tables` either, all.
        tables: names of the tables to run in addition to those of `sections`.
        exports: with neither `sections` nor `tables`, whether to run those that no screen or page shows.
        signatures: the user's own signature tables, in addition to gpuctl's.
        learned: whether a learned model classifies last lines without a signature.
        filter: the jobs that figures cover; cluster-wide figures cover all jobs.
        own: the analyses of files that the user named; `tables` selects those that run.
        parameters: values of parameters that these analyses declare; others have their defaults.
        command: the command line, for the record.
    """

    cluster: str | None = None
    definition: Literal["gpuctl", "notebook"] = "gpuctl"
    duration: Literal["span", "sum", "last"] | None = None
    quotas: dict[str, float] = field(default_factory=dict)
    racks: dict[str, str] = field(default_factory=dict)
    borrow_below: float | None = None
    by: Literal["hour", "day", "week", "month", "quarter"] | None = None
    period_zone: str | None = None
    prices: tuple[Price, ...] = ()
    forgive: tuple[str, ...] = ()
    idle_below: float = 5.0
    reliability: Choices = DEFAULT
    brief: bool = False
    reference: str | None = None
    sections: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    exports: bool = True
    signatures: tuple[Path, ...] = ()
    learned: bool = True
    filter: JobFilter = EVERY_JOB
    own: tuple[Query, ...] = ()
    parameters: Mapping[str, str | int | float] = field(default_factory=dict)
    command: str = ""
