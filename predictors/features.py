"""Input of a run-time predictor: the job's own description, and the run times of similar earlier jobs.

Everything is known at submission: only earlier jobs that had ended by then (strictly before) count. Users and
queues are numbered in the order in which they first appear, which later jobs cannot change.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.predictors.job_table import JobTable

    Floats = NDArray[np.float64]
    Singles = NDArray[np.float32]
    Ints = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

GROUPS: dict[str, tuple[str, ...]] = {
    "user": ("user",),
    "user_name": ("user", "name"),
    "user_size": ("user", "size"),
    "user_name_size": ("user", "name", "size"),
    "name": ("name",),
    "queue_size": ("queue", "size"),
    "all": (),
}
"""Earlier jobs like this one are those that have the same of these."""
ALL = "all"
"""The group of all jobs. Only rules ask for it: to a model it would tell the date rather than something of a job."""

FIGURES = {
    "last": "logarithm of the last run time",
    "before_last": "logarithm of the run time before the last",
    "mean": "mean logarithm of the run time",
    "median": "median logarithm of the last {recent} run times",
    "count": "log(1 + number, at most {recent})",
    "since": "log(1 + seconds since the last end)",
}
RECENT = 16
"""So many run times of a group are kept; medians are over them."""

OWN = {
    "size": "GPUs (nodes where the log has no GPUs) that it asks for",
    "limit": "logarithm of the run time that it asks for, s",
    "hour": "hour of the day at submission",
    "weekday": "day of the week at submission, 0 is Monday",
    "queue": "number of its queue, in order of first appearance",
    "user": "number of its user, in order of first appearance",
}
NUMBERED = ("queue", "user")


def described() -> dict[str, str]:
    """Return the meaning of each feature, in the order of the columns."""
    named = {
        f"{group}_{figure}": f"of ended jobs of the same {' and '.join(fields)}: {text.format(recent=RECENT)}"
        for group, fields in GROUPS.items()
        for figure, text in FIGURES.items()
        if group != ALL
    }
    return OWN | named


def stated_columns(rows: pl.DataFrame) -> list[str]:
    """Return the names of the features that a log can provide: whose user, name, queue, size or limit it has."""
    fields = {field: bool((rows[field] != "").any()) for field in ("user", "queue", "name")}
    fields |= {own: bool(rows[column].is_not_nan().any()) for own, column in _NUMBERS.items()}
    groups = {group: all(fields[field] for field in needed) for group, needed in GROUPS.items()}
    named = {f"{group}_{figure}": there for group, there in groups.items() for figure in FIGURES}
    return [name for name in described() if (fields | named)[name]]


_NUMBERS = {"size": "size", "limit": "time_limit_s", "hour": "hour", "weekday": "weekday"}


@dataclass(frozen=True)
class State:
    """What is known of ended jobs by group at one time; without the names of the groups.

    Attributes:
        hashes: of each row's group and values, ascending; shape (rows,). See `hashed`.
        count: jobs that have ended, shape (rows + 1,); the last row stays empty and represents unknown groups.
        log_sum: sum of the logarithms of their run times.
        run_sum: sum of their run times, s.
        last_end: seconds; -inf if none has ended.
        recent: logarithms of the last run times, shape (rows + 1, `RECENT`).
        numbered: hashes of the queues and of the users, in order of first appearance.
    """

    hashes: Hashes
    count: Ints
    log_sum: Floats
    run_sum: Floats
    last_end: Floats
    recent: Singles
    numbered: dict[str, Hashes]


@dataclass(frozen=True)
class Features:
    """Facts known of jobs at submission.

    Attributes:
        matrix: first the features in the order of `described`, NaN if unknown; shape (jobs, at least features).
        means: mean run time of the ended jobs of each group, s, shape (jobs, groups); NaN if there is none.
    """

    matrix: Singles
    means: Floats

    def figure(self, group: str, figure: str) -> Singles:
        """Return one figure of one group, shape (jobs,)."""
        return self.matrix[:, len(OWN) + len(FIGURES) * list(GROUPS).index(group) + list(FIGURES).index(figure)]

    def mean(self, group: str) -> Floats:
        """Return the mean run time of the ended jobs of each job's group, s, shape (jobs,); NaN if there is none."""
        return self.means[:, list(GROUPS).index(group)]

    def column(self, name: str) -> Singles:
        """Return one feature of `described`, shape (jobs,)."""
        return self.matrix[:, list(described()).index(name)]


def of_log(table: JobTable) -> tuple[Features, State]:
    """Return the features of every job of a log, and the state after its last end."""
    rows = table.rows
    state, keys = _start(rows)
    known = np.flatnonzero(rows["known"].to_numpy())
    end = rows["end_s"].to_numpy()[known]
    order = np.argsort(end, kind="stable")
    return _swept(rows, keys, state, end[order], known[order]), state


def of_new(rows: pl.DataFrame, state: State) -> Features:
    """Return the features of jobs that are not in the log of the state.

    Args:
        rows: as `gpuctl.predictors.job_table.describe` returns them.
        state: of the log.
    """
    parts = []
    for group, fields in GROUPS.items():
        values, code = _distinct(rows, fields)
        parts.append(_find(state.hashes, _hashes(values, group))[code])
    matrix, means = _as_of(state, np.stack(parts, axis=1), rows["submit_s"].to_numpy())
    matrix[:, : len(OWN)] = _own(rows, state)
    return Features(matrix, means)


