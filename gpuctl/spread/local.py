"""Calls in processes of this machine."""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

from gpuctl.core.errors import GpuctlError, InputError
from gpuctl.spread.starting import without_main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    S = TypeVar("S")
    T = TypeVar("T")
    R = TypeVar("R")

ATTEMPTS = 3
"""Number of killed workers after which a task is not retried."""


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    key: str


def run(
    work: Callable[[S, T], R], shared: S, tasks: Mapping[str, T], count: int, notify: Callable[[str], None]
) -> Iterator[tuple[str, R]]:
    """Call ``work(shared, task)`` for every task, `count` at a time: see `gpuctl.spread.run.run`.

    With one at a time everything runs in this process.
    """
    if count <= 1:
        for key, task in tasks.items():
            yield key, work(shared, task)
        return
    left, lost = list(tasks)[::-1], dict.fromkeys(tasks, 0)
    workers: dict[Connection, _Worker] = {}
    try:
        while left or workers:
            while left and len(workers) < count:
                worker = _started(work, shared)
                workers[worker.connection] = worker
                _hand(worker, left.pop(), tasks)
            for connection in [each for each in wait(list(workers)) if each in workers]:
                worker = workers[connection]
                try:
                    done, result = worker.connection.recv()
                except (EOFError, ConnectionError):
                    del workers[connection]
                    _end(worker)
                    left.append(_lost(worker.key, lost, notify))
                    continue
                if not done:
                    raise result
                key = worker.key
                if left:
                    _hand(worker, left.pop(), tasks)
                else:
                    _end(workers.pop(connection))
                yield key, result
    finally:
        for worker in workers.values():
            _end(worker)


def _started(work: Callable[[Any, Any], Any], shared: object) -> _Worker:
    context = multiprocessing.get_context("spawn")
    # started first, or its start would unblock Ctrl-C
    resource_tracker.ensure_running()
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, shared), daemon=True)
    # Ctrl-C reaches the whole process group, and the first process handles it: the others inherit the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with without_main():
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return _Worker(process, ours, "")


def _hand(worker: _Worker, key: str, tasks: Mapping[str, Any]) -> None:
    worker.key = key
    try:
        worker.connection.send(tasks[key])
    except ConnectionError:
        # it was killed, as receiving will show
        return


def _lost(key: str, lost: dict[str, int], notify: Callable[[str], None]) -> str:
    lost[key] += 1
    if lost[key] == ATTEMPTS:
        raise InputError(
            f"a worker was killed {ATTEMPTS} times at the same task (out of memory?)",
            hint="run the same command again, with --jobs 1 if memory is short",
        )
    notify("a worker was killed; another one repeats its task")
    return key


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.process.close()
    worker.connection.close()


def _serve(connection: Connection, work: Callable[[Any, Any], Any], shared: object) -> None:
    """Run tasks in a process until it is ended."""
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        answer: tuple[bool, Any]
        try:
            answer = True, work(shared, task)
        except GpuctlError as error:
            answer = False, error
        except BaseException as error:
            import traceback

            failure = RuntimeError(f"{type(error).__name__}: {error}")
            failure.add_note("".join(traceback.format_exception(error)))
            answer = False, failure
        try:
            connection.send(answer)
        except ConnectionError:
            # the parent is gone
            return
