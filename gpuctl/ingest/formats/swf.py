"""The Standard Workload Format (SWF 2.2) of the Parallel Workloads Archive, and its extensions.

A row is a job: 18 cells on white space, -1 if nothing is stated. Times are seconds after ``UnixStartTime`` of the
header, or since 1970 where they are as large as that; else is unknown their date. A job without a wait has no start:
of some logs the submissions are starts in fact. One that was cancelled (status 5) and has no run time never started:
its wait is the time until it gave up. SWF counts processors: they are GPUs only if ``--swf-unit gpu`` states so.
Memory is what was requested for each processor, else what each used.

A job that follows another one (fields 17 and 18) is in ``job_dependencies``. Where each of the first rows follows a
job, the cells are a filler: the first job of a log can follow none.

Behind the 18 cells may stand, in any order, ``{node,node,...}``, the node of each processor, the name of a queue and
what PBS was requested (MetaCentrum); or GPUs used, a soft limit and ``site:mode:NxP``, of N nodes (Frontier), if the
cells of processors are not to be relied on. A row of column names may stand above them (Alea).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import UsageError
from gpuctl.core.local_time import LATEST_S, check_timezone
from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.ranges import LARGEST
from gpuctl.ingest.traces import swf_lines
from gpuctl.ingest.traces.jobs import Jobs
from gpuctl.ingest.traces.marks import words
from gpuctl.ingest.traces.processors import sizes, unit_of
from gpuctl.ingest.traces.swf_lines import CELLS, LINE, MORE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from gpuctl.ingest.traces.processors import Unit

_CANCELLED = 5
_STATES = {0: State.FAILED, 1: State.COMPLETED, _CANCELLED: State.KILLED}
NONE = "-1"
_FIRST_DATE_S = 631_152_000
"""1990: what begins later counts from 1970."""
_MOST_MACHINES = 100_000
_NODES, _SHAPE = r"^\{[^{}]*\}$", r"^[^:\s]*:[^:\s]*:(\d{1,7})x(\d{1,7})$"
_PBS, _WHOLE, _WORD = r"^\d+(?:\+\d+)*:ppn=", r"^-?\d{1,9}$", r"^[A-Za-z_][\w.@-]*$"


def load(stream: BinaryIO, sink: Sink, unit: Unit = "core") -> None:
    """Read jobs, attempts, placements, queues and nodes; see `Jobs` for jobs that are listed twice.

    Args:
        stream: the file.
        sink: takes the rows.
        unit: what a processor is.
    """
    header: dict[str, list[str]] = {}
    jobs, start, placed = Jobs(sink), None, False
    followers: list[pl.DataFrame] = []
    follow: bool | None = None
    for rows, rejects, data, first in swf_lines.rows(stream, header):
        sink.seen(rows.height + len(rejects))
        if start is None and rows.height:
            start = _start(header, rows, sink)
        if follow is None and rows.height:
            # the first job of a log can follow none
            follow = bool((rows["preceding"] == NONE).any())
        made = _jobs(rows, start or 0.0, unit, header, follow=bool(follow))
        lines = made[LINE].filter(made["fault"].is_not_null()).to_list()
        split = data.split(b"\n") if lines else []
        rejected = [
            (line, fault, split[line - first].decode("utf-8", "replace"))
            for line, fault in zip(lines, made["fault"].drop_nulls(), strict=True)
        ]
        for number, reason, raw in sorted([*rejects, *rejected]):
            sink.reject(number, reason, raw)
        sound = made.filter(made["fault"].is_null()) if lines else made
        loaded = jobs.add(sound, partial(_raw, data, first))
        placed |= _place(loaded, sink, unit)
        if follow:
            followers += _followers(loaded)
    jobs.finish()
    if followers:
        import polars as pl

        sink.insert("job_dependencies", pl.concat(followers))
    if not placed:
        _machines(header, sink, unit)


def _raw(data: bytes, first: int, lines: Sequence[int]) -> list[str]:
    split = data.split(b"\n")
    return [split[line - first].decode("utf-8", "replace") for line in lines]


def _start(header: Mapping[str, list[str]], rows: pl.DataFrame, sink: Sink) -> float:
    """Second 0 of the file, since 1970; sets the sink's epoch."""
    zone = (header.get("timezonestring") or [""])[0]
    try:
        check_timezone(zone or None)
        if zone and sink.timezone == "UTC":
            sink.timezone = zone
    except UsageError:
        pass  # a zone that is unknown: the user's zone, or none
    start = _number((header.get("unixstarttime") or [""])[0])
    if start is not None and start > 0:
        sink.epoch = "real"
        return start
    submit = rows["submit"].filter(rows["submit"] >= 0)
    sink.epoch = "real" if submit.len() and submit.min() >= _FIRST_DATE_S else "relative"  # type: ignore[operator]
    return 0.0


