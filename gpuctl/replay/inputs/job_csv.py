"""Reads jobs to replay from a plain CSV: ``job_id,submit_time,duration,num_gpus`` and some optional columns.

Times are seconds, whole or fractional, from an instant of the file's own choice. All errors of the file are found
before anything runs and reported in one message.
"""

from __future__ import annotations

import csv
import re
import zlib
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
import zstandard

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.core.notes import NamedValue, note
from gpuctl.core.storable_text import storable
from gpuctl.replay.inputs.check import SHOWN, circular
from gpuctl.replay.models.records import Workload
from gpuctl.replay.models.resources import GPUS_ONLY
from gpuctl.replay.models.traits import TRAITS

if TYPE_CHECKING:
    from os import PathLike

    from gpuctl.replay.models.records import Floats, Ints

NEEDED = ("job_id", "submit_time", "duration", "num_gpus")
OPTIONAL = (
    "vc", "requested_time", "user", "gpu_type", "app", "depends_on", "think_time", "eligible_time", "predicted_time",
    "epochs", "checkpoint_bytes", "account", "qos", "nodes", "nice", "min_gpus", "max_gpus", "job_class",
    "speed_curve", "stop_fraction", "deadline", "sharescore", "checkpoint_s",
    *TRAITS,
)  # fmt: skip
MINUTES = "limit_min"
"""A column that marks a queue of whole nodes in whole minutes, as in the simulator of Mirage's authors."""

_QUEUE_FILE = {"num_gpus": "nodes", "requested_time": MINUTES}
MORE = ("num_cpus", "mem_mb")
"""Columns that are read if CPUs and memory count."""

NO_QUEUE = "(none)"
"""The queue of jobs that name none, as in analyses."""

MOST_GPUS = 2**31 - 1
MOST_SECONDS = 1e12
"""Some 30 000 years: anything above is a mistake of units, and would lose all precision below a second."""

_NUMBERS = ("submit_time", "duration", "num_gpus", "requested_time", "eligible_time", "predicted_time", "epochs",
            "checkpoint_bytes", "nodes", "nice", "think_time", "min_gpus", "max_gpus", "stop_fraction",
            "deadline", "sharescore", "checkpoint_s", *TRAITS, *MORE)  # fmt: skip
_EXPECTED = f"a header line with the columns {', '.join(NEEDED)} and, optionally, {', '.join(OPTIONAL)}"


@dataclass
class _Faults:
    """Errors of a file, by kind."""

    path: str
    rows: pl.DataFrame
    lines: bool
    called: dict[str, str]
    found: list[str] = field(default_factory=list)

    def add(self, bad: pl.Expr, text: str, column: str) -> None:
        """Record the rows for which `bad` holds; ``{n}`` in `text` is their number."""
        rows = self.rows.filter(bad).select("row", pl.col("job_id").alias("id"), pl.col(column).alias("value"))
        if rows.height:
            text = text.replace(column, self.called.get(column, column))
            place = "line" if self.lines else "row"
            shown = ", ".join(f"{place} {row}{_about(column, *cells)}" for row, *cells in rows.head(SHOWN).iter_rows())
            more = f" and {rows.height - SHOWN:,} more" if rows.height > SHOWN else ""
            self.found.append(f"{text.format(n=_rows(rows.height))}: {shown}{more}")

    def end(self) -> None:
        """Raise the errors found, if any."""
        if self.found:
            lines = "".join(f"\n  {line}" for line in self.found)
            raise InputError(f"these jobs cannot be replayed; nothing ran:{lines}", path=self.path)


