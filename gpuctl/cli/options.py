"""The options that several commands share, each written once, and groups of them, each one argument of a command.

Typer reads options from a function's arguments. With `grouped` an argument may be a dataclass of options: the command
line and its help are the same, and the command gets the group.
"""

from __future__ import annotations

import functools
import inspect
import sys
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import typer

from gpuctl.cli import complete
from gpuctl.core.errors import UsageError
from gpuctl.services.options import Charging, Filters, GpuFigures, LogReading, Reliability, Site

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.cli.settings import Settings


class OutputFormat(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    MARKDOWN = "markdown"
    LATEX = "latex"
    PARQUET = "parquet"


def chosen_format(
    output_format: OutputFormat | None, *, as_json: bool, output: Path | None, tables: Sequence[str] | None
) -> OutputFormat | None:
    """The format that the options ask for; None for what suits where it goes.

    Raises:
        UsageError: the options contradict each other.
    """
    if as_json and output_format not in {None, OutputFormat.JSON}:
        raise UsageError(f"--json and --format {output_format} contradict each other", hint="give only one")
    shape = OutputFormat.JSON if as_json else output_format
    if shape is OutputFormat.PARQUET and output is None and sys.stdout.isatty():
        raise UsageError("--format parquet writes bytes that no terminal shows", hint="add --output FILE")
    if shape is OutputFormat.PARQUET and len(set(tables or ())) != 1:
        raise UsageError("one Parquet file holds one table", hint="choose it with --table, or use --parquet DIR")
    return shape


def _zone(name: str | None) -> str | None:
    """Refuse what is no time zone, before anything is read."""
    if name is not None:
        from gpuctl.core.local_time import check_timezone

        check_timezone(name)
    return name


# what is read
TracesArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH...", help="Log files, directories or archives, or one trace store (.duckdb)."),
]
ClusterOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Cluster of the store; needed if it holds several.")
]
TimezoneOption = Annotated[
    str | None,
    typer.Option(
        metavar="ZONE",
        callback=_zone,
        help="Time zone of times without one, e.g. Europe/Berlin. Default: the format's.",
    ),
]
LogTimezoneOption = Annotated[
    str | None,
    typer.Option(metavar="ZONE", callback=_zone, help="Time zone of log times without one. Default: the format's."),
]
StampTimezoneOption = Annotated[
    str | None,
    typer.Option(metavar="ZONE", callback=_zone, help="Time zone of timestamps without one, e.g. Europe/Berlin."),
]
LOG_FORMAT_HELP = (
    "Format of the files given explicitly, overriding detection; in directories, decides between formats that both "
    "fit. gpuctl formats lists the names; FILE.py:NAME is your own format."
)
LogFormatOption = Annotated[str | None, typer.Option("--log-format", metavar="NAME", help=LOG_FORMAT_HELP)]
ColumnsOption = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Columns, in order, of sacct text that has no header: JobIDRaw,State,..."),
]
LogColumnsOption = Annotated[
    str | None, typer.Option(metavar="A,B", help="Columns, in order, of sacct text that has no header.")
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="With --columns: column separator, e.g. '~' or '\\t'. Default: detected."),
]
CumulativeOption = Annotated[
    bool, typer.Option("--cumulative", help="The bytes of a CSV job_id,t,bytes are counters, not differences.")
]
JobLogsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--job-logs",
        metavar="PATTERN",
        help="Location of the jobs' own output below a PATH: '{job}/{attempt}/{stream}', 'logs/%x-%j.out'; repeatable.",
    ),
]
SignaturesOption = Annotated[
    list[Path] | None,
    typer.Option("--signatures", metavar="FILE", help="File of your own failure signatures; repeatable."),
]
LearnedOption = Annotated[
    bool,
    typer.Option(
        "--learned/--no-learned",
        help="If no signature explains a log, classify its last lines with a model trained on recorded failures.",
    ),
]

MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="THEIRS=OURS",
        help="Meaning of a column in a CSV of jobs, e.g. gpu_num=num_gpus; or a TOML file of such mappings; "
        "repeatable.",
    ),
]
UnitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--unit", metavar="OURS=UNIT", help="Unit of a mapped column, e.g. duration=min, mem_mb=gb; repeatable."
    ),
]
SwfUnitOption = Annotated[
    str | None,
    typer.Option(
        "--swf-unit",
        metavar="UNIT",
        help="Meaning of a processor in SWF or Batsim: core, gpu or node.  [default: core]",
    ),
]
GpusPerNodeOption = Annotated[
    str | None,
    typer.Option(
        "--gpus-per-node",
        metavar="N|FILE",
        help="GPUs of each node, or a CSV with columns node,gpus: jobs without a GPU count in any source then hold "
        "all GPUs of their nodes.",
    ),
]
IntervalOption = Annotated[float, typer.Option(metavar="SECONDS", help="Time between samples.")]

