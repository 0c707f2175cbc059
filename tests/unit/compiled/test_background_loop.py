"""Loops on a thread of their own: interrupted, watched, and as honest about errors as if called."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from gpuctl.compiled.background_loop import DONE, STOP, aside, watch


def test_an_interrupt_stops_the_loop_and_is_raised_at_once() -> None:
    ended = threading.Event()

    def loop(watched: Any) -> None:
        while not watched[STOP]:
            watched[DONE] += 1
            time.sleep(0.001)
        ended.set()

    def interrupt(done: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aside(loop, watched=watch(), on_progress=interrupt)
    assert ended.wait(5)


def test_results_and_errors_of_the_loop_are_those_of_a_call() -> None:
    def half(values: Any, watched: Any) -> None:
        values[:] /= 2
        watched[DONE] = values.size

    values, watched = np.array([2.0, 4.0]), watch()
    aside(half, values, watched=watched)
    assert values.tolist() == [1, 2]
    assert watched[DONE] == 2
    with pytest.raises(ZeroDivisionError):
        aside(lambda _watched: 1 // 0, watched=watch())
