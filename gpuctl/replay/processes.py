"""Replays policies in this process, one after the other, or in several processes; both end at a Ctrl-C."""

from __future__ import annotations

import signal
import threading
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Protocol, Self

from gpuctl.core.errors import GpuctlError, InputError
from gpuctl.core.interruption import uninterrupted
from gpuctl.spread.starting import start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from types import FrameType

    from gpuctl.replay.engine.simulation import Simulation
    from gpuctl.replay.models.records import Outcome, Workload

    Progress = Callable[[Sequence[int], int, Sequence[float]], None]
    """Called with the ended jobs of each policy, in the requested order, the number of all jobs, and the present second
    of each policy's simulation."""


class Task(Protocol):
    """The common input of all processes."""

    @property
    def workload(self) -> Workload:
        """The jobs."""

    @property
    def policies(self) -> tuple[tuple[str, dict[str, str]], ...]:
        """Policies, each with its parameters."""

    def run(self, number: int, progress: Callable[[int, int, float], None]) -> Simulation:
        """Replay one of the policies to its end."""


class CtrlC:
    """Handles Ctrl-C while policies run: once, although Polars may also raise it.

    Attributes:
        over: it was handled; later ones are ignored.
    """

    def __init__(self) -> None:
        self.over = False
        self._before: Any = None

    def __enter__(self) -> Self:
        # only the main thread may set a signal's handler, and an ignored signal stays ignored
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(before):
            self._before = before
            signal.signal(signal.SIGINT, self._answer)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _answer(self, number: int, frame: FrameType | None) -> None:
        if not self.over:
            self._before(number, frame)


def in_turn(task: Task, progress: Progress | None) -> Iterator[tuple[int, Outcome]]:
    """One policy after the other, in this process."""
    ended, seconds = [0] * len(task.policies), [0.0] * len(task.policies)
    for number in range(len(task.policies)):

        def at(jobs: int, size: int, second: float, number: int = number) -> None:
            ended[number], seconds[number] = jobs, second
            if progress is not None:
                progress(ended, size, seconds)

        simulation = task.run(number, at)
        at(task.workload.size, task.workload.size, simulation.now)
        outcome = simulation.outcome(last=True)
        # its memory is freed before tables are made
        del simulation
        yield number, outcome


def side_by_side(task: Task, processes: int, progress: Progress | None) -> Iterator[tuple[int, Outcome]]:
    """Each policy in its own process, a limited number at a time; yields outcomes as they finish."""
    context = get_context("spawn")
    left = list(range(len(task.policies)))[::-1]
    running: dict[Connection, tuple[int, SpawnProcess]] = {}
    ended, seconds = [0] * len(task.policies), [0.0] * len(task.policies)
    try:
        while left or running:
            while left and len(running) < processes:
                number = left.pop()
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(theirs, task, number), daemon=True)
                running[ours] = (number, process)
                start(process)
                theirs.close()
            ready = wait(list(running))
            for ours in [each for each in running if each in ready]:
                number, process = running[ours]
                kind, value = _received(ours)
                if kind == "progress":
                    ended[number], seconds[number] = value
                elif kind == "outcome":
                    ended[number], seconds[number] = task.workload.size, value.end_s
                    del running[ours]
                    process.join()
                    # closed here, not by their finalizers: in those, Ctrl-C would be lost
                    process.close()
                    ours.close()
                    yield number, value
                else:
                    raise _failure(task.policies[number][0], value, process)
                if progress is not None:
                    progress(ended, task.workload.size, seconds)
    finally:
        # a second Ctrl-C leaves none of them, either
        uninterrupted(lambda: _end(running))


def _end(running: Mapping[Connection, tuple[int, SpawnProcess]]) -> None:
    for _, process in running.values():
        if process.pid is not None:
            process.kill()
    for connection, (_, process) in running.items():
        if process.pid is not None:
            process.join()
            process.close()
        connection.close()


def _received(connection: Connection) -> tuple[str, Any]:
    try:
        message: tuple[str, Any] = connection.recv()
    except EOFError:
        return "gone", None
    return message


def _failure(policy: str, error: Exception | None, process: SpawnProcess) -> Exception:
    if error is not None:
        return error
    process.join()
    why = f"signal {-process.exitcode}" if process.exitcode and process.exitcode < 0 else f"exit {process.exitcode}"
    hint = "too little memory? Replay fewer policies at a time with --jobs 1"
    return InputError(f"the process that replayed {policy} ended unexpectedly ({why})", hint=hint)


def _work(connection: Connection, task: Task, number: int) -> None:
    """Run one replay in a process. Sends ``progress``, and at the end ``outcome`` or ``error``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        simulation = task.run(number, lambda ended, _size, second: connection.send(("progress", (ended, second))))
        connection.send(("outcome", simulation.outcome(last=True)))
    except BrokenPipeError:
        # the parent is gone
        return
    except GpuctlError as error:
        connection.send(("error", error))
    except BaseException as error:
        import traceback

        failure = RuntimeError(f"{task.policies[number][0]}: {type(error).__name__}: {error}")
        failure.add_note("".join(traceback.format_exception(error)))
        connection.send(("error", failure))
