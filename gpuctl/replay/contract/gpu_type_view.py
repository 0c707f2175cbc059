"""The view of a policy written in Python on GPU types, classes of jobs and their speeds; a part of `View`."""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.replay.contract import view_kernel as vk
from gpuctl.replay.models.resources import UNBOUND
from gpuctl.replay.models.speed import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload
    from gpuctl.replay.models.speed import Rates


class TypesView:
    """GPU types, classes of jobs, and how fast these are there.

    Attributes:
        types: names of the GPU types, by number.
        time_slice: seconds of a turn of jobs that share GPUs by turns, and of the switch between two.
    """

    types: tuple[str, ...]
    time_slice: tuple[float, float]
    _state: State
    _address: int
    _policy: Policy
    _nodes: int
    _seen: Callable[[int], None]

    def _know_types(self, workload: Workload, cluster: Cluster, rates: Rates) -> None:
        self.types = cluster.gpu_types or workload.gpu_types
        self._type_of: list[int] = cluster.gpu_type.tolist()
        # speeds of nodes of unknown type come last
        self._speeds = None if rates.types is None else rates.types.speed
        self._class_of, self._pairs = rates.row, rates.pairs
        self.time_slice = float(self._state.g.slice[0]), float(self._state.g.switch[0])
        self._type_of_class = dict(zip(self._state.nodes.cls.tolist(), self._type_of, strict=True))

    def gpu_type(self, node: int) -> int:
        """Number of the type of a node's GPUs in `types`; -1: not known."""
        return self._type_of[self._is_node(node)]

    def suits(self, job: int, node: int) -> bool:
        """Whether the job may use the node: by its queue, and by the GPU type that it needs."""
        self._seen(job)
        mask = int(self._state.jobs[index(job)].mask)
        return bool(mask >> int(self._state.nodes[self._is_node(node)].cls) & 1)

    def type_speed(self, job: int, gpu_type: int, level: str = "node") -> float:
        """Speed of the job on GPUs of a type, by number in `types` (-1: unknown), from the user's table.

        Args:
            job: its number.
            gpu_type: of all of its GPUs; on several types it is as fast as on the slowest one.
            level: ``node``: on one, ``rack``: on several of one rack, ``racks``: on several racks.

        Returns:
            multiples of the speed to which run times refer; 1 without a table.
        """
        self._seen(job)
        if level not in LEVELS or not -1 <= index(gpu_type) < len(self.types):
            raise InputError(
                f"{self._policy.name}: type_speed on GPU type {gpu_type!r}, {level!r}: expected a number from -1 to "
                f"{len(self.types) - 1} and {', '.join(LEVELS[:-1])} or {LEVELS[-1]}"
            )
        if self._speeds is None or self._class_of is None:
            return 1.0
        return float(self._speeds[self._class_of[index(job)], index(gpu_type), LEVELS.index(level)])

    def pair_speed(self, job: int, other: int) -> float:
        """Speed of a job packed with another on the same GPUs, relative to alone; 0: they cannot be packed.

        From the user's table of pairs; without one 0.69 for all. With several jobs the speeds are multiplied, but
        without a table it is 0.69 for any number.
        """
        self._seen(job)
        self._seen(other)
        if self._pairs is None or self._class_of is None:
            return float(self._state.jobs[index(job)].pack)
        return float(self._pairs[self._class_of[index(job)], self._class_of[index(other)]])

    def asks(self, job: int) -> tuple[float, float]:
        """CPUs and MB that a job requests for its gang, in proportion on other GPU counts; 0 if they do not count."""
        self._seen(job)
        if not self._state.g.resources[0]:
            return 0.0, 0.0
        ask = self._state.asks[index(job)]
        return float(ask.cpu) / 1000, float(ask.mem)

    def stock(self, node: int) -> tuple[float, float]:
        """CPUs and MB of a node that are free; inf if unknown or not counted."""
        number = self._is_node(node)
        if not self._state.g.resources[0]:
            return math.inf, math.inf
        stock = self._state.stock[number]
        free = ((int(stock.cpu), float(stock.cpu_free) / 1000), (int(stock.mem), float(stock.mem_free)))
        cpus, mem_mb = (math.inf if there >= UNBOUND else amount for there, amount in free)
        return cpus, mem_mb

    def rate(self, job: int) -> float:
        """Progress of the job at this instant, in reference seconds per second, as measured from its steps.

        A measurement needs no table: it reflects placement, GPU count and co-located jobs. 0 while it waits and while
        its checkpoint is loaded or written; for jobs that take turns on GPUs, the mean.
        """
        self._seen(job)
        found: float = vk.rate(self._address, index(job))
        return found

    def _runs_as_there(self, node: int, to_class: int) -> bool:
        """Whether all jobs that run on a class of nodes can also run on this node's GPUs: none has speed 0 there."""
        if self._speeds is None:
            return True
        here, there = (self._speeds[:, t, 0] > 0 for t in (self._type_of[node], self._type_of_class[to_class]))
        return not (there & ~here).any()

    def _is_node(self, node: int) -> int:
        if not 0 <= index(node) < self._nodes:
            raise InputError(f"{self._policy.name}: node {node}: expected 0 to {self._nodes - 1}")
        return index(node)


def classes_as_they_come(workload: Workload, order: Any) -> Any:
    """Number of each job's class, in order of first appearance; -1: unknown."""
    from gpuctl.replay.contract.arrivals import renumber_by_appearance

    if workload.job_class is None:
        return np.full(workload.size, -1)
    return renumber_by_appearance(workload.job_class[order])[0]