# how it is understood
SlurmConfOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="PATH", help="Configuration for the policy slurm, as for replay; repeatable."),
]
YarnConfOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="PATH", help="Configuration for yarn-capacity and yarn-fair, as for replay; repeatable."),
]
QuotasOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="CSV with columns vc,quota_gpus: quota of each queue in GPUs. Default: inferred."
    ),
]
RacksOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="CSV with columns node,rack. Default: from the logs, else inferred."),
]
BorrowBelowOption = Annotated[
    float | None,
    typer.Option(
        metavar="F",
        min=0.0,
        max=1.0,
        help="A queue may exceed its quota while at most this share of all GPUs is in use; 0: never. Default: "
        "inferred.",
    ),
]

EngineOption = Annotated[
    str,
    typer.Option(
        metavar="WHERE",
        help="Where an experiment runs: local (the processors of this machine), dask://HOST:PORT (Dask workers) or "
        "slurm (Dask workers in submitted jobs).",
    ),
]


def _table_name(text: str) -> str:
    from gpuctl.queries.sections import FORMER_NAMES

    return FORMER_NAMES.get(text, text)


# where results go
TableOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        parser=_table_name,
        autocompletion=complete.tables,
        help="Print only this table, even a long one omitted by default; repeatable.",
    ),
]
FormatOption = Annotated[
    OutputFormat | None, typer.Option("--format", help="Output format. Default: table on a terminal, tsv into a pipe.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Short for --format json, with the tables of an HTML page.")]
PlainJsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OutputOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write to this file instead of standard output.")
]
NotesOption = Annotated[
    bool, typer.Option("--notes", help="Also print caveats, and the population and definition of each figure.")
]
AllOption = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Print every table instead of the summary screen; on a terminal, through a pager. With --json, include "
        "tables with one row per job.",
    ),
]
WindowOption = Annotated[
    str | None,
    typer.Option(metavar="A..B", help="Only jobs submitted at or after A and before B: seconds, or ISO dates."),
]
ResourcesOption = Annotated[
    str, typer.Option(metavar="A,B", help="Resources a job needs to start: gpu, or gpu with cpu, mem or both.")
]
HtmlOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write one self-contained HTML page.")]
CsvOption = Annotated[Path | None, typer.Option(metavar="DIR", help="Also write every table to DIR/<table>.csv.")]
LogsStoreOption = Annotated[Path | None, typer.Option("--db", metavar="FILE", help="Trace store for the logs.")]
TrainingFolderOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for training checkpoints; an interrupted training resumes from there."),
]
JobSeedOption = Annotated[int, typer.Option(metavar="S", min=0, help="Random seed; the same seed gives the same jobs.")]
RuleDepthOption = Annotated[
    int, typer.Option(metavar="N", min=1, max=20, help="Maximum number of conditions per rule.")
]
RuleRowsOption = Annotated[int, typer.Option(metavar="N", min=1, help="Minimum number of rows per rule.")]
RulesOption = Annotated[int, typer.Option(metavar="N", min=2, max=4096, help="Maximum number of rules.")]
ParquetOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Also write every table to DIR/<table>.parquet.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Value of a parameter $NAME in your own SQL; repeatable."),
]
FiguresOption = Annotated[
    Path | None,
    typer.Option(
        "--figures",
        metavar="DIR",
        help="Also write every chart as SVG, PDF and PNG for a paper's column, and its rows as CSV.",
    ),
]
KeepOption = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="NAME",
        help="Also save the result under this name in the store in use or in --db (overwrites), for gpuctl report.",
    ),
]


_DECLARED: dict[type, dict[str, Any]] = {}
"""By record, how the command line offers each of its fields."""


def declare(record: type, **fields_of: Any) -> None:
    """Say how the command line offers a record of options (`grouped`).

    Args:
        record: a class of `gpuctl.services.options`, whose fields have types and defaults.
        fields_of: by field, a ``typer.Option``, or an annotation that other commands use, too.
    """
    _DECLARED[record] = fields_of