def read_jobs(path: str | PathLike[str], resources: tuple[str, ...] = GPUS_ONLY) -> Workload:
    """Read a CSV with one job per line.

    Columns, in any order: ``job_id`` (unique), ``submit_time`` (s), ``duration`` (s, above 0), ``num_gpus`` (whole, at
    least 1); optional ``vc`` (queue), ``requested_time`` (requested s of run time), ``user``, ``gpu_type`` (the
    required one), ``app`` (jobs of one name belong together), ``depends_on`` (job ids separated by ``;``, which must
    have ended first), ``think_time`` (s from the last of these ends until it enters the queue), ``eligible_time`` (s,
    not before ``submit_time``: the job is held until then), ``predicted_time`` (s, above 0: the run time that policies
    see), ``epochs`` (whole, at least 1), ``checkpoint_bytes``; and inputs of Slurm: ``account``, ``qos``, ``nodes``
    (whole, at least 1: requested nodes), ``nice`` (whole); for policies that resize jobs ``min_gpus`` and ``max_gpus``,
    the fewest and the most GPUs that a job can run on, and ``speed_curve`` (its speeds on 1, 2, 3 … GPUs, in any unit,
    separated by ``;``; if they change with progress, further such curves, each after ``|`` and the part of the work
    from which it holds, ``1;1.2|0.3:1;1.9``); and ``job_class`` (jobs of one name are equally fast on equal GPUs); and
    ``stop_fraction`` (above 0, at most 1: the job's search kills it when that part of its ``duration`` is done);
    ``deadline`` (s, on the clock of ``submit_time``); ``checkpoint_s`` (s of work between the checkpoints that it
    writes against failures of nodes); ``sharescore`` (0, 1 or 2: how much a job
    slows down another one on its GPUs); and the columns of `gpuctl.replay.models.traits`. An empty
    optional cell counts as absent. Times are used as given. Jobs are ordered by submission; of jobs submitted at one
    instant, the earlier line is the earlier job. If CPUs or memory count, the columns ``num_cpus`` and ``mem_mb`` of
    the whole job are also read, and ``num_gpus`` may be 0.

    A file with ``nodes`` and ``limit_min`` (minutes) instead of ``num_gpus`` is a queue for `_in_minutes`; there
    ``duration`` may be 0.

    Args:
        path: the file; gzip and zstd are unpacked.
        resources: what counts, see `gpuctl.replay.models.resources`.

    Returns:
        one segment per job, without recorded starts, placements or calendar; unknown columns are ``own``, for policies,
            and named in ``notes``.

    Raises:
        InputError: the file cannot be read as such a table, or values are wrong: all are reported at once, with the
            first lines and jobs of each kind and their number.
    """
    file = Path(path)
    more = resources != GPUS_ONLY
    table, lines, called = _table(file, (*NEEDED, *OPTIONAL, *MORE) if more else (*NEEDED, *OPTIONAL))
    faults = _Faults(str(file), table, lines, called)
    numbers = _numbers(faults, 0 if more else 1)
    faults.add(_blank("job_id"), "job_id is empty in {n}", "job_id")
    faults.add(~_blank("job_id") & pl.col("job_id").is_duplicated(), "job_id is not unique in {n}", "job_id")
    order = np.argsort(numbers["submit_time"].fill_null(np.inf).to_numpy(), kind="stable")
    table = table[order]
    depends = _depends(table, faults)
    speeds = _curves(table, faults)
    faults.end()
    if depends.size and (circle := circular(depends, table.height)).size:
        faults.rows = table[circle].sort("row")
        faults.add(pl.lit(value=True), "depends_on leads back to the job itself in {n}", "depends_on")
        faults.end()
    if called:
        numbers = _in_minutes(numbers)
    line = None if (order == np.arange(order.size)).all() else order.astype(np.int64)
    found = _workload(storable(file.name), table, numbers[order], depends)
    if called:
        whole = note(
            "{name}: a queue in whole minutes, for its column limit_min: submissions are rounded down to the minute, "
            "run times are cut at their limits and rounded up to the minute; a node counts as a GPU",
            name=NamedValue("path", found.name),
        )
        found = replace(found, notes=(*found.notes, whole))
    return replace(found, line=line, **speeds._asdict())


def _in_minutes(numbers: pl.DataFrame) -> pl.DataFrame:
    """Round as the simulator of Mirage's authors: a job may start up to 59 s before its submission."""
    limit = pl.col("requested_time") * 60
    minutes = pl.max_horizontal((pl.min_horizontal("duration", limit) / 60).ceil(), 1.0)
    begin = (pl.col("submit_time") / 60).floor()
    return numbers.with_columns(requested_time=limit, duration=minutes * 60, submit_time=begin * 60)


