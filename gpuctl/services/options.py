"""The options that commands and the library share, as plain records.

The command line says how each field is called and described (`gpuctl.cli.options.declare`); its help pages explain
them. The library makes the same records of a caller's values (`record_of`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.analyze.gpu_usage.usage import Options as UsageOptions
    from gpuctl.core.job_filter import JobFilter
    from gpuctl.replay.models.node_failures import FailureOptions

Record = TypeVar("Record")


@dataclass(frozen=True)
class LogReading:
    """How logs are read, and which cluster of a store."""

    cluster: str | None = None
    timezone: str | None = None
    log_format: str | None = None
    columns: str | None = None
    delimiter: str | None = None


@dataclass(frozen=True)
class Site:
    """What the user says of the site: where the output of jobs is, its signatures, quotas, racks, and borrowing."""

    job_logs: list[str] | None = None
    signatures: list[Path] | None = None
    learned: bool = True
    quotas: Path | None = None
    racks: Path | None = None
    borrow_below: float | None = None
    map: list[str] | None = None
    unit: list[str] | None = None
    swf_unit: str | None = None
    gpus_per_node: str | None = None

    def settings(self) -> dict[str, Any]:
        """These of `gpuctl.analyze.options.Options`, their files read.

        Raises:
            InputError: one of them is not what it should be.
        """
        from gpuctl.analyze.site_files import read_quotas, read_racks

        return {
            "quotas": read_quotas(self.quotas) if self.quotas else {},
            "racks": read_racks(self.racks) if self.racks else {},
            "borrow_below": self.borrow_below,
            "signatures": tuple(self.signatures or ()),
            "learned": self.learned,
        }


@dataclass(frozen=True)
class GpuFigures:
    """How figures of GPU use are made of telemetry, when logs are loaded."""

    idle_after: float = 10.0
    min_coverage: float = 0.5
    correct_clocks: Literal["auto", "always", "never"] = "auto"

    def changed(self) -> str | None:
        """The first of these options that is not at its default."""
        return next((name for name, value in vars(self).items() if value != getattr(GpuFigures, name)), None)

    def options(self) -> UsageOptions:
        """The options as the room of analyses has them."""
        from gpuctl.analyze.gpu_usage.usage import Options

        return Options(self.idle_after, self.min_coverage, self.correct_clocks)


@dataclass(frozen=True)
class Charging:
    """How the tables of charges are made."""

    prices: Path | None = None
    period_timezone: str | None = None
    forgive: list[str] | None = None

    def settings(self) -> dict[str, Any]:
        """These of `gpuctl.analyze.options.Options`, the prices read.

        Raises:
            InputError: the file is not what it should be.
            UsageError: there is no such zone or state.
        """
        from gpuctl.analyze.site_files import read_prices
        from gpuctl.core.job_filter import states_of
        from gpuctl.core.local_time import check_timezone

        check_timezone(self.period_timezone, "--period-timezone")
        return {
            "prices": read_prices(self.prices) if self.prices else (),
            "period_zone": self.period_timezone,
            "forgive": states_of("--forgive", self.forgive or ()),
        }


@dataclass(frozen=True)
class Reliability:
    """What the tables of reliability count and assume."""

    window: str | None = None
    checkpoint_assumed: str | None = None
    sizes: str | None = None
    run_key: str | None = None
    runs: Path | None = None

    def settings(self) -> dict[str, Any]:
        """These of `gpuctl.analyze.options.Options`.

        Raises:
            InputError: the file of runs is not what it should be.
            UsageError: a time, size or regular expression makes no sense.
        """
        from gpuctl.analyze.site_files import read_runs
        from gpuctl.reliability.choices import parse

        return {
            "reliability": parse(
                window=self.window,
                checkpoint=self.checkpoint_assumed,
                sizes=self.sizes,
                run_key=self.run_key,
                runs=read_runs(self.runs) if self.runs else {},
            )
        }


@dataclass(frozen=True)
class Filters:
    """Which jobs the result is about."""

    user: list[str] | None = None
    queue: list[str] | None = None
    account: list[str] | None = None
    state: list[str] | None = None
    gpus: str | None = None
    since: str | None = None
    until: str | None = None

    def parsed(self) -> JobFilter:
        """The filter that they make.

        Raises:
            UsageError: one of them makes no sense.
        """
        from gpuctl.core.job_filter import parse

        return parse(
            user=self.user or (), queue=self.queue or (), account=self.account or (), state=self.state or (),
            gpus=self.gpus, since=self.since, until=self.until,
        )  # fmt: skip


@dataclass(frozen=True)
class Policies:
    """Which policies are replayed, with which parameters and configuration."""

    policy: list[str] | None = None
    param: list[str] | None = None
    yarn_conf: list[Path] | None = None
    slurm_conf: list[Path] | None = None
    model: Path | None = None
    calibrated: Path | None = None
    experiment: Path | None = None

    @property
    def names(self) -> list[str]:
        """The policies, one by one."""
        return [name.strip() for text in self.policy or () for name in text.split(",") if name.strip()]

    @property
    def conf(self) -> dict[str, list[Path]]:
        """Files of configuration, by whose they are."""
        return {"yarn": self.yarn_conf or [], "slurm": self.slurm_conf or []}


@dataclass(frozen=True)
class Inputs:
    """Which jobs are replayed, and on which nodes."""

    cluster: str | None = None
    per_rack: int | None = None
    add_nodes: str | None = None
    inference: str | None = None
    inference_load: Path | None = None
    trace_cluster: str | None = None
    db: Path | None = None
    timezone: str | None = None
    log_format: str | None = None
    columns: str | None = None
    delimiter: str | None = None
    columns_map: list[str] | None = None
    unit: list[str] | None = None
    swf_unit: str | None = None
    quotas: Path | None = None
    racks: Path | None = None
    window: str | None = None
    scale_load: str | None = None
    work: Literal["sum", "last", "span"] | None = None

    @property
    def logs(self) -> LogReading:
        """How logs are read, and which cluster of a store."""
        return LogReading(self.trace_cluster, self.timezone, self.log_format, self.columns, self.delimiter)

    @property
    def site(self) -> Site:
        """What the user says of how the logs are to be read."""
        return Site(map=self.columns_map, unit=self.unit, swf_unit=self.swf_unit)


@dataclass(frozen=True)
class Rules:
    """What holds for every policy."""

    placement: Literal["any", "consolidate", "spread"] | None = None
    overhead: str | None = None
    mode: Literal["now", "epoch", "abort"] | None = None
    run_times: str = "given"
    locality: bool | None = None
    speeds: Path | None = None
    pair_speeds: Path | None = None
    time_slice: str = "60:1"
    resources: str = "gpu"
    per_gpu: str | None = None
    limits: bool = False
    limits_from: str = "asked"
    seed: str = "0"
    resample: Literal["days", "weeks", "users", "none"] = "days"
    skip_unplaceable: bool = False

    def models(self) -> dict[str, Any]:
        """The rules as `gpuctl.replay.run.replay` takes them, their files read.

        Raises:
            UsageError: one of them makes no sense.
            InputError: a file is not what it should be.
        """
        from gpuctl.replay.models.resources import parse_resources
        from gpuctl.replay.models.speed import parse_time_slice, read_pairs

        return {
            "overhead": self.overhead,
            "placement": self.placement,
            "limits": self.limits,
            "mode": self.mode,
            "resources": parse_resources(self.resources),
            "pairs": None if self.pair_speeds is None else read_pairs(self.pair_speeds),
            "time_slice": parse_time_slice(self.time_slice),
            "skip_unplaceable": self.skip_unplaceable,
        }


@dataclass(frozen=True)
class Failing:
    """How nodes fail, and what jobs keep."""

    failures: str | None = None
    checkpoint: str | None = None
    checkpoint_write: float | None = None
    restart: float | None = None
    detect: float | None = None
    repair: str | None = None
    spares: int | None = None
    requeue: Literal["head", "tail"] | None = None
    lemon_share: str | None = None

    def options(self, *, several: bool) -> FailureOptions | None:
        """Return the options with their files read; None without --failures.

        Args:
            several: an experiment's file may name the failures.

        Raises:
            UsageError: an option of failures without them.
            InputError: a file cannot be read.
        """
        from gpuctl.core.errors import UsageError
        from gpuctl.replay.models.node_failures import FailureOptions, with_files

        given = {
            "checkpoint": self.checkpoint, "write": self.checkpoint_write, "restart": self.restart,
            "detect": self.detect, "repair": self.repair, "spares": self.spares, "requeue": self.requeue,
            "lemons": self.lemon_share,
        }  # fmt: skip
        given = {name: value for name, value in given.items() if value is not None}
        if self.failures is None and not several:
            if given:
                named = {"write": "checkpoint-write", "lemons": "lemon-share"}
                name = named.get(next(iter(given)), next(iter(given)))
                raise UsageError(f"--{name} requires --failures", hint="--failures 0.0065")
            return None
        return with_files(FailureOptions(self.failures or "0", **given))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Comparison:
    """What is compared with what, on which jobs, and which sections of the result are wanted."""

    baseline: str | None = None
    against: Literal["recorded"] | None = None
    unchanged: bool = True
    gantt: str | None = None
    warmup: float = 0.0
    jobs: int | None = None
    engine: str = "local"
    section: list[str] | None = None


@dataclass(frozen=True)
class Planning:
    """What is planned."""

    goal: str = "p95-wait=1h"
    goal_queue: str | None = None
    by_queue: bool = False
    horizon: str | None = None
    node_size: int | None = None
    node_type: str | None = None
    remove_nodes: str | None = None
    prices: Path | None = None
    draws: int = 40
    seed: int = 0
    jobs: int | None = None


def record_of(kind: type[Record], values: Mapping[str, Any], **more: object) -> Record:
    """Return a record of options from values of a caller in Python; those of other records are left out.

    A path may be text, a text may be a number, and a single text may stand for a list of one.

    Args:
        kind: of record.
        values: by field.
        more: values of fields that need no conversion.

    Raises:
        UsageError: a field has no such choice.
    """
    hints = get_type_hints(kind)
    plain = {name: _converted(name, hints[name], value) for name, value in values.items() if name in hints}
    return kind(**{**plain, **more})


def _converted(name: str, hint: Any, value: Any) -> Any:
    """A value as its type has it: of a union, the first that is not None."""
    if value is None:
        return None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        if value not in arguments:
            from gpuctl.core.errors import UsageError

            raise UsageError(f"{name}={value!r}", hint=f"one of {', '.join(arguments)}")
        return value
    if origin is list:
        several = [value] if isinstance(value, (str, Path)) else value
        return [_converted(name, arguments[0], each) for each in several]
    if arguments:
        return _converted(name, arguments[0], value)
    if hint is Path:
        return Path(os.path.expanduser(value))  # noqa: PTH111 - leaves the name of an unknown user as it is
    return str(value) if hint is str else value
