"""``gpuctl sample``: why jobs wait and which GPUs are in use, asked of a live Slurm again and again."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message, print_json, print_table
from gpuctl.cli.live import check_timeout
from gpuctl.cli.options import IntervalOption, PlainJsonOption
from gpuctl.cli.settings import settings
from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from types import FrameType

    from gpuctl.ingest.slurm.sampler import Summary

DEFAULT_OUTPUT = Path("slurm-samples")
_LEAST_INTERVAL_S = 0.1


class _StopError(Exception):
    """The program was asked to end (SIGTERM), as a service is."""


def sample(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the files, one per day and program.")
    ] = DEFAULT_OUTPUT,
    interval: IntervalOption = 60.0,
    count: Annotated[
        int | None, typer.Option(metavar="N", help="Stop after N samples; by default, run until Ctrl-C.")
    ] = None,
    duration: Annotated[float | None, typer.Option(metavar="SECONDS", help="Stop after this many seconds.")] = None,
    squeue: Annotated[Path | None, typer.Option(metavar="FILE", help="Path of squeue, if not on PATH.")] = None,
    sinfo: Annotated[Path | None, typer.Option(metavar="FILE", help="Path of sinfo, if not on PATH.")] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Stop a program that takes longer; that sample is missing.")
    ] = 60.0,
    *,
    as_json: PlainJsonOption = False,
) -> None:
    """Poll squeue and sinfo of a Slurm cluster, and save the answers as text files that ingest and analyze read.

    Slurm keeps no history of why jobs waited; samples in addition to accounting make reasons and GPUs in use exact.
    """
    from gpuctl.ingest.slurm import sampler

    options = settings(context)
    _check(interval, count, duration)
    check_timeout(timeout)
    programs = sampler.programs(squeue, sinfo)
    summary = sampler.Summary()
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        sampler.sample(
            output,
            programs,
            interval_s=interval,
            count=count,
            duration_s=duration,
            on_failure=lambda fault: message(f"gpuctl: {fault}"),
            summary=summary,
            timeout_s=timeout,
        )
    except _StopError:
        pass
    except KeyboardInterrupt:
        _print(summary, as_json=as_json or options.json, color=options.color)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    _print(summary, as_json=as_json or options.json, color=options.color)


def _check(interval: float, count: int | None, duration: float | None) -> None:
    if not interval >= _LEAST_INTERVAL_S:
        raise UsageError(f"--interval {interval:g}: at least {_LEAST_INTERVAL_S} seconds")
    if count is not None and duration is not None:
        raise UsageError("--count and --duration: give only one")
    if (count is not None and count < 1) or (duration is not None and not duration >= 0):
        raise UsageError("--count is at least 1, --duration at least 0 seconds")


def _stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _StopError


def _print(summary: Summary, *, as_json: bool, color: bool) -> None:
    if as_json:
        print_json({"samples": summary.samples, "failed": summary.failed, "rows": summary.rows})
        return
    print_table(("file", "rows"), list(summary.rows.items()), color=color)
    message(f"{summary.samples} samples, {summary.failed} calls failed")