def _table(file: Path, wanted: tuple[str, ...]) -> tuple[pl.DataFrame, bool, dict[str, str]]:
    """The known columns as stripped text, with ``row`` and other columns, ``own``; whether rows are lines; other names.

    Other names map usual names to those in a file with a column `MINUTES`; else empty.
    """
    name = str(file)
    data = read_whole(file, most=MOST_TABLE, hint=f"expected {_EXPECTED}")
    try:
        table = pl.read_csv(data, infer_schema=False)
    except pl.exceptions.NoDataError as error:
        raise InputError("is empty", path=name, hint=f"expected {_EXPECTED}") from error
    except (zlib.error, zstandard.ZstdError, EOFError, OSError) as error:
        raise InputError(f"is damaged, cannot be unpacked: {error}", path=name, hint="take another copy") from error
    except pl.exceptions.PolarsError as error:
        raise InputError(*_unreadable(data, str(error)), path=name) from error
    # Polars renames duplicate columns
    header = [re.sub(r"_duplicated_\d+$", "", column.strip()) for column in table.columns]
    called = _QUEUE_FILE if MINUTES in header and "num_gpus" not in header and "nodes" in header else {}
    usual = {theirs: ours for ours, theirs in called.items()}
    header = [usual.get(column, column) for column in header]
    missing, twice = [c for c in NEEDED if c not in header], sorted({c for c in header if header.count(c) > 1})
    if missing or set(twice) & set(wanted):
        what = f"lacks the columns {', '.join(missing)}" if missing else f"has several columns {', '.join(twice)}"
        raise InputError(f"{what}; found: {', '.join(header)}", path=name, line=1, hint=f"expected {_EXPECTED}")
    # a line is a row plus the header, unless cells hold line ends or lines are blank
    newlines = data.count(b"\n") + (not data.endswith(b"\n"))
    table.columns = _distinct(header)
    known = [column for column in wanted if column in header]
    exact = newlines == table.height + 1
    texts = [pl.col(column).str.strip_chars() for column in known]
    extra = pl.lit(", ".join(column for column in header if column not in known)).alias("extra")
    unknown = [column for column in table.columns if column not in known]
    own = pl.struct(unknown) if unknown else pl.lit(None)
    rows = pl.int_range(pl.len(), dtype=pl.Int64).alias("row") + (2 if exact else 1)
    blank = pl.all_horizontal(pl.col(table.columns).is_null())
    table = table.with_columns(rows).filter(~blank).select("row", *texts, own.alias("own"), extra)
    if not table.height:
        raise InputError("has a header but no jobs", path=name, hint="expected one job per line below it")
    return table, exact, called


def _unreadable(data: bytes, reason: str) -> tuple[str]:
    """Name the lines without the header's number of cells, if that is why a file cannot be read."""
    try:
        reader = csv.reader(data.decode("utf-8-sig").splitlines())
        width = len(next(reader))
        bad = [(reader.line_num, len(cells)) for cells in reader if len(cells) > width]
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return (f"is not UTF-8 text: byte {data[error.start]:#04x} on line {line}; expected a CSV",)
    except (csv.Error, StopIteration):
        bad = []
    if not bad:
        return (f"is not a valid CSV: {reason.splitlines()[0]}",)
    shown = ", ".join(f"line {line} ({cells})" for line, cells in bad[:SHOWN])
    more = f" and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
    return (f"has more cells than the header's {width} in {_rows(len(bad))}: {shown}{more}",)


def _about(column: str, job: str | None, value: str | None) -> str:
    parts = [f"job {job!r}"] if job else []
    return f" ({', '.join([*parts, repr(value)] if value and column != 'job_id' else parts)})" if parts or value else ""


def _distinct(header: list[str]) -> list[str]:
    """Unique names; only columns that are not read are renamed."""
    return [name if header.index(name) == k else f"{name} ({k})" for k, name in enumerate(header)]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _blank(column: str) -> pl.Expr:
    return pl.col(column).is_null() | (pl.col(column) == "")