def hashed(*values: str | float) -> int:
    """Return a number of 64 bits for a group and its values: the model folder holds no names of users or jobs."""
    text = json.dumps(values, ensure_ascii=True).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _start(rows: pl.DataFrame) -> tuple[State, Ints]:
    """Return a state in which no job has ended yet, and its rows for each job, shape (jobs, groups)."""
    hashes, codes, first = [], [], 0
    for group, fields in GROUPS.items():
        values, code = _distinct(rows, fields)
        hashes.append(_hashes(values, group))
        codes.append(code + first)
        first += values.height
    every, place = np.unique(np.concatenate(hashes), return_inverse=True)
    numbered = {field: _hashes(_distinct(rows, (field,))[0], f"#{field}") for field in NUMBERED}
    size = len(every) + 1
    state = State(
        hashes=every,
        count=np.zeros(size, np.int64),
        log_sum=np.zeros(size),
        run_sum=np.zeros(size),
        last_end=np.full(size, -np.inf),
        recent=np.zeros((size, RECENT), np.float32),
        numbered=numbered,
    )
    return state, place.astype(np.int64)[np.stack(codes, axis=1)]


def _distinct(rows: pl.DataFrame, fields: tuple[str, ...]) -> tuple[pl.DataFrame, Ints]:
    """Return the distinct values of some columns, in order of first appearance, and the index of each row's value."""
    if not fields:
        return pl.DataFrame(height=1), np.zeros(rows.height, np.int64)
    values = rows.select(fields).unique(maintain_order=True)
    found = rows.select(fields).join(values.with_row_index("code"), on=fields, how="left", maintain_order="left")
    return values, found["code"].to_numpy().astype(np.int64)


def _hashes(values: pl.DataFrame, group: str) -> Hashes:
    rows = values.rows() if values.width else [()] * values.height
    return np.fromiter((hashed(group, *row) for row in rows), np.uint64, len(rows))


def _find(hashes: Hashes, wanted: Hashes) -> Ints:
    """Return the index of each wanted hash among ascending hashes; their number if it is absent."""
    if not len(hashes):
        return np.zeros(len(wanted), np.int64)
    at = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
    return np.where(hashes[at] == wanted, at, len(hashes)).astype(np.int64)


def _swept(rows: pl.DataFrame, keys: Ints, state: State, ends: Floats, ended: Ints) -> Features:
    """Return the features of jobs; the state is updated with all ends."""
    from gpuctl.predictors.history_kernel import sweep

    size, own = rows.height, len(OWN)
    matrix = np.full((size + 1, own + len(FIGURES) * len(GROUPS)), np.nan, np.float32)
    means = np.full((size + 1, len(GROUPS)), np.nan)
    # an extra submission, after all ends, of a job without groups
    nobody = np.full((1, len(GROUPS)), len(state.hashes), np.int64)
    submit = np.append(rows["submit_s"].to_numpy(), np.nan)
    sweep(
        submit, ends, ended, rows["run_s"].to_numpy(), np.concatenate([keys, nobody]),
        state.count, state.log_sum, state.run_sum, state.last_end, state.recent, matrix, own, means,
    )  # fmt: skip
    matrix[:size, :own] = _own(rows, state)
    return Features(matrix[:size], means[:size])


def _as_of(state: State, keys: Ints, submit: Floats) -> tuple[Singles, Floats]:
    """Return figures and means as `gpuctl.predictors.history_kernel.sweep` writes them, from a final state.

    The compiled loop does the same for a log, but loading it takes longer than a prediction may.
    """
    count = state.count[keys]
    recent = np.minimum(count, RECENT)
    some = count > 0
    row, number = np.indices(keys.shape)
    figures = np.full((*keys.shape, len(FIGURES)), np.nan, np.float32)
    latest = state.recent[keys]
    figures[..., 0] = np.where(some, latest[row, number, (count - 1) % RECENT], np.nan)
    figures[..., 1] = np.where(count > 1, latest[row, number, (count - 2) % RECENT], np.nan)
    ordered = np.sort(np.where(np.arange(RECENT) < recent[..., None], latest, np.inf), axis=2)
    low, high = (ordered[row, number, at] for at in ((recent - 1) // 2, np.minimum(recent // 2, RECENT - 1)))
    with np.errstate(invalid="ignore", divide="ignore"):
        figures[..., 2] = state.log_sum[keys] / count
        figures[..., 3] = np.where(some, (low + high) / 2, np.nan)
        figures[..., 4] = np.log(1.0 + recent)
        since = np.maximum(submit[:, None] - state.last_end[keys], 0)
        figures[..., 5] = np.where(some, np.log(1.0 + since), np.nan)
        means = state.run_sum[keys] / count
    wide = figures.shape[1] * figures.shape[2]
    matrix = np.empty((len(keys), len(OWN) + wide), np.float32)
    matrix[:, len(OWN) :] = figures.reshape(len(keys), wide)
    return matrix, means


def _own(rows: pl.DataFrame, state: State) -> Singles:
    """Return the job's own features, in the order of `OWN`; an unknown user or queue gets the next number."""
    limit = rows["time_limit_s"].to_numpy()
    with np.errstate(invalid="ignore"):
        limits = np.log(np.where(limit >= 1, limit, np.nan))
    columns = [rows["size"].to_numpy(), limits, rows["hour"].to_numpy(), rows["weekday"].to_numpy()]
    for field in NUMBERED:
        known = state.numbered[field]
        order = np.argsort(known, kind="stable")
        values, code = _distinct(rows, (field,))
        at = _find(known[order], _hashes(values, f"#{field}"))
        columns.append(np.append(order, len(known))[at][code].astype(np.float64))
    return np.stack(columns, axis=1).astype(np.float32)
