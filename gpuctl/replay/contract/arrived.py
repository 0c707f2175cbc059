"""Values per submitted job for policies written in Python; later jobs are hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol, SupportsIndex, TypeVar, overload

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.replay.contract.arrivals import renumber_by_appearance
from gpuctl.replay.contract.gpu_type_view import classes_as_they_come

if TYPE_CHECKING:
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Workload

Value = TypeVar("Value", int, float)


class GuardedView(Protocol):
    """The part of the view that these containers need."""

    def _not_arrived(self, job: int) -> InputError: ...
    def _only_looks(self, what: str) -> InputError: ...


class OfArrived(dict[int, Value]):
    """A value per submitted job, by the job's number.

    A dictionary: lookups cost no more than in a list, and it reveals nothing of jobs to come, not even their number.
    """

    def __init__(self, view: GuardedView) -> None:
        super().__init__()
        self._view = view

    def __missing__(self, job: int) -> Value:
        raise self._view._not_arrived(job)

    def _read_only(self, *_: object, **__: object) -> NoReturn:
        raise self._view._only_looks("a dictionary of the view")

    __setitem__ = __delitem__ = __ior__ = _read_only
    clear = pop = popitem = setdefault = update = _read_only


class ByNumber(tuple[Value, ...]):
    """A value per node or queue, by its number; an unknown or negative number is an error."""

    what: str
    policy: str
    nobody: Value | None

    @classmethod
    def of(cls, values: list[Value], what: str, policy: str, nobody: Value | None = None) -> ByNumber[Value]:
        """Make one; `nobody` is the value of number -1, None: -1 is an error."""
        new = cls(values)
        new.what, new.policy, new.nobody = what, policy, nobody
        return new

    @overload
    def __getitem__(self, number: SupportsIndex) -> Value: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, number: Any) -> Any:
        """The value of that number."""
        if isinstance(number, slice):
            return tuple(self)[number]
        if number == -1 and self.nobody is not None:
            return self.nobody
        if not 0 <= number < len(self):
            least = 0 if self.nobody is None else -1
            raise InputError(f"{self.policy}: {self.what} {number}: expected {least} to {len(self) - 1}")
        return super().__getitem__(number)


def by_submission(workload: Workload, state: State) -> list[tuple[float, int, int, int, int, float, int, int, int]]:
    """Submission, number, gang, least and most GPUs, limit, queue, user and class of each job, by submission."""
    order = np.argsort(workload.submit, kind="stable")
    columns = (
        workload.submit[order],
        order,
        workload.gpus[order],
        np.asarray(state.jobs.least)[order],
        np.asarray(state.jobs.most)[order],
        np.asarray(state.jobs.limit)[order],
        workload.queue[order],
        renumber_by_appearance(workload.user[order])[0],
        classes_as_they_come(workload, order),
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))