def _numbers(faults: _Faults, least: int) -> pl.DataFrame:
    """Check the columns of numbers."""
    present = [column for column in _NUMBERS if column in faults.rows.columns]
    numbers = faults.rows.select(pl.col(column).cast(pl.Float64, strict=False) for column in present)
    texts = faults.rows
    faults.rows = texts.with_columns(numbers.rename(lambda column: f"{column} number"))
    for column in present:
        number = pl.col(f"{column} number")
        if column in NEEDED:
            faults.add(_blank(column), f"{column} is empty in {{n}}", column)
        faults.add(~_blank(column) & number.is_null(), f"{column} is not a number in {{n}}", column)
        faults.add(number.is_nan() | number.is_infinite(), f"{column} is not finite in {{n}}", column)
        large = number.is_finite() & (number.abs() > (MOST_GPUS if column == "num_gpus" else MOST_SECONDS))
        faults.add(large, f"{column} is too large in {{n}}", column)
        if column in {"duration", "requested_time", "predicted_time", "checkpoint_s"}:
            # a queue in whole minutes rounds 0 s up
            none = number < 0 if column == "duration" and faults.called else number <= 0
            faults.add(number.is_finite() & none, f"{column} is not above 0 s in {{n}}", column)
    gpus, submit = pl.col("num_gpus number"), pl.col("submit_time number")
    whole = f"num_gpus is not a whole number of GPUs, at least {least}, in {{n}}"
    faults.add(gpus.is_finite() & ((gpus < least) | (gpus != gpus.floor())), whole, "num_gpus")
    for column in (*MORE, "think_time", "checkpoint_bytes"):
        if column in present:
            faults.add(pl.col(f"{column} number") < 0, f"{column} is below 0 in {{n}}", column)
    if "eligible_time" in present:
        eligible = pl.col("eligible_time number")
        before = submit.is_finite() & eligible.is_finite() & (eligible < submit)
        faults.add(before, "eligible_time is before submit_time in {n}", "eligible_time")
    if "epochs" in present:
        epochs = pl.col("epochs number")
        faults.add(epochs.is_finite() & ((epochs < 1) | (epochs != epochs.floor())), _EPOCHS, "epochs")
    for column, smallest in (("nodes", 1), ("nice", -(2**31))):
        if column in present:
            value = pl.col(f"{column} number")
            bad = value.is_finite() & ((value < smallest) | (value != value.floor()))
            faults.add(bad, f"{column} is not a whole number, at least {smallest}, in {{n}}", column)
    for column, wrong in (
        ("min_gpus", pl.col("min_gpus number") > gpus),
        ("max_gpus", pl.col("max_gpus number") < gpus),
    ):
        if column in present:
            value = pl.col(f"{column} number")
            bad = value.is_finite() & ((value < least) | (value != value.floor()) | (value > MOST_GPUS))
            faults.add(bad, f"{column} is not a whole number of GPUs, at least {least}, in {{n}}", column)
            side = "above" if column == "min_gpus" else "below"
            faults.add(value.is_finite() & gpus.is_finite() & wrong, f"{column} is {side} num_gpus in {{n}}", column)
    _traits(faults, present)
    faults.rows = texts
    return numbers


def _traits(faults: _Faults, present: list[str]) -> None:
    """Check the numbers used by policies for deep learning."""
    gpus = pl.col("num_gpus number")
    for column in (*TRAITS, "stop_fraction", "sharescore"):
        if column not in present:
            continue
        value = pl.col(f"{column} number")
        if column in {"w_min", "w_max"}:
            bad = (value < 1) | (value != value.floor()) | (value > MOST_GPUS)
            faults.add(value.is_finite() & bad, f"{column} is not a whole number of GPUs, at least 1, in {{n}}", column)
            wrong = value > gpus if column == "w_min" else value < gpus
            side = "above" if column == "w_min" else "below"
            faults.add(value.is_finite() & gpus.is_finite() & wrong, f"{column} is {side} num_gpus in {{n}}", column)
        elif column == "sharescore":
            wrong = value.is_finite() & ~value.is_in([0.0, 1.0, 2.0])
            faults.add(wrong, "sharescore is not 0, 1 or 2 in {n}", column)
        elif column in {"fungible", "grow"}:
            faults.add(value.is_finite() & (value != 0) & (value != 1), f"{column} is not 0 or 1 in {{n}}", column)
        elif column == "alpha":
            faults.add(value.is_finite() & (value < 0), "alpha is below 0 in {n}", column)
        else:
            bad = (value <= 0) | (value > 1)
            faults.add(value.is_finite() & bad, f"{column} is not above 0 and at most 1 in {{n}}", column)


LEAST_SPEED, MOST_SPEED = 1e-6, 1e6
_CURVE = (
    "speed_curve is not a list of speeds from 0.000001 to 1000000, as 1;1.9;2.7 (or several, each from a part of the "
    "work on, as 1;1.2|0.3:1;1.9), in {n}"
)
_EPOCHS = "epochs is not a whole number, at least 1, in {n}"


