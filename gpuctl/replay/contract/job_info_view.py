"""What a policy written in Python sees of a job besides its size: names, predictions, the file's own columns."""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.errors import InputError
from gpuctl.replay.contract.arrivals import renumber_by_appearance

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.models.records import Ints, Workload


class JobInfoView:
    """Properties of jobs, known from submission; future jobs are hidden, as everywhere."""

    _policy: Policy
    _seen: Callable[[int], None]

    def _know_jobs(self, workload: Workload) -> None:
        self._jobs = workload
        self._apps: list[int] | None = None
        self._priorities: list[float] | None = None
        self._columns: dict[str, list[float] | list[str]] = {}

    def job_name(self, job: int) -> str:
        """Its name in the input."""
        self._seen(job)
        return self._jobs.ids[index(job)]

    def user_name(self, job: int) -> str:
        """Name of the user who has submitted a job; "": not known."""
        self._seen(job)
        number = int(self._jobs.user[index(job)])
        return self._jobs.users[number] if number >= 0 else ""

    def queue_name(self, queue: int) -> str:
        """Name of a queue, by its number; "" for -1."""
        if not -1 <= index(queue) < len(self._jobs.queues):
            raise InputError(f"{self._policy.name}: queue {queue}: expected -1 to {len(self._jobs.queues) - 1}")
        return self._jobs.queues[index(queue)] if queue >= 0 else ""

    def predicted(self, job: int) -> float | None:
        """Predicted seconds of run time (``predicted_time``, ``--run-times``); None: no prediction."""
        self._seen(job)
        return None if self._jobs.predicted is None else float(self._jobs.predicted[index(job)])

    def app(self, job: int) -> int:
        """Number of the app that a job belongs to, in order of first appearance; many apps have one job."""
        self._seen(job)
        if self._apps is None:
            order = self._jobs.submit.argsort(kind="stable")
            numbers = renumber_by_appearance(self._jobs.app[order])[0]
            self._apps = numbers[order.argsort(kind="stable")].tolist()
        return self._apps[index(job)]

    def account(self, job: int) -> str:
        """Name of the account that a job is charged to; "": none is known."""
        return self._name(job, self._jobs.account, self._jobs.accounts)

    def qos(self, job: int) -> str:
        """Name of the quality of service that a job requests; "": none is known."""
        return self._name(job, self._jobs.qos, self._jobs.qos_names)

    def priority(self, job: int) -> float:
        """Its priority, higher is more urgent: the column ``priority``, else minus ``nice``."""
        self._seen(job)
        if self._priorities is None:
            self._priorities = self._read_priorities()
        return self._priorities[job]

    def _read_priorities(self) -> list[float]:
        own, nice = self._jobs.own, self._jobs.nice
        if own is None or "priority" not in own.columns:
            return [0.0] * self._jobs.size if nice is None else (-nice).astype(float).tolist()
        numbers = [cell if isinstance(cell, float) else None for cell in self._read("priority")]
        if None in numbers:
            raise InputError(
                f"{self._policy.name}: the column priority of {self._jobs.name} does not hold numbers only",
                hint="view.column returns text",
            )
        return [0.0 if number is None or math.isnan(number) else number for number in numbers]

    def column(self, job: int, name: str) -> float | str:
        """Value of a user's own column for a job: a number if all its cells are numbers, else text.

        An empty cell is NaN, or "".

        Raises:
            InputError: the jobs have no such column.
        """
        self._seen(job)
        if name not in self._columns:
            self._columns[name] = self._read(name)
        return self._columns[name][index(job)]

    def _read(self, name: str) -> list[float] | list[str]:
        own = self._jobs.own
        if own is None or name not in own.columns:
            there = ", ".join(own.columns) if own is not None else ""
            raise InputError(
                f"{self._policy.name} reads column {name!r} of jobs, which {self._jobs.name} does not have",
                hint=f"its own columns are: {there or 'none'}; what gpuctl reads itself has a method or a dictionary "
                "of the view",
            )
        texts = own[name].replace("", None)
        numbers = texts.cast(pl.Float64, strict=False)
        if numbers.null_count() == texts.null_count():
            return numbers.fill_null(math.nan).to_list()
        return texts.fill_null("").to_list()

    def _name(self, job: int, numbers: Ints | None, names: tuple[str, ...]) -> str:
        self._seen(job)
        number = -1 if numbers is None else int(numbers[index(job)])
        return names[number] if number >= 0 else ""
