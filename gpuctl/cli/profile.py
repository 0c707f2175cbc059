"""``gpuctl profile record``: what a job reads over the network, recorded as it runs."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message
from gpuctl.cli.options import IntervalOption
from gpuctl.cli.settings import settings
from gpuctl.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

_LEAST_INTERVAL_S = 0.1

profile = typer.Typer(
    name="profile",
    help="Record jobs' network reads, to predict their run times.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@profile.callback()
def _profile() -> None:
    """Keep ``record`` a command of its own: Typer would make a lone one the whole."""


@profile.command()
def record(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    pid: Annotated[int | None, typer.Option(metavar="PID", min=1, help="Count bytes that this process reads.")] = None,
    iface: Annotated[
        str | None, typer.Option(metavar="NAME", help="Count bytes that this interface receives, e.g. eth0.")
    ] = None,
    interval: IntervalOption = 1.0,
    duration: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", help="Stop after this many seconds.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="New file to write to. Default: stdout.")
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Job name in the file. Default: pid-PID or the --iface NAME."),
    ] = None,
) -> None:
    """Record bytes read over the network as CSV (job_id,t,bytes) until the process ends, --for expires, or Ctrl-C.

    With --pid: bytes that its NFS mounts read from their servers; without NFS mounts, bytes that its network namespace
    receives. Every line is written at once, so nothing is lost if gpuctl is stopped, killed or interrupted by Ctrl-C
    (exit code 130).
    """
    from gpuctl.ingest.traffic import record as recorder

    quiet = settings(context).quiet
    if not interval >= _LEAST_INTERVAL_S:
        raise UsageError(f"--interval {interval:g}: at least {_LEAST_INTERVAL_S} seconds")
    if duration is not None and not duration > 0:
        raise UsageError(f"--for {duration:g}: more than 0 seconds")
    if pid is not None and iface is None:
        counters, name = recorder.of_process(pid), job or f"pid-{pid}"
    elif iface is not None and pid is None:
        counters, name = recorder.of_interface(iface), job or iface
    else:
        raise UsageError("give one of --pid and --iface", hint="gpuctl profile record --pid PID --output JOB.csv")
    if not name.isprintable() or not name.strip():
        raise UsageError(f"--job {name!r}: use only printable characters")
    message(f"counted: {counters.what}; {counters.note}", quiet=quiet)
    written: list[int] = []
    with counters, _opened(output) as out:
        out.write(",".join(recorder.HEADER) + "\n")
        try:
            recorder.record(counters, name, out, interval_s=interval, duration_s=duration, written=written)
        finally:
            where = "" if output is None else f" in {output}"
            message(f"{len(written)} samples, {sum(written)} bytes{where}", quiet=quiet)


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    """The file to write to, which must not be there yet: what was recorded cannot be recorded again."""
    if output is None:
        yield sys.stdout
        return
    try:
        file = output.open("x", encoding="utf-8")
    except FileExistsError:
        raise UsageError(f"{output} already exists", hint="give another file with --output, or move it") from None
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", path=str(output)) from error
    with file:
        yield file
