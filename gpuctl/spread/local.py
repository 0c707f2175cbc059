"""Calls in processes of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

from gpuctl.core.errors import GpuctlError, InputError
from gpuctl.core.interruption import uninterrupted
from gpuctl.spread.starting import start

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
    context = get_context("spawn")
    left, lost = list(tasks)[::-1], dict.fromkeys(tasks, 0)
    workers: dict[Connection, _Worker] = {}
    try:
        while left or workers:
            while left and len(workers) < count:
                ours, theirs = context.Pipe()
                worker = _Worker(context.Process(target=_serve, args=(theirs, work, shared), daemon=True), ours, "")
                workers[ours] = worker
                start(worker.process)
                theirs.close()
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
        # a second Ctrl-C leaves none of them, either
        uninterrupted(lambda: _end_all(workers))


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
    if worker.process.pid is not None:
        worker.process.kill()
        worker.process.join()
        worker.process.close()
    worker.connection.close()


def _end_all(workers: Mapping[Connection, _Worker]) -> None:
    for worker in workers.values():
        _end(worker)


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