def _number(text: str) -> float | None:
    try:
        value = float(text.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return None
    return value if abs(value) < LATEST_S else None


def _names(header: Mapping[str, list[str]], key: str) -> dict[str, str]:
    """What numbers stand for: ``Queue: 1 batch``."""
    found = (text.split(None, 1) for text in header.get(key, []))
    return {cells[0]: cells[1].strip() for cells in found if len(cells) == 2 and cells[0].isdecimal()}


def _followers(loaded: pl.DataFrame) -> list[pl.DataFrame]:
    """Which jobs follow another one: none, or one frame; Alea names several of them as ``4&5&6``."""
    import polars as pl

    if (loaded["preceding"] == NONE).all():
        return []
    before = pl.col("preceding").str.split("&").alias("after_job")
    pairs = loaded.select("job", before, think_s=pl.col("think").clip(0)).explode("after_job")
    numbers = pl.col("after_job").str.strip_chars().cast(pl.Float64, strict=False)
    known = pl.when(numbers >= 0).then(numbers).cast(pl.Int64, strict=False)
    pairs = pairs.with_columns(after_job=known.cast(pl.String))
    pairs = pairs.filter(pl.col("after_job").is_not_null() & (pl.col("after_job") != pl.col("job")))
    return [pairs.with_columns(pl.col("think_s").fill_nan(None).fill_null(0.0))] if pairs.height else []


def _jobs(
    rows: pl.DataFrame, start: float, unit: Unit, header: Mapping[str, list[str]], *, follow: bool
) -> pl.DataFrame:
    """Make rows of ``jobs`` of cells; why one is none stands in ``fault``."""
    import polars as pl

    cell = {name: pl.when(pl.col(name) >= 0).then(pl.col(name)) for name in CELLS if name != "preceding"}
    submit, wait, run = cell["submit"], cell["wait"], cell["run"]
    gave_up = (pl.col("status") == _CANCELLED) & run.is_null()
    left = pl.when(wait.is_not_null()).then(submit + wait)
    extra = _extras(rows)
    # no job ran on no processor
    procs = pl.coalesce(pl.when(cell["procs"] > 0).then(cell["procs"]), cell["asked_procs"], cell["procs"])
    size = sizes(procs, unit)
    if extra.get("frontier") is not None:
        size = {
            "gpus": pl.col("extra gpus").cast(pl.Float64),
            "cpus": pl.lit(None, pl.Int64),
            "nodes": pl.col("extra nodes"),
        }
    queue, partition = (_named(header, name) for name in ("queue", "partition"))
    sound = pl.all_horizontal(pl.col(n).is_between(-1e15, 1e15) for n in CELLS if n != "preceding")
    late = (submit + start + pl.coalesce(wait, 0) + pl.coalesce(run, 0)) > LATEST_S
    huge = pl.max_horizontal(procs, cell["asked_procs"]) > LARGEST
    marked = words(rows, _quirks(cell, header, follow=follow))
    return rows.with_columns(**extra.get("columns", {}), quirks=marked).with_columns(
        job=_label("job"),
        submit_ts=_instant(submit, start),
        start_ts=_instant(pl.when(~gave_up.fill_null(value=False)).then(left), start),
        end_ts=_instant(left + pl.when(gave_up).then(0.0).otherwise(run), start),
        run_span_s=run,
        state=pl.col("status").replace_strict(_STATES_BY_NUMBER, default=State.UNKNOWN.value, return_dtype=pl.String),
        source_state=pl.col("status").cast(pl.Int64, strict=False).cast(pl.String),
        user=_label("user"),
        account=_label("group"),
        name=_label("application"),
        queue=pl.coalesce("extra queue", queue) if "columns" in extra else queue,
        partition=partition,
        mem_mb=_memory(cell, procs).round().cast(pl.Int64, strict=False),
        time_limit_s=cell["asked_time"].round().cast(pl.Int64, strict=False),
        **size,
        fault=pl.when(pl.col("job").is_null() | (pl.col("job") < 0)).then(pl.lit("no job number"))
        .when(~sound).then(pl.lit("a number is out of range"))
        .when(submit.is_null()).then(pl.lit("no submission"))
        .when(late | huge).then(pl.lit("a number is out of range")),
    )  # fmt: skip


def _memory(cell: Mapping[str, pl.Expr], procs: pl.Expr) -> pl.Expr:
    """MiB of a whole job: SWF has KiB per processor. Used memory of 0 is not known."""
    import polars as pl

    requested = cell["asked_memory"] * pl.coalesce(pl.when(cell["asked_procs"] > 0).then(cell["asked_procs"]), procs)
    return pl.coalesce(requested, pl.when(cell["memory"] > 0).then(cell["memory"]) * procs) / 1024


def _named(header: Mapping[str, list[str]], name: str) -> pl.Expr:
    """A number that stands for a name, as the name of the header's if it has one."""
    names = _names(header, name)
    return _label(name).replace(names) if names else _label(name)


_STATES_BY_NUMBER = {float(number): state.value for number, state in _STATES.items()}


def _label(name: str) -> pl.Expr:
    """A number that stands for a name, as text; null for -1."""
    import polars as pl

    return pl.when(pl.col(name) >= 0).then(pl.col(name).cast(pl.Int64, strict=False)).cast(pl.String)


def _instant(seconds: pl.Expr, start: float) -> pl.Expr:
    import polars as pl

    micros = ((seconds + start) * 1_000_000).round()
    sound = micros.is_between(0, LATEST_S * 1_000_000)
    return pl.when(sound).then(micros).cast(pl.Int64, strict=False).cast(pl.Datetime("us", "UTC"))


def _quirks(cell: Mapping[str, pl.Expr], header: Mapping[str, list[str]], *, follow: bool) -> dict[str, pl.Expr]:
    """Words for what does not fit together, and where; nothing of it is refused."""
    import polars as pl

    most = _number((header.get("maxprocs") or [""])[0])
    follows = pl.col("preceding") != NONE
    return {
        "no_wait": cell["wait"].is_null(),
        "no_run_time": cell["run"].is_null() & (pl.col("status") != _CANCELLED),
        "above_max_procs": cell["procs"] > most if most and most > 0 else pl.lit(value=False),
        "preceding_unusable": follows & (pl.col("preceding").cast(pl.Float64, strict=False) == pl.col("job"))
        if follow
        else follows,
        "size_not_as_asked": cell["procs"] != cell["asked_procs"],
        "ran_past_limit": (cell["run"] > cell["asked_time"]) & (cell["asked_time"] > 0),
        "cpu_time_over_run": cell["cpu_time"] > cell["run"],
        "partial_record": pl.col("status").is_in([2.0, 3.0, 4.0]),
    }


def _extras(rows: pl.DataFrame) -> dict[str, dict[str, pl.Expr]]:
    """What stands behind the 18 cells, by its form; nothing if nothing does."""
    import polars as pl

    there = [name for name in MORE if rows[name].null_count() < rows.height]
    if not there:
        return {}

    def first(form: str) -> pl.Expr:
        return pl.coalesce(pl.when(pl.col(name).str.contains(form)).then(name) for name in there)

    shape = first(_SHAPE)
    frontier = bool(rows.select(shape.is_not_null().any()).item())
    columns = {"extra queue": first(_WORD), "extra hosts": first(_NODES)}
    if frontier:
        columns["extra gpus"] = first(_WHOLE).cast(pl.Int64, strict=False)
        columns["extra nodes"] = shape.str.extract(_SHAPE, 1).cast(pl.Int32, strict=False)
    return {"columns": columns, **({"frontier": {}} if frontier else {})}


def _place(loaded: pl.DataFrame, sink: Sink, unit: Unit) -> bool:
    """Write where jobs ran, for those that show it: one entry per processor."""
    import polars as pl

    if "extra hosts" not in loaded.columns or loaded["extra hosts"].null_count() == loaded.height:
        return False
    hosts = pl.col("extra hosts").str.strip_chars("{}").str.split(",")
    tall = loaded.drop_nulls("extra hosts").select("job", machine=hosts).explode("machine")
    tall = tall.with_columns(pl.col("machine").str.strip_chars()).filter(pl.col("machine") != "")
    count = pl.len().cast(pl.Float64) if unit == "gpu" else pl.lit(0.0)
    placed = tall.group_by("job", "machine", maintain_order=True).agg(gpus=count)
    sink.insert("placements", placed.with_columns(attempt=pl.lit(0, pl.Int32)))
    return True


def _machines(header: Mapping[str, list[str]], sink: Sink, unit: Unit) -> None:
    """Write the nodes that the header counts: their names are ours."""
    import polars as pl

    procs, nodes = (int(_number((header.get(key) or [""])[0]) or 0) for key in ("maxprocs", "maxnodes"))
    procs = procs or nodes
    if (
        not 0 < procs < 2**31
        or sink.query("SELECT count(*) FROM machines WHERE cluster = $cluster", {"cluster": sink.cluster}).item()
    ):
        return
    nodes = nodes if 0 < nodes <= min(procs, _MOST_MACHINES) and procs % nodes == 0 else 1
    names = [f"node{k:0{len(str(nodes))}}" for k in range(1, nodes + 1)]
    frame = pl.DataFrame({"machine": names}).with_columns(
        cluster=pl.lit(sink.cluster),
        gpus_labelled=pl.lit(procs // nodes if unit == "gpu" else 0, pl.Int32),
        cpus=pl.lit(procs // nodes if unit == "core" else None, pl.Int32),
    )
    sink.insert("machines", frame)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header's comments, Alea's row of names, or a first row of 18 numbers and more."""
    del name
    header: dict[str, list[str]] = {}
    swf_lines.keys(head[:20_000], header)
    if header.keys() & {"unixstarttime", "maxprocs", "maxnodes", "maxjobs", "maxrecords"}:
        return "comments of SWF"
    lines = (line.strip() for line in head.split(b"\n")[:200])
    first = next((line for line in lines if line and not line.startswith((b";", b"#"))), b"")
    if first.startswith(b"id\tsubmit\twait\truntime"):
        return "header of SWF's columns"
    cells = first[:100_000].split()
    if not len(CELLS) <= len(cells) <= len(CELLS) + len(MORE):
        return None
    numbers = [c for n, c in enumerate(cells[: len(CELLS)]) if CELLS[n] == "preceding" or swf_lines.is_number(c)]
    return f"a first row of {len(cells)} cells of SWF" if len(numbers) == len(CELLS) else None


FORMAT = Format(
    name="swf",
    title="Standard Workload Format 2.2, with the extensions of MetaCentrum, Frontier and Alea",
    fills=("jobs", "attempts", "placements", "queues", "machines", "job_dependencies"),
    file_names=("*.swf",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    parser_version=2,
)


def with_unit(unit: str) -> Format:
    """The same format, for files whose processors are something else.

    Raises:
        UsageError: no such unit.
    """
    return replace(FORMAT, load=partial(load, unit=unit_of(unit)))
