"""``gpuctl accel``: layers of many tenants' networks on accelerators of several kinds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message
from gpuctl.cli.examples import WithExamples
from gpuctl.cli.options import (
    AnswerOptions,
    ClusterOption,
    FormatOption,
    JsonOption,
    OutputFormat,
    ParquetOption,
    TableOption,
    chosen_format,
    grouped,
)
from gpuctl.cli.output import announce_written, check_tables, command_line, print_result, start, write_files, write_text
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import SourceInfo
    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.recorded import Arrivals
    from gpuctl.research.accel.requests import Requests
    from gpuctl.services.frontend import Progress

RequestsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="REQUESTS.csv", help="CSV with the columns request, tenant, model, qos, arrival_us, deadline_us."
    ),
]
SystemOption = Annotated[
    str,
    typer.Option(
        metavar="S",
        help="Sub-accelerators that share one memory, KIND:COUNT,...@BYTES_PER_US; six: simba-l:1,simba-s:2,"
        "eyeriss-l:1,eyeriss-s:2@16000.",
    ),
]
TablesOption = Annotated[
    Path | None,
    typer.Option(
        "--tables",
        metavar="FILE",
        help="CSV of costs: model, idx, kind, compute_us, dram_bytes, energy_uj. Default: gpuctl's own.",
    ),
]
KindsOption = Annotated[
    Path | None,
    typer.Option("--kinds", metavar="FILE", help="CSV with the columns kind, static_mw. Default: gpuctl's own."),
]
ModelsOption = Annotated[
    str, typer.Option(metavar="A,B", help="Models of the requests; all: every model in the table.")
]
PeriodOption = Annotated[
    float | None,
    typer.Option(metavar="US", help="Decide only at multiples of this time. Default: whenever something can start."),
]
DropOption = Annotated[bool, typer.Option("--drop", help="Drop requests that can no longer be in time.")]

accel = typer.Typer(
    name="accel",
    help="Schedule layers of many tenants' networks on accelerators that share a memory.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@accel.callback()
def _group() -> None:
    """Schedule layers of many tenants' networks on accelerators that share a memory."""


