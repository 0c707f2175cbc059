"""``gpuctl convert``: the jobs of a trace in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpuctl.cli.options import MapOption, SwfUnitOption, TracesArgument, UnitOption, grouped
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.services.inputs import opened
from gpuctl.services.options import LogReading, Site

if TYPE_CHECKING:
    from typing import BinaryIO

    from gpuctl.workloads.convert import WrittenJobs


To = Literal[
    "swf",
    "philly",
    "philly-csv",
    "gavel",
    "shockwave",
    "tiresias",
    "pollux",
    "sia",
    "batsim",
    "jobs-csv",
    "inference-load",
]


@grouped
def convert(
    context: typer.Context,
    *,
    paths: TracesArgument = None,
    to: Annotated[To, typer.Option("--to", help="The format; jobs-csv is what gpuctl replay reads.")] = "jobs-csv",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file; required.")
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=100_000, help="Nodes of the inference cluster, for inference-load."),
    ] = None,
    swf_unit: SwfUnitOption = None,
    columns_map: MapOption = None,
    unit: UnitOption = None,
    logs: LogReading,
) -> None:
    """Write the jobs of a trace in the formats of other tools, or the load of services in the format of gpuctl replay.

    Data that the format cannot hold is lost, and jobs without a value that the format requires are left out; both are
    counted. If no row is left, nothing is written.
    """
    from gpuctl.core.errors import ExitCode, UsageError
    from gpuctl.core.file_io import write_atomically
    from gpuctl.core.storable_text import plural
    from gpuctl.store.database import Store
    from gpuctl.workloads.convert import convert as write

    given = settings(context)
    if output is None:
        raise UsageError("the output file is missing", hint="gpuctl convert TRACE --to swf -o OUT.swf")
    check_outputs(context, {"--output": output})
    site = Site(map=columns_map, unit=unit, swf_unit=swf_unit)
    done: list[WrittenJobs] = []
    faults: list[bool] = []

    def body(file: BinaryIO) -> None:
        with (
            opened(paths or [], None, logs, given, doing="convert", site=site, brief=True) as found,
            Store(found.path) as store,
        ):
            faults.append(found.failed)
            done.append(write(store, found.cluster, to, file, unit=swf_unit, nodes=nodes))

    write_atomically(output, body)
    for one in done:
        for text in one.notes:
            given.tell(text)
        given.tell(f"{output}: {plural(one.rows, 'row')} ({to})")
    if any(faults):
        raise typer.Exit(ExitCode.BAD_INPUT)
