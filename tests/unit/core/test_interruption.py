"""Ctrl-C while a statement runs: it ends in a known state first, and only then is the signal raised."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.interruption import uninterrupted
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOURS = "SELECT count(*) FROM range(1000000000000) r(x) WHERE hash(x) % 7 = 3"


@pytest.fixture(autouse=True)
def _own_handler() -> Iterator[None]:
    # a process that a script started in the background is born deaf to SIGINT
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press(*after_s: float) -> list[threading.Timer]:
    """Press Ctrl-C after so many seconds; call it where the answer is expected, not before."""
    timers = [threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)) for delay in after_s]
    for timer in timers:
        timer.start()
    return timers


@pytest.mark.parametrize("presses", [(0.05,), (0.05, 0.1, 0.15)])
def test_what_must_not_be_stopped_ends_before_ctrl_c_is_raised(presses: tuple[float, ...]) -> None:
    ended = threading.Event()

    def work() -> None:
        for timer in press(*presses):
            timer.join()
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert ended.is_set()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_that_the_interrupt_causes_is_not_shown_in_its_place() -> None:
    stop = threading.Event()

    def work() -> None:
        press(0.05)
        stop.wait(30)
        raise RuntimeError("Query interrupted")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work, stop.set)


def test_an_interruption_that_came_too_early_is_repeated() -> None:
    calls, stop = [], threading.Event()

    def interrupt() -> None:
        calls.append(1)
        if len(calls) == 3:
            stop.set()

    def work() -> None:
        press(0.05)
        assert stop.wait(30), "the first two were forgotten"

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work, interrupt)
    count = len(calls)
    time.sleep(0.2)
    assert len(calls) == count, "no later statement is stopped"


def test_results_and_errors_come_back() -> None:
    def fail() -> None:
        raise ValueError("no")

    assert uninterrupted(lambda: 42) == 42
    with pytest.raises(ValueError, match="no"):
        uninterrupted(fail)


def test_ctrl_c_that_is_ignored_stays_so() -> None:
    def work() -> int:
        for timer in press(0.05):
            timer.join()
        return 1

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert uninterrupted(work) == 1
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize("how", ["execute", "frame"])
def test_a_store_whose_statement_was_stopped_is_closed_in_peace(tmp_path: Path, how: str) -> None:
    path = tmp_path / "t.duckdb"

    def wait_for_hours() -> None:
        with Store(path, write=True) as store:
            press(0.4)
            getattr(store, how)(HOURS)

    with pytest.raises(KeyboardInterrupt):
        wait_for_hours()
    with Store(path) as store:
        assert store.value("SELECT count(*) FROM sources") == 0
