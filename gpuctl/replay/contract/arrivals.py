"""Jobs as a policy sees them: at submission, not before."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.replay.models.records import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Ints

REQUEST_FIELDS = (
    "submit", "gpus", "queue", "time_limit", "planned_time", "gpu_type", "app", "account", "qos", "cpus", "mem_mb",
    "min_nodes", "nice", "predicted", "epochs", "checkpoint_bytes", "job_class",
)  # fmt: skip
"""The fields of a job's request at submission, as arrays of a `Workload`."""

SITE = ("queues", "gpu_types", "accounts", "qos_names", "job_classes")
"""Names that belong to the site and are known from the start."""

TRUE_TIMES = ("segment_s", "segment_start", "true_run_time")
"""Fields that only an oracle may read."""


class Arrivals:
    """The jobs that are submitted at one instant, as arrays with one element per job.

    Attributes:
        size: how many.
        ids: their names.
        submit, gpus, queue, time_limit, planned_time, gpu_type, app, account, qos, cpus, mem_mb, min_nodes, nice,
            predicted, epochs, checkpoint_bytes, job_class: as in `gpuctl.replay.models.records.Workload`; None where
            that has None.
        user: numbers, in the order in which users first submit; -1: not known.
        users: names of users that have submitted so far.
        queues, gpu_types, accounts, qos_names, job_classes: names.
        run_time: predicted seconds of run time if there are predictions, else true ones, which only an oracle may read.
        true_run_time, segment_s, segment_start: seconds of run time, and of each segment: only for an oracle.
    """

    def __init__(self, everything: _Everything, first: int, end: int) -> None:
        self._all = everything
        self._first, self._end = first, end
        self.size = end - first

    def __getattr__(self, name: str) -> Any:
        return self._all.read(name, self._first, self._end)


class _Everything:
    """All jobs of a workload in order of submission, readable by range."""

    def __init__(self, workload: Workload, policy: str, *, oracle: bool) -> None:
        self.order = np.argsort(workload.submit, kind="stable")
        self._workload, self._policy, self._oracle = workload, policy, oracle
        user, who = renumber_by_appearance(workload.user[self.order])
        self._user = only_to_read(user)
        self._users = tuple(workload.users[number] for number in who.tolist())
        self._columns: dict[str, NDArray[Any] | None] = {}

    def read(self, name: str, first: int, end: int) -> Any:
        """The values of a field for the jobs at these positions."""
        if name in REQUEST_FIELDS:
            column = self._column(name)
            return None if column is None else column[first:end]
        if name == "user":
            return self._user[first:end]
        if name == "users":
            return self._users[: int(self._user[:end].max(initial=-1)) + 1]
        if name == "ids":
            return tuple(self._workload.ids[job] for job in self.order[first:end].tolist())
        if name in SITE:
            return getattr(self._workload, name)
        if name == "run_time":
            name = "true_run_time" if self._workload.predicted is None else "predicted"
            return self.read(name, first, end)
        return self._only_oracles(name, first, end)

    def _column(self, name: str) -> NDArray[Any] | None:
        if name not in self._columns:
            array = getattr(self._workload, name)
            self._columns[name] = None if array is None else only_to_read(array[self.order])
        return self._columns[name]

    def _only_oracles(self, name: str, first: int, end: int) -> Any:
        if name not in TRUE_TIMES:
            if name in {field.name for field in fields(Workload)}:
                raise InputError(
                    f"{self._policy} reads {name} of jobs, which is unknown at submission",
                    hint=f"known: ids, user, users, run_time, {', '.join((*REQUEST_FIELDS, *SITE))}",
                )
            raise AttributeError(f"jobs have no {name}")
        if not self._oracle:
            raise InputError(
                f"{self._policy} reads true run times without declaring it",
                hint="set oracle = True in the class; reports then show it",
            )
        w = self._workload
        if name == "true_run_time":
            self._columns.setdefault(name, only_to_read(w.true_run_time[self.order]))
            return self._columns[name][first:end]  # type: ignore[index]
        jobs = self.order[first:end]
        counts = np.diff(w.segment_start)[jobs]
        if name == "segment_start":
            return np.append(0, np.cumsum(counts))
        return np.concatenate([w.segment_s[w.segment_start[job] : w.segment_start[job + 1]] for job in jobs.tolist()])


def only_to_read(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of the same numbers."""
    found = array.view()
    found.flags.writeable = False
    return found


def looked_at(workload: Workload) -> Workload:
    """The same jobs with read-only arrays, as all policies of a comparison share them."""
    arrays: dict[str, Any] = {
        name: only_to_read(value) for name, value in vars(workload).items() if isinstance(value, np.ndarray)
    }
    return replace(workload, **arrays)


def arrivals(workload: Workload, policy: str, *, oracle: bool) -> Iterator[tuple[Ints, Arrivals]]:
    """The jobs of each instant at which some are submitted, one instant after the other.

    Args:
        workload: the jobs.
        policy: its name, for messages.
        oracle: whether it may read true run times.

    Yields:
        numbers of the jobs, and what is known of them.
    """
    everything = _Everything(workload, policy, oracle=oracle)
    submit = workload.submit[everything.order]
    edges = np.flatnonzero(np.append(True, submit[1:] != submit[:-1])).tolist() if submit.size else []
    for first, end in zip(edges, [*edges[1:], submit.size], strict=True):
        yield everything.order[first:end], Arrivals(everything, first, end)


def renumber_by_appearance(numbers: Ints) -> tuple[Ints, Ints]:
    """Renumber in order of first appearance; negative numbers stay.

    Returns:
        the new numbers, and the old number of each new one.
    """
    known, place, back = np.unique(numbers, return_index=True, return_inverse=True)
    rank = np.where(known < 0, known, 0)
    some = np.flatnonzero(known >= 0)
    order = some[np.argsort(place[some], kind="stable")]
    rank[order] = np.arange(order.size)
    return rank[back.reshape(-1)].astype(np.int64), known[order]
