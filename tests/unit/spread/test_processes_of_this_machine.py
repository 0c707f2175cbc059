"""Ctrl-C while processes start: none is left, whichever thread the system gives the signal."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing import resource_tracker, util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.spread import local

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def _second_thread() -> Iterator[None]:
    """A thread that does not block SIGINT, like those of a notebook's kernel."""
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    yield
    ended.set()
    thread.join()


def children() -> set[str]:
    """The numbers of this process's children, with those that ended and were not waited for."""
    of_threads = [task.joinpath("children").read_text() for task in Path("/proc/self/task").iterdir()]
    return set(" ".join(of_threads).split())


def add(first: int, second: int) -> int:
    return first + second


@pytest.mark.usefixtures("_second_thread")
@pytest.mark.parametrize("started", [1, 2])
def test_no_process_is_left_if_ctrl_c_comes_while_one_starts(started: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the start and the message that it waits for, an exception left it waiting without an end."""
    begun, start = [], util.spawnv_passfds

    def then_press(*arguments: Any) -> int:
        number: int = start(*arguments)
        begun.append(number)
        if len(begun) == started:
            os.kill(os.getpid(), signal.SIGINT)
        return number

    resource_tracker.ensure_running()
    monkeypatch.setattr(util, "spawnv_passfds", then_press)
    before = children()
    # the error is kept, as a notebook's kernel does: its frames keep what they hold
    with pytest.raises(KeyboardInterrupt) as kept:
        list(local.run(add, 1, {"a": 1, "b": 2, "c": 3}, 2, print))
    assert (children(), len(begun)) == (before, started)
    assert kept.value.__traceback__ is not None
    assert not multiprocessing.active_children()


def test_the_results_of_several_processes() -> None:
    assert dict(local.run(add, 1, {"a": 1, "b": 2, "c": 3}, 2, print)) == {"a": 2, "b": 3, "c": 4}
