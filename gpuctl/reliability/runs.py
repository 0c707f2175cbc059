"""Joins attempts to runs: one logical job over requeues, dependencies, tasks of an array and resubmissions."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from gpuctl.reliability.choices import DEFAULT, Choices
from gpuctl.reliability.intervals import keys

LINKS = ("single", "requeue", "array", "dependency", "resubmit", "user")
"""From the strongest to the weakest; user: by ``--run-key`` or ``--runs``."""
RESUBMIT_S = 86_400.0
TAKEN_S = 5.0
"""A job starts on the GPUs of the one that it preempted within so many seconds."""
_AFTER = re.compile(r"after(?:any|ok|notok):([\d_:]+)")
_ONE_AT_A_TIME = re.compile(r"%1(?!\d)")
_COUNTED = r"^(.*?)(\d{1,9})$"
"""A name with a number at its end."""


def link(attempts: pl.DataFrame, options: pl.DataFrame, choices: Choices = DEFAULT) -> pl.DataFrame:
    """Join attempts to runs.

    Args:
        attempts: see ``queries/base/reliability_attempts.sql``, and ``row``.
        options: ``job``, ``option``, ``value`` of submissions.
        choices: of the user: runs that they name.

    Returns:
        In the order of `attempts`: ``unit`` (a number of the job), ``run`` (a number), ``link`` (the weakest of the
        run's), ``before`` (row of the attempt before it in its run, or null).
    """
    unit = _units(attempts["job"]).to_numpy()
    jobs = _jobs(attempts, unit)
    jobs = jobs.with_columns(key=_keys(jobs, choices))
    edges = [_dependencies(jobs, options), _arrays(jobs, options), _resubmissions(jobs), _counted(jobs)]
    chosen = pl.concat(edges, how="vertical_relaxed")
    if not jobs["key"].is_null().all():
        free = jobs.filter(pl.col("key").is_null()).select("unit")
        chosen = chosen.join(free, left_on="after", right_on="unit", how="semi")
        chosen = chosen.join(free, left_on="before", right_on="unit", how="semi")
        chosen = pl.concat([chosen, _of_user(jobs)], how="vertical_relaxed")
    # two attempts of a run never overlap; a job has one successor and one predecessor, by the stronger link
    spans = jobs.select("unit", "start", "end")
    chosen = chosen.join(spans.rename({"unit": "after", "start": "next"}).drop("end"), on="after")
    chosen = chosen.join(spans.rename({"unit": "before"}).drop("start"), on="before").filter(
        pl.col("next") >= pl.col("end")
    )
    chosen = chosen.sort("kind", "next").unique("after", keep="first", maintain_order=True)
    chosen = chosen.unique("before", keep="first", maintain_order=True)
    root, weakest = _chains(jobs.height, chosen)
    several = np.zeros(jobs.height, np.int64)
    np.maximum.at(several, root, (jobs["tries"] > 1).to_numpy().astype(np.int64))
    weakest = np.maximum(weakest, several[root])
    run, row = root[unit], attempts["row"].to_numpy()
    some = np.flatnonzero(np.bincount(run)[run] > 1)
    order = some[np.lexsort((attempts["attempt"].to_numpy()[some], attempts["start_s"].to_numpy()[some], run[some]))]
    goes_on = run[order][1:] == run[order][:-1]
    before = np.full(len(row), -1, np.int64)
    before[order[1:][goes_on]] = row[order[:-1][goes_on]]
    found = pl.DataFrame({"unit": unit, "run": run, "before": before})
    return found.select(
        "unit", "run", link=pl.Series(LINKS).gather(weakest[unit]), before=pl.when(pl.col("before") >= 0).then("before")
    )


def _jobs(attempts: pl.DataFrame, unit: np.ndarray) -> pl.DataFrame:
    """One row a job, in the order of `unit`, which numbers the job of each attempt."""
    order = np.argsort(unit, kind="stable")
    first = np.flatnonzero(np.diff(unit[order], prepend=-1)) if len(unit) else np.zeros(0, np.int64)
    last = np.append(first[1:], len(unit))[: len(first)] - 1
    names = ("job", "shown", "name", "user", "account", "gpus", "array_job", "array_task")
    submit, start, end = (attempts[name].to_numpy()[order] for name in ("queued_s", "start_s", "end_s"))
    final = attempts.select((pl.col("state") == "completed") | ~pl.col("over")).to_series().to_numpy()
    return attempts.select(names)[order[first]].with_columns(
        pl.int_range(len(first), dtype=pl.UInt32).alias("unit"),
        tries=pl.Series(last - first + 1),
        submit=pl.Series(np.minimum.reduceat(submit, first)),
        start=pl.Series(np.minimum.reduceat(start, first)),
        end=pl.Series(np.maximum.reduceat(end, first)),
        done=pl.Series(final[order[last]]),
    )


def _units(job: pl.Series) -> pl.Series:
    """A number for each job, by its first attempt."""
    code = job.rle_id()
    if len(code) and int(code[-1]) + 1 == job.n_unique():
        # the attempts of each job stand together
        return code
    first = pl.DataFrame({"job": job}).unique(maintain_order=True).with_row_index("unit")
    return pl.DataFrame({"job": job}).join(first, on="job", how="left", maintain_order="left")["unit"]


def _dependencies(jobs: pl.DataFrame, options: pl.DataFrame) -> pl.DataFrame:
    """Jobs that wait for a job of the same user and size."""
    rows = options.filter(pl.col("option") == "dependency").select("job", "value").rows()
    named = [(job, other) for job, value in rows for names in _AFTER.findall(value) for other in names.split(":")]
    ids = pl.Series("id", list({name for pair in named for name in pair}), pl.String)
    met = jobs.filter(pl.col("job").is_in(ids.implode()) | pl.col("shown").is_in(ids.implode()))
    unit, owner = {}, {}
    for job, shown, number, user, gpus in met.select("job", "shown", "unit", "user", "gpus").iter_rows():
        unit[job] = unit[shown] = number
        owner[number] = user, gpus
    pairs = [
        (unit[other], unit[job], LINKS.index("dependency"))
        for job, other in named
        if job in unit and other in unit and owner[unit[job]] == owner[unit[other]]
    ]
    return pl.DataFrame(pairs, schema=_EDGE, orient="row")


_EDGE = {"before": pl.UInt32, "after": pl.UInt32, "kind": pl.Int32}


def _arrays(jobs: pl.DataFrame, options: pl.DataFrame) -> pl.DataFrame:
    """Tasks of an array that runs one at a time, in the order of their start."""
    given = options.filter((pl.col("option") == "array") & pl.col("value").str.contains(_ONE_AT_A_TIME.pattern[:2]))
    limited = jobs.filter(pl.col("array_job").is_not_null()).join(given.select("job"), on="job", how="semi")
    tasks = jobs.join(limited.select("array_job").unique(), on="array_job", how="semi").sort("array_job", "start")
    tasks = tasks.with_columns(before=pl.col("unit").shift().over("array_job")).drop_nulls("before")
    return tasks.select("before", after="unit", kind=pl.lit(LINKS.index("array"), pl.Int32))


def _resubmissions(jobs: pl.DataFrame) -> pl.DataFrame:
    """The first job of the same user, name, account and size that is submitted within a day of a job's end."""
    by = ["user", "name", "account", "gpus"]
    named = jobs.filter(pl.col("name").is_not_null()).select(*by, "unit", "submit", "end", "done")
    alike = named.filter(~pl.col("done")).select(by).unique(maintain_order=True).with_row_index("key")
    some = named.join(alike, on=by, nulls_equal=True)
    ended = some.filter(~pl.col("done")).select("key", "end", before="unit").sort("end", "before")
    found = ended.join_asof(
        some.select("key", "submit", after="unit").sort("submit", "after"),
        left_on="end",
        right_on="submit",
        by="key",
        strategy="forward",
        tolerance=RESUBMIT_S,
        check_sortedness=False,
    )
    return found.drop_nulls("after").select("before", "after", kind=pl.lit(LINKS.index("resubmit"), pl.Int32))


def _counted(jobs: pl.DataFrame) -> pl.DataFrame:
    """Jobs whose name counts up at its end: train-3 after train-2, where no other job has either name.

    A name that several jobs have is a run's own, whatever its digits.
    """
    by = ["user", "stem", "account", "gpus"]
    alone = jobs.filter(pl.col("name").is_not_null() & (pl.len().over("user", "name") == 1))
    found = pl.col("name").str.extract_groups(_COUNTED).struct
    named = alone.with_columns(stem=found.field("1"), nr=found.field("2").cast(pl.Int64)).drop_nulls("nr")
    next_ = named.select(*by, "submit", nr=pl.col("nr") - 1, after="unit")
    pairs = named.filter(~pl.col("done")).select(*by, "nr", "end", before="unit").join(next_, on=[*by, "nr"])
    pairs = pairs.filter((pl.col("submit") - pl.col("end")).is_between(0, RESUBMIT_S))
    return pairs.select("before", "after", kind=pl.lit(LINKS.index("resubmit"), pl.Int32))


def _keys(jobs: pl.DataFrame, choices: Choices) -> pl.Series:
    """The run that the user names for each job; null: none."""
    if choices.run_key is None and not choices.runs:
        return pl.Series([None] * jobs.height, dtype=pl.String)
    keys = []
    for job, shown, name, user in jobs.select("job", "shown", "name", "user").iter_rows():
        listed = choices.runs.get(shown) or choices.runs.get(job)
        match = choices.run_key.search(name or "") if choices.run_key and listed is None else None
        keys.append(
            f"run {listed}" if listed else f"key {user} {match[1 if match.re.groups else 0]}" if match else None
        )
    return pl.Series(keys, dtype=pl.String)


def _of_user(jobs: pl.DataFrame) -> pl.DataFrame:
    """Jobs of a run that the user names: each follows the last one that ended before it began."""
    pairs: list[tuple[int, int, int]] = []
    for part in jobs.drop_nulls("key").sort("key", "start").partition_by("key", maintain_order=True):
        ends: list[tuple[float, int]] = []
        for unit, start, end in part.select("unit", "start", "end").iter_rows():
            before = max((each for each in ends if each[0] <= start), default=None)
            if before is not None:
                ends.remove(before)
                pairs.append((before[1], unit, LINKS.index("user")))
            ends.append((end, unit))
    return pl.DataFrame(pairs, schema=_EDGE, orient="row")


def _chains(size: int, edges: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The first job of each one's chain, and the weakest link of the chain."""
    before = np.arange(size)
    before[edges["after"].to_numpy()] = edges["before"].to_numpy()
    root = before
    while not np.array_equal(step := root[root], root):
        root = step
    weakest = np.zeros(size, np.int64)
    np.maximum.at(weakest, root[edges["after"].to_numpy()], edges["kind"].to_numpy())
    return root, weakest[root]


def second_order(attempts: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Find preempted attempts whose GPUs went to a job that infrastructure had ended before.

    Args:
        attempts: in the order of ``row``, from 0 on: ``cause``, ``before``, ``qos``, ``priority``, ``preempted_by``.
        places: ``row``, ``node``.

    Returns:
        ``row`` and ``certain``: whether evidence shows infrastructure; false where that end's cause is unknown.
    """
    lost = attempts.select("row", "cause", "end_s", "job", "qos", "priority", "preempted_by")
    lost = lost.filter(pl.col("cause") == "preempted").drop("cause")
    again = attempts.select("row", "before", "start_s", "job", "qos", "priority").filter(pl.col("before").is_not_null())
    took = again.with_columns(earlier=attempts["cause"].gather(again["before"]))
    took = took.filter(pl.col("earlier").str.starts_with("infrastructure") | (pl.col("earlier") == "unknown"))
    at = places.select("row", "node")
    ends = lost.join(at, on="row")
    starts = (
        took.select("row", "start_s", "earlier", by="job", by_qos="qos", by_priority="priority")
        .join(at, on="row")
        .sort("node", "start_s")
        .drop("row")
    )
    node, end = ends["node"].to_numpy(), ends["end_s"].to_numpy()
    key = keys(starts["node"].to_numpy(), starts["start_s"].to_numpy())
    first = np.searchsorted(key, keys(node, end))
    count = np.searchsorted(key, keys(node, end + TAKEN_S), "right") - first
    of = np.repeat(np.arange(len(node)), count)
    which = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count) + first[of]
    met = ends[of].hstack(starts[which].drop("node"))
    higher = (pl.col("by_qos") != pl.col("qos")).fill_null(False) | (
        pl.col("by_priority") > pl.col("priority")
    ).fill_null(False)
    met = met.filter(
        (pl.col("by") != pl.col("job"))
        & pl.when(pl.col("preempted_by").is_not_null()).then(pl.col("preempted_by") == pl.col("by")).otherwise(higher)
    )
    return met.group_by("row").agg(certain=pl.col("earlier").str.starts_with("infrastructure").any())
