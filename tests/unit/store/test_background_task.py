"""Statements that run beside their caller: the next one waits for them, and has their fault."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import StoreError
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOURS = "SELECT count(*) FROM range(1000000000000) r(x) WHERE hash(x) % 7 = 3"
CLUSTERS = "SELECT count(*) FROM clusters"
PUT_IN = "INSERT INTO clusters (cluster, source_format, timezone, clock) VALUES ('a', 'swf', 'UTC', 'utc')"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    # a process that a script started in the background is born deaf to SIGINT
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with Store(tmp_path / "t.duckdb", write=True) as made:
        made.execute("BEGIN")
        yield made
    signal.signal(signal.SIGINT, before)


def _put_in_late(store: Store, go_on: threading.Event) -> None:
    assert go_on.wait(10)
    time.sleep(0.05)
    store.execute(PUT_IN)


@pytest.mark.parametrize("how", ["value", "frame", "beside"])
def test_the_next_statement_waits(store: Store, how: str) -> None:
    go_on, counts = threading.Event(), []
    store.run_in_background(lambda: _put_in_late(store, go_on))
    go_on.set()
    if how == "beside":
        store.run_in_background(lambda: counts.append(store.value(CLUSTERS)))
        store.wait()
    else:
        counts = [store.value(CLUSTERS) if how == "value" else store.frame(CLUSTERS).item()]
    assert counts == [1]
    store.execute("COMMIT")


def test_a_fault_is_raised_if_it_is_waited_for_and_only_once(store: Store) -> None:
    def fail() -> None:
        raise StoreError("its disk is full")

    store.run_in_background(fail)
    with pytest.raises(StoreError, match="disk is full"):
        store.execute(PUT_IN)
    store.execute("ROLLBACK")
    store.run_in_background(fail)
    store.execute("ROLLBACK")
    assert store.value(CLUSTERS) == 0


def test_a_rollback_takes_back_what_is_still_being_written(store: Store) -> None:
    go_on = threading.Event()
    store.run_in_background(lambda: _put_in_late(store, go_on))
    go_on.set()
    store.execute("ROLLBACK")
    assert store.value(CLUSTERS) == 0


def test_ctrl_c_stops_what_is_waited_for(store: Store) -> None:
    store.run_in_background(lambda: store.execute(HOURS) and None)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        store.execute(PUT_IN)
    store.execute("ROLLBACK")
    assert store.value(CLUSTERS) == 0