@accel.command(cls=WithExamples)
@grouped
def simulate(
    context: typer.Context,
    *,
    requests: RequestsArgument,
    system: SystemOption = "six",
    policy: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="ORDER-PLACE or ORDER-PLACE+h; orders: fcfs, edf, llf, sjf, mix, random; places: idle, eft, best; "
            "+h: requests that are too late go last. Also genetic and exhaustive, which know all arrivals, and "
            "relmas:MODEL, a model from gpuctl accel train.",
        ),
    ] = "fcfs-eft,edf-eft,edf-eft+h,llf-eft,sjf-eft,mix-eft",
    period: PeriodOption = None,
    drop: DropOption = False,
    tables: TablesOption = None,
    kinds: KindsOption = None,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write every layer to this CSV.")] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write DIR/summary.csv, DIR/groups.csv and DIR/requests.csv."),
    ] = None,
    parquet: ParquetOption = None,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Simulate requests under policies: share in time, fairness, speed and energy."""
    command = start(context, answer, table, csv=csv, parquet=parquet, log=log)
    from gpuctl.research.accel import compare
    from gpuctl.research.accel import simulate as simulator
    from gpuctl.research.accel import tables as of_results
    from gpuctl.research.accel.requests import read_requests

    check_tables(table, [name for name in of_results.TABLES if log is not None or name != "accel_layers"])
    names = compare.names_of(policy)
    rules = simulator.Rules(_period(period), drop)
    machine = machine_for(system, tables, kinds)
    found, notes = compare.loaded(names, machine)
    stream = read_requests(requests, machine)
    with command.given.progress() as bar:
        announce(bar, machine, stream)
        outcomes = compare.run(names, found, machine, stream, rules, bar.at)
    result = of_results.result(
        outcomes, stream, machine, rules, log=log is not None, command=command_line(),
        sources=(_source(requests, len(stream)),), warnings=tuple(notes),
    )  # fmt: skip
    for each in notes:
        command.given.tell(f"note: {each}")
    if log is not None:
        from gpuctl.core.file_io import write_atomically
        from gpuctl.reports.export.files import write_tables

        write_atomically(
            log,
            lambda file: write_tables(
                result, "csv", file, names=["accel_layers"], spreadsheet=command.given.spreadsheet
            ),
        )
    if csv is not None:
        summed = replace(result, tables=tuple(each for each in result.tables if each.name in of_results.FILES))
        write_files(summed, command.given, csv=csv, files=of_results.FILES)
    replace(command, csv=None).print(result, (csv,))


@accel.command()
def generate(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    system: SystemOption = "six",
    models: ModelsOption = "all",
    n: Annotated[int, typer.Option("--n", metavar="N", min=1, max=10_000_000, help="Requests.")] = 100,
    load: Annotated[
        float,
        typer.Option(metavar="L", help="Load; 1: as many requests as the system can just serve if perfectly used."),
    ] = 0.9,
    seed: Annotated[int, typer.Option(metavar="S", help="Random seed; the same seed gives the same requests.")] = 1,
    burst: Annotated[bool, typer.Option("--burst", help="Alternate periods of half and double the rate.")] = False,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="TRACE",
            help="Take the first N arrivals from a trace of requests to services (a log or a trace store), stretched "
            "to the load.",
        ),
    ] = None,
    service: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only requests to this service of the trace. Default: all.")
    ] = None,
    cluster: ClusterOption = None,
    tables: TablesOption = None,
    output_format: FormatOption = None,
    as_json: JsonOption = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of standard output."),
    ] = None,
) -> None:
    """Draw requests for gpuctl accel simulate: models, arrivals, deadlines, tenants."""
    given = settings(context)
    shape = chosen_format(output_format, as_json=as_json or given.json, output=output, tables=["accel_stream"])
    check_outputs(context, {"--output": output})
    from gpuctl.research.accel import requests as streams
    from gpuctl.research.accel import tables as of_results

    if not 0.001 <= load <= 1000:
        raise UsageError(f"--load {load:g}: expected a number from 0.001 to 1000")
    if recorded is None and (service is not None or cluster is not None):
        raise UsageError("--service and --cluster are for --from", hint="leave them out")
    if recorded is not None and burst:
        raise UsageError("--burst is for arrivals that are drawn, not for --from", hint="leave one of them out")
    machine = machine_for(system, tables, None)
    some = streams.models_of(models, machine)
    arrivals = None if recorded is None else _recorded(recorded, cluster, service, n, given)
    count = n if arrivals is None else len(arrivals.times_us)
    if count < n:
        given.tell(f"note: the trace has {count:,} requests, not {n:,}")
    made = streams.generate(machine, some, count, load, seed, burst=burst, recorded=arrivals)
    if shape in {None, OutputFormat.CSV} and not given.spreadsheet:
        write_text(streams.csv_of(made, machine), output)
    else:
        result = of_results.stream(made, machine, command_line())
        print_result(result, shape or OutputFormat.CSV, output, ["accel_stream"], given)
    announce_written((output,), given)


@accel.command("tables")
@grouped
def list_tables(
    context: typer.Context,
    *,
    path: Annotated[
        Path | None, typer.Argument(metavar="[LAYERS.csv]", help="CSV of costs. Default: gpuctl's own.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check that the costs are possible; exit with code 1 if they are not.")
    ] = False,
    tables: TablesOption = None,
    kinds: KindsOption = None,
    answer: AnswerOptions,
) -> None:
    """List the cost of each model on each kind of sub-accelerator, from a table of costs."""
    command = start(context, answer)
    from gpuctl.core.notes import untrusted
    from gpuctl.research.accel import check as of_costs
    from gpuctl.research.accel import tables as of_results
    from gpuctl.research.accel.costs import read_costs

    if path is not None and tables is not None:
        raise UsageError("two tables of costs are named", hint="leave --tables out")
    costs = read_costs(path or tables)
    wrong = of_costs.violations(costs, kinds) if check else []
    warnings = tuple(untrusted(each) for each in wrong)
    result = of_results.models(of_costs.overview(costs), costs.path, command_line(), warnings)
    command.print(result)
    for each in wrong:
        message(f"wrong: {each}")
    if check:
        command.given.tell(f"{costs.path}: {len(wrong)} violations")
    if wrong:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def machine_for(system: str, tables: Path | None, kinds: Path | None) -> Machine:
    """A system with its costs.

    Raises:
        UsageError: the system is none, or has kinds without costs.
        InputError: a table is none.
    """
    from gpuctl.research.accel.costs import machine_of, parse_system, read_costs

    wanted = parse_system(system)
    return machine_of(wanted, read_costs(tables), kinds)


def announce(bar: Progress, machine: Machine, *streams: Requests) -> None:
    """Report that the simulator is compiled, if it has to be."""
    from gpuctl.research.accel.simulate import is_ready

    if not is_ready(machine, streams):
        bar.tell("compiling the simulator (once; some 5 s)")


def _recorded(path: Path, cluster: str | None, service: str | None, count: int, given: Settings) -> Arrivals:
    if not path.exists():
        raise InputError("no such file or directory", path=str(path), hint="name a log of requests, or a trace store")
    from gpuctl.research.accel.recorded import read_arrivals
    from gpuctl.services.inputs import opened
    from gpuctl.services.options import LogReading
    from gpuctl.store.database import Store

    with opened([path], None, LogReading(cluster), given, doing="draw from") as found, Store(found.path) as store:
        return read_arrivals(store, found.cluster, service, count)


def _period(period: float | None) -> float:
    if period is not None and not 0.001 <= period <= 1e9:
        raise UsageError(
            f"--period {period:g}: expected 0.001 to 1e9 microseconds", hint="without it, decisions wait for no period"
        )
    return period or 0.0


def _source(path: Path, rows: int) -> SourceInfo:
    import hashlib

    from gpuctl.core.results import SourceInfo

    data = path.read_bytes() if path.is_file() else b""
    return SourceInfo(str(path), "accel-requests", hashlib.sha256(data).hexdigest(), len(data), rows, rows, 0)
