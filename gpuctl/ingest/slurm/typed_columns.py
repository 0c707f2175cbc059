"""Canonical frames of accounting text as typed columns of the store; no row depends on another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpuctl.ingest.core.ranges import LARGEST, out_of_range
from gpuctl.ingest.slurm.distinct_values import Distinct
from gpuctl.ingest.slurm.fields import identity, outcome, settled
from gpuctl.ingest.slurm.resources import resources
from gpuctl.ingest.slurm.usage import of_jobs
from gpuctl.slurm.hostlist import NOBODY
from gpuctl.slurm.times import Instants, instants

if TYPE_CHECKING:
    import polars as pl

BAD_ID = "no job id: JobIDRaw (or JobID) is not a number like 1234, 1234_5, 1234+1 or 1234.batch"
MIXED_IDS = "JobIDRaw and JobID are two numbers: the record is put together from two"
BAD_STATE = "State is not a word like COMPLETED"
BAD_TIME = "{} is not a time of 1971 to 2199: not YYYY-MM-DDTHH:MM:SS, seconds since the epoch, Unknown or None"
BAD_NUMBER = "{} is out of range: a number larger than {:,} was found"
INTEGERS = {
    "restarts": "Restarts",
    "nodes": "the number of nodes",
    "cpus": "the number of CPUs",
    "exit_code": "ExitCode",
    "exit_signal": "ExitCode",
    "derived_exit_code": "DerivedExitCode",
    "derived_exit_signal": "DerivedExitCode",
}
"""Columns that the store keeps in 32 bits, and what they are made of."""
LONGEST_S = 10**10
"""No job runs for longer: 300 years."""
TIMES = {"Submit": "submit_ts", "Eligible": "eligible_ts", "Start": "start_ts", "End": "end_ts"}

_ID = r"^[0-9]{1,20}(?:_(?:[0-9]{1,20}|\[.*))?(?:\+[0-9]{1,9})?$"
_STEP = r"^[0-9]{1,20}(?:_(?:[0-9]{1,20}|\[.*))?(?:\+[0-9]{1,9})?\.[^.]+"

Bad = tuple[str, "pl.DataFrame", "pl.Series"]
"""Why records cannot be loaded, those records, and the lines they start on."""


class Sorted(NamedTuple):
    """A frame of records, distinguished.

    Attributes:
        jobs: the records of jobs, in canonical text.
        lines: the lines they start on.
        steps: the records of steps, in canonical text; ``_record`` differs for the steps of different records.
        aside: how many records fill no table of jobs: those of steps, and of the jobs in `revoked`.
        revoked: jobs of a federation that another cluster ran: this one's copies of them, which held nothing.
        bad: records that are neither.
    """

    jobs: pl.DataFrame
    lines: pl.Series
    steps: pl.DataFrame
    aside: int
    bad: list[Bad]
    revoked: list[str]


class Normal(NamedTuple):
    """Records as the store has them.

    Attributes:
        records: one row per record, see `gpuctl.ingest.slurm.fields.settled`, and its ``line``.
        bad: records that cannot be loaded.
    """

    records: pl.DataFrame
    bad: list[Bad]


def sort_out(frame: pl.DataFrame, lines: pl.Series) -> Sorted:
    """Recognise the records of jobs from those of steps and from what has no job id.

    Args:
        frame: canonical text, with at least one of JobIDRaw and JobID.
        lines: the line each record starts on.
    """
    import polars as pl

    ids = frame["JobIDRaw" if "JobIDRaw" in frame.columns else "JobID"].fill_null("")
    plain = ids.cast(pl.UInt64, strict=False).is_not_null() & ~ids.str.starts_with("+")
    mixed = _contradicting(frame)
    if mixed is not None:
        rest = sort_out(frame.filter(~mixed), lines.filter(~mixed))
        return rest._replace(bad=[*rest.bad, (MIXED_IDS, frame.filter(mixed), lines.filter(mixed))])
    if plain.all():
        return _without_revoked(Sorted(frame, lines, frame.clear(), 0, [], []))
    job = plain | ids.str.contains(_ID)
    step = ~job & ids.str.contains(_STEP)
    other = ~job & ~step
    bad = [(BAD_ID, frame.filter(other), lines.filter(other))] if other.any() else []
    # sacct lists the steps of a record below it
    steps = frame.with_columns(_record=job.cum_sum()).filter(step)
    return _without_revoked(Sorted(frame.filter(job), lines.filter(job), steps, steps.height, bad, []))


def _without_revoked(parts: Sorted) -> Sorted:
    """Set aside the copies of federated jobs that started on another cluster (state REVOKED, on no node)."""
    import polars as pl

    frame = parts.jobs
    if "State" not in frame.columns:
        return parts
    revoked = frame["State"].str.starts_with("REVOKED").fill_null(value=False)
    if "NodeList" in frame.columns:
        revoked &= frame["NodeList"].is_null() | frame["NodeList"].is_in(list(NOBODY))
    if not revoked.any():
        return parts
    ids = frame.filter(revoked).select(pl.coalesce([name for name in ("JobIDRaw", "JobID") if name in frame.columns]))
    jobs = ids.to_series().unique().to_list()
    return parts._replace(
        jobs=frame.filter(~revoked),
        lines=parts.lines.filter(~revoked),
        aside=parts.aside + int(revoked.sum()),
        revoked=jobs,
    )


def _contradicting(frame: pl.DataFrame) -> pl.Series | None:
    """Mark the records whose two ids are plain numbers and not the same; None if there are none."""
    import polars as pl

    if not {"JobIDRaw", "JobID"} <= set(frame.columns):
        return None
    other = frame["JobIDRaw"] != frame["JobID"]
    if not other.any():
        return None
    plain = pl.col("JobIDRaw", "JobID").str.contains(r"^[0-9]+(\.[0-9A-Za-z_]+)?$")
    mixed = frame.select(pl.all_horizontal(plain)).to_series().fill_null(value=False) & other.fill_null(value=False)
    return mixed if mixed.any() else None


def normal(frame: pl.DataFrame, lines: pl.Series, timezone: str, *, folded: bool) -> Normal:
    """Make typed columns of records of jobs.

    Args:
        frame: canonical text, one row per job's record (see `sort_out`).
        lines: the line each record starts on.
        timezone: IANA name of the zone of times without an offset.
        folded: whether exit codes of 128 and more stand there less 128.
    """
    import polars as pl

    times = {name: instants(frame[name], timezone) for name in TIMES if name in frame.columns}
    faults = {BAD_TIME.format(name): read.bad for name, read in times.items()}
    if "State" in frame.columns:
        faults[BAD_STATE] = Distinct(frame["State"]).each(lambda text: not _is_word(text), pl.Boolean)
    bad: list[Bad] = []
    if any(where.any() for where in faults.values()):
        first = pl.coalesce([pl.when(where).then(pl.lit(fault)) for fault, where in faults.items()])
        why = pl.select(first).to_series()
        bad = [(fault, frame.filter(why == fault), lines.filter(why == fault)) for fault in why.drop_nulls().unique()]
        good = why.is_null()
        if not good.any():
            return Normal(frame.clear(), bad)
        frame, lines = frame.filter(good), lines.filter(good)
        times = {name: Instants(*(part.filter(good) for part in read)) for name, read in times.items()}
    parts = [identity(frame), _clock(times), resources(frame), outcome(frame), of_jobs(frame)]
    parts.append(frame.select([name for name in frame.columns if name.startswith("_")]))
    if "SubmitLine" in frame.columns:
        parts.append(frame.select(submit_line="SubmitLine"))
    wide = pl.concat([part for part in parts if part.width], how="horizontal")
    beyond = _out_of_range(wide)
    if beyond is not None:
        faulty = beyond.drop_nulls().unique()
        bad += [(fault, frame.filter(beyond == fault), lines.filter(beyond == fault)) for fault in faulty]
        wide, lines = wide.filter(beyond.is_null()), lines.filter(beyond.is_null())
    return Normal(settled(wide, set(frame.columns), folded=folded).with_columns(lines.alias("line")), bad)


def _out_of_range(wide: pl.DataFrame) -> pl.Series | None:
    """Why a number of each record does not fit into the store; None if all fit."""
    import polars as pl

    limits = dict.fromkeys(INTEGERS, LARGEST) | {"time_limit_s": LONGEST_S}
    faults = out_of_range(
        wide, limits, lambda name, limit: BAD_NUMBER.format(INTEGERS.get(name, "the time limit in seconds"), limit)
    )
    return wide.select(pl.coalesce(faults).alias("why"))["why"] if faults else None


def _clock(times: dict[str, Instants]) -> pl.DataFrame:
    """The columns ``submit_ts`` … ``end_ts`` and, if some were read two ways, ``later_submit_ts`` …."""
    import polars as pl

    columns = {TIMES[source]: read.utc for source, read in times.items()}
    columns |= {f"later_{TIMES[source]}": read.later for source, read in times.items() if read.later.count()}
    return pl.DataFrame(columns)


def _is_word(text: str) -> bool:
    return text[:2].isalpha() and text[:2].isascii()
