"""How long a wait may have been for a limit that no source states. Cases worked out by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.analyze.unstated_limits import possible_s

COLUMNS = ("user", "account", "qos", "queue", "gpus", "cpus", "held_from_c", "held_until_c")
SCHEMA = dict(zip(COLUMNS, [*[pl.String] * 4, *[pl.Float64] * 4], strict=True))


def attempts(*rows: tuple[str | None, float, float, float]) -> pl.DataFrame:
    """Attempts of users, with their GPUs and the seconds from which and until which they held them."""
    whole = [(user, None, None, "q", gpus, None, begin, end) for user, gpus, begin, end in rows]
    return pl.DataFrame(whole, schema=SCHEMA, orient="row")


def possible(held: pl.DataFrame, wait: int, queued: float, total: float = 100.0) -> float:
    start = np.array([held["held_from_c"][wait]])
    return float(possible_s(held, np.array([wait]), np.array([queued]), start, np.array([total]))[0])


def test_a_limit_is_possible_only_while_its_owner_would_hold_more_than_ever() -> None:
    # a holds 4 until 10 and 2 until 30, and never more than 4; another user's 8 keep the queue below its most
    held = attempts(("a", 2, 0, 10), ("a", 2, 0, 30), ("a", 2, 40, 50), ("b", 8, 100, 110), ("b", 8, 100, 110))
    # from 10 on two more would be 4, and three jobs never ran: a third one is more than ever until 10, too
    assert possible(held, 2, 5.0) == 5.0
    held = held.with_columns(gpus=pl.Series([2.0, 2.0, 4.0, 8.0, 8.0]))
    # four more are too many as long as it holds any
    assert possible(held, 2, 5.0) == 25.0


def test_without_jobs_of_its_owner_no_wait_was_for_a_limit() -> None:
    held = attempts(("a", 2, 0, 10), ("b", 2, 20, 30), ("c", 4, 40, 50), ("c", 4, 40, 50))
    assert possible(held, 1, 11.0) == 0.0


def test_a_queue_that_held_all_its_machines_had_no_limit_on_gpus() -> None:
    held = attempts(("a", 4, 0, 10), ("b", 4, 10, 20), ("c", 1, 30, 40), ("d", 1, 30, 40))
    # b waited while a held all 4 GPUs of the queue's machines
    assert possible(held, 1, 0.0, total=4.0) == 0.0
    assert possible(held, 1, 0.0, total=8.0) == 10.0


def test_jobs_of_unknown_users_are_of_no_common_user() -> None:
    held = attempts((None, 2, 0, 10), (None, 2, 10, 20), ("c", 8, 30, 40), ("d", 8, 30, 40))
    assert possible(held, 1, 0.0) == 0.0


@given(st.data())
def test_waits_for_a_limit_on_gpus_or_jobs_are_within_what_is_possible(data: st.DataObject) -> None:
    limit, most = data.draw(st.integers(2, 8)), data.draw(st.integers(1, 4))
    jobs = data.draw(st.lists(st.tuples(st.integers(0, 30), st.integers(1, limit), st.integers(1, 20)), min_size=1))
    rows: list[tuple[str, float, float, float]] = []
    queued, waited = [], []
    # one user's jobs, in order, each as soon as its limits allow
    earliest = 0.0
    for submit, gpus, run in sorted(jobs):
        now = max(float(submit), earliest)
        queued.append(now)
        while (
            sum(g for _, g, b, e in rows if b <= now < e) + gpus > limit
            or sum(1 for _, _, b, e in rows if b <= now < e) >= most
        ):
            now = min(e for _, _, b, e in rows if e > now)
        rows.append(("a", gpus, now, now + run))
        waited.append(now - queued[-1])
        earliest = now
    held = attempts(*rows)
    start = held["held_from_c"].to_numpy()
    found = possible_s(held, np.arange(len(rows)), np.array(queued), start, np.full(len(rows), 100.0))
    assert (found >= np.array(waited) - 1e-9).all()