def _depends(table: pl.DataFrame, faults: _Faults) -> Ints:
    """Pairs of job numbers (the later one, the one it waits for); unknown ids are errors."""
    if "depends_on" not in table.columns or table["depends_on"].is_null().all():
        return np.zeros((0, 2), np.int64)
    numbered = table.with_row_index("job")
    wanted = (
        numbered.filter(~_blank("depends_on"))
        .select("row", "job_id", "job", on=pl.col("depends_on").str.split(";"))
        .explode("on")
        .with_columns(pl.col("on").str.strip_chars())
        .filter(pl.col("on") != "")
        .unique(["job", "on"], maintain_order=True)
    )
    ids = numbered.select("job_id", before="job").unique("job_id", keep="first")
    pairs = wanted.join(ids, left_on="on", right_on="job_id", how="left", maintain_order="left")
    faults.rows = pairs.sort("row", maintain_order=True)
    faults.add(pl.col("before").is_null(), "depends_on names jobs that the file does not have in {n}", "on")
    return pairs.drop_nulls("before").select("job", "before").to_numpy().astype(np.int64).reshape(-1, 2)


class _Curves(NamedTuple):
    """The number of each job's speed curve, -1 none, and the curves; the same for speeds that change with progress."""

    curve: Ints | None = None
    curves: tuple[Floats, ...] = ()
    phase: Ints | None = None
    phases: tuple[tuple[tuple[float, int], ...], ...] = ()


def _curves(table: pl.DataFrame, faults: _Faults) -> _Curves:
    """Read the speed curves of the jobs, and record errors."""
    if "speed_curve" not in table.columns:
        return _Curves()
    number, texts = _codes(table, "speed_curve", None)
    parsed = [_phases_of(text) for text in texts]
    wrong = [text for text, phases in zip(texts, parsed, strict=True) if phases is None]
    faults.rows = table
    faults.add(pl.col("speed_curve").is_in(wrong), _CURVE, "speed_curve")
    curves: list[Floats] = []
    first: list[int] = []
    changing: list[int] = []
    phases: list[tuple[tuple[float, int], ...]] = []
    for each in parsed:
        own = [(part, len(curves) + k) for k, (part, _) in enumerate(each or [])]
        curves += [np.array(curve, np.float64) for _, curve in each or []]
        first.append(own[0][1] if own else -1)
        changing.append(len(phases) if len(own) > 1 else -1)
        phases += [tuple(own)] if len(own) > 1 else []
    # the last one is for jobs without a curve
    curve, phase = (np.array([*numbers, -1], np.int64)[number] for numbers in (first, changing))
    return _Curves(curve, tuple(curves), phase if phases else None, tuple(phases))


def _phases_of(text: str) -> list[tuple[float, list[float]]] | None:
    """The parts of the work from which each curve holds, and the curves; None: invalid."""
    found = []
    for k, piece in enumerate(text.split("|")):
        part, _, speeds = piece.rpartition(":")
        try:
            found.append((float(part) if k else 0.0, [float(speed) for speed in speeds.split(";")]))
        except ValueError:
            return None
        if not k and part:
            return None
    parts = [part for part, _ in found]
    rising = all(0 <= a < b < 1 for a, b in pairwise(parts))
    return found if rising and all(LEAST_SPEED <= s <= MOST_SPEED for _, curve in found for s in curve) else None


