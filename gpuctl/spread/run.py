"""One way to run many calls, on any engine, with the same results."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from gpuctl.spread import local
from gpuctl.spread.engine import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpuctl.spread.engine import Engine

    S = TypeVar("S")
    T = TypeVar("T")
    R = TypeVar("R")


def run(
    work: Callable[[S, T], R],
    shared: S,
    tasks: Mapping[str, T],
    engine: Engine,
    notify: Callable[[str], None],
) -> Iterator[tuple[str, R]]:
    """Call ``work(shared, task)`` for every task and yield its key and result, in order of completion.

    A task whose worker is killed is repeated by another one, up to `local.ATTEMPTS` times.

    Args:
        work: a function of a module of gpuctl; its result depends only on its arguments.
        shared: common input of all calls; sent to each worker once.
        tasks: by key.
        engine: where they run.
        notify: called with a line for the user.

    Raises:
        GpuctlError: one that `work` raised, or workers are killed again and again.
        DependencyError: Dask is not installed.
    """
    if engine.kind != LOCAL:
        from gpuctl.spread import dask_cluster

        return dask_cluster.run(work, shared, tasks, engine, notify)
    count = min(len(tasks), engine.processes or len(os.sched_getaffinity(0)))
    return local.run(work, shared, tasks, count, notify)