declare(
    LogReading,
    cluster=ClusterOption,
    timezone=LogTimezoneOption,
    log_format=LogFormatOption,
    columns=LogColumnsOption,
    delimiter=DelimiterOption,
)
declare(
    Site,
    job_logs=JobLogsOption,
    signatures=SignaturesOption,
    learned=LearnedOption,
    quotas=QuotasOption,
    racks=RacksOption,
    borrow_below=BorrowBelowOption,
    map=MapOption,
    unit=UnitOption,
    swf_unit=SwfUnitOption,
    gpus_per_node=GpusPerNodeOption,
)
declare(
    GpuFigures,
    idle_after=typer.Option(metavar="MIN", min=0, help="A GPU counts as idle from this many minutes at 0 %."),
    min_coverage=typer.Option(
        metavar="SHARE", min=0, max=1, help="Share of a job's GPU-time that samples must cover for figures of it."
    ),
    correct_clocks=typer.Option(
        help="Move samples of nodes whose clocks differ from the scheduler's; auto: on strong evidence."
    ),
)
declare(
    Charging,
    prices=typer.Option(
        metavar="FILE",
        help="Prices for the tables charges...: CSV with gpu_type,price_per_gpu_hour and, as needed, account,from,to.",
    ),
    period_timezone=typer.Option(
        metavar="ZONE", help="Zone in which days, weeks, months and quarters of --by begin. Default: that of the log."
    ),
    forgive=typer.Option(
        metavar="A,B", help="Do not charge attempts that ended in these states, e.g. node_fail,preempted."
    ),
)
declare(
    Reliability,
    window=typer.Option(
        metavar="B:A",
        help="Times before and after an attempt's end in which a node event or XID counts as its cause. "
        "Default: 15m:5m; Meta's is 10m:5m.",
    ),
    checkpoint_assumed=typer.Option(
        metavar="TIME", help="Time between checkpoints of runs whose logs show none. Default: 1h."
    ),
    sizes=typer.Option(metavar="N,N", help="GPUs of jobs for which mttf_by_size projects, too."),
    run_key=typer.Option(
        metavar="name=REGEX", help="Jobs of a user are one run if REGEX, or its first group, matches the same text."
    ),
    runs=typer.Option(metavar="FILE", help="CSV with job,run: jobs that are one run."),
)
declare(
    Filters,
    user=typer.Option(metavar="A,B", help="Only jobs of these users; repeatable."),
    queue=typer.Option(metavar="A,B", help="Only jobs in these queues; repeatable."),
    account=typer.Option(metavar="A,B", help="Only jobs of these accounts; repeatable."),
    state=typer.Option(
        metavar="A,B",
        autocompletion=complete.states,
        help="Only jobs in these states (completed, failed, killed ...); repeatable.",
    ),
    gpus=typer.Option(metavar="A..B", help="Only jobs with this many GPUs: 4, 4..8, ..1 or 8.. ."),
    since=typer.Option(
        metavar="TIME", help="Only jobs submitted at or after this ISO date or time, on the log's clock."
    ),
    until=typer.Option(metavar="TIME", help="Only jobs submitted before this date or time."),
)


@dataclass(frozen=True)
class AnswerOptions:
    """In which format an answer is printed, and where."""

    output_format: FormatOption = None
    as_json: JsonOption = False
    output: OutputOption = None

    def shape(self, given: Settings, tables: Sequence[str] | None = None) -> OutputFormat | None:
        """The format of the output; None for what suits where it goes.

        Raises:
            UsageError: the options contradict each other.
        """
        return chosen_format(self.output_format, as_json=self.as_json or given.json, output=self.output, tables=tables)


@dataclass(frozen=True)
class TableOptions:
    """Which tables are printed, how, and where."""

    table: TableOption = None
    every: AllOption = False
    notes: NotesOption = False
    output_format: FormatOption = None
    as_json: JsonOption = False
    output: OutputOption = None

    def shape(self, given: Settings) -> OutputFormat | None:
        """The format of the output; None for what suits where it goes.

        Raises:
            UsageError: the options contradict each other.
        """
        return chosen_format(
            self.output_format, as_json=self.as_json or given.json, output=self.output, tables=self.table
        )


def parameter_values(given: Sequence[str]) -> dict[str, str | int | float]:
    """The values of ``--set``, numbers as such.

    Raises:
        UsageError: one is not ``NAME=VALUE``.
    """
    from gpuctl.queries.catalogue import parsed_value

    parts = [text.partition("=") for text in given]
    bad = next((text for text, part in zip(given, parts, strict=True) if not part[0].strip() or not part[1]), None)
    if bad is not None:
        raise UsageError(f"--set {bad}: expected NAME=VALUE", hint="--set gpus=8")
    return {name.strip(): parsed_value(value) for name, _, value in parts}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose arguments may be dataclasses of options: Typer sees their fields, in order, in their place.

    Args:
        command: its annotations, and those of the groups, must be known when it is defined.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    flat: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            flat.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[name] = kind
        annotations = offered(kind)
        flat += [
            inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=annotations[one.name]
            )
            for one in fields(kind)
        ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {name: kind(**{one.name: given.pop(one.name) for one in fields(kind)}) for name, kind in groups.items()}
        command(**given, **made)

    # Typer looks at both; the wrapped function would hide them
    vars(run)["__signature__"] = inspect.Signature(flat)
    run.__annotations__ = {one.name: one.annotation for one in flat}
    del vars(run)["__wrapped__"]
    return run


def offered(kind: Any) -> dict[str, Any]:
    """By field of a record of options, its annotation for Typer: its own, or its type with what was declared of it."""
    annotated: Any = Annotated
    hints = get_type_hints(kind, include_extras=True)
    for name, how in _DECLARED.get(kind, {}).items():
        hints[name] = annotated[hints[name], how] if isinstance(how, typer.models.OptionInfo) else how
    unknown = [name for name, hint in hints.items() if get_origin(hint) is not Annotated]
    if unknown:
        raise LookupError(f"{kind.__name__}.{unknown[0]}: not declared as an option")
    return hints