def _workload(name: str, table: pl.DataFrame, numbers: pl.DataFrame, depends: Ints) -> Workload:
    size = table.height
    unknown = np.full(size, np.nan)
    duration = numbers["duration"].to_numpy().astype(np.float64)
    done = duration * _optional(numbers, "stop_fraction", np.ones(size))
    submit = numbers["submit_time"].to_numpy().astype(np.float64)
    queue, queues = _codes(table, "vc", NO_QUEUE)
    user, users = _codes(table, "user", None)
    gpu_type, gpu_types = _codes(table, "gpu_type", None)
    app, apps = _codes(table, "app", None)
    (account, accounts), (qos, qos_names) = (_codes(table, column, None) for column in ("account", "qos"))
    job_class, job_classes = _codes(table, "job_class", None)
    alone = app < 0
    app[alone] = len(apps) + np.arange(alone.sum())
    own = None if table["own"].dtype != pl.Struct else table["own"].struct.unnest()
    return Workload(
        name=name,
        ids=tuple(table["job_id"].to_list()),
        submit=submit,
        eligible=_optional(numbers, "eligible_time", submit),
        gpus=numbers["num_gpus"].to_numpy().astype(np.int64),
        queue=queue,
        user=user,
        time_limit=_optional(numbers, "requested_time", unknown),
        gpu_type=gpu_type,
        app=app,
        depends=depends,
        segment_start=np.arange(size + 1, dtype=np.int64),
        segment_s=done,
        segment_fails=np.zeros(size, np.bool_),
        recorded_start=np.full(size, np.nan),
        piece_start=np.zeros(size + 1, np.int64),
        piece_node=np.zeros(0, np.int64),
        piece_gpus=np.zeros(0, np.int64),
        state=("",) * size,
        queues=queues,
        users=users,
        gpu_types=gpu_types,
        notes=()
        if own is None
        else (
            note(
                "{name}: columns that are not read: {extra}",
                name=NamedValue("path", name),
                extra=NamedValue("text", table["extra"][0]),
            ),
        ),
        own=own,
        think=_optional(numbers, "think_time", np.zeros(size)) if "think_time" in numbers.columns else None,
        predicted=_optional(numbers, "predicted_time", done) if "predicted_time" in numbers.columns else None,
        epochs=_optional(numbers, "epochs", unknown) if "epochs" in numbers.columns else None,
        checkpoint_bytes=_optional(numbers, "checkpoint_bytes", unknown)
        if "checkpoint_bytes" in numbers.columns
        else None,
        cpus=_optional(numbers, "num_cpus", unknown) if "num_cpus" in numbers.columns else None,
        mem_mb=_optional(numbers, "mem_mb", unknown) if "mem_mb" in numbers.columns else None,
        account=account if accounts else None,
        accounts=accounts,
        qos=qos if qos_names else None,
        qos_names=qos_names,
        min_nodes=_whole(numbers, "nodes"),
        nice=_whole(numbers, "nice"),
        job_class=job_class if job_classes else None,
        job_classes=job_classes,
        min_gpus=_bound(numbers, "min_gpus"),
        max_gpus=_bound(numbers, "max_gpus"),
        deadline=_optional(numbers, "deadline", unknown) if "deadline" in numbers.columns else None,
        checkpoint_s=_optional(numbers, "checkpoint_s", unknown) if "checkpoint_s" in numbers.columns else None,
        beyond=duration - done if "stop_fraction" in numbers.columns else None,
        traits={name: _optional(numbers, name, unknown) for name in (*TRAITS, "sharescore") if name in numbers.columns},
    )


def _optional(numbers: pl.DataFrame, column: str, otherwise: Floats) -> Floats:
    """A column's numbers, else those of `otherwise`."""
    if column not in numbers.columns:
        return otherwise.copy()
    values = numbers[column].fill_null(np.nan).to_numpy().astype(np.float64)
    return np.where(np.isnan(values), otherwise, values)


def _bound(numbers: pl.DataFrame, column: str) -> Ints | None:
    """A column's numbers of GPUs, the gang's if a job has none; None if there is no such column."""
    if column not in numbers.columns:
        return None
    return numbers[column].fill_null(numbers["num_gpus"]).to_numpy().astype(np.int64)


def _whole(numbers: pl.DataFrame, column: str) -> Ints | None:
    """A column's whole numbers, 0 if a job has none; None if there is no such column."""
    if column not in numbers.columns:
        return None
    return numbers[column].fill_null(0).to_numpy().astype(np.int64)


def _codes(table: pl.DataFrame, column: str, missing: str | None) -> tuple[Ints, tuple[str, ...]]:
    """Numbers for the texts of a column, in the order of names; -1 for none, unless none has a name."""
    if column not in table.columns:
        return np.full(table.height, -1 if missing is None else 0, np.int64), () if missing is None else (missing,)
    texts = table.select(pl.when(_blank(column)).then(pl.lit(missing, pl.String)).otherwise(column).alias("name"))
    names = texts["name"].drop_nulls().unique().sort()
    numbers = pl.DataFrame({"name": names}).with_row_index("code")
    codes = texts.join(numbers, on="name", how="left", maintain_order="left")["code"]
    return codes.cast(pl.Int64).fill_null(-1).to_numpy().astype(np.int64), tuple(names.to_list())
