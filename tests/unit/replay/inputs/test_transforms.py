from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.errors import UsageError
from gpuctl.replay.inputs.check import check
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.transforms import (
    bootstrap,
    bootstrap_users,
    forget_placement,
    instant,
    offered_gpus,
    scale_load,
    take,
    window,
)
from tests.unit.replay.outcomes import make_workload

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Workload

DAY = 86_400


def ragged() -> Workload:
    """Three jobs of 1, 3 and 2 segments, placed on 1, 0, 2, 1, 3 and 1 nodes."""
    starts = np.array([0, 1, 1, 3, 4, 7, 8])
    return replace(
        make_workload([0, 10, 20], [0] * 3, [4, 4, 4], queue=[0, 1, 0], queues=("a", "b")),
        depends=np.array([[1, 0], [2, 1]]),
        segment_start=np.array([0, 1, 4, 6]),
        segment_s=np.array([10.0, 20, 21, 22, 30, 31]),
        segment_fails=np.array([False, True, True, False, True, False]),
        recorded_start=np.array([1.0, 11, 41, 71, 31, 62]),
        piece_start=starts,
        piece_node=np.arange(8),
        piece_gpus=np.arange(8) + 10,
    )


def many(days: float, jobs: int, seed: int = 0) -> Workload:
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.random(jobs)) * days * DAY
    return make_workload(submit.tolist(), rng.lognormal(7, 1, jobs).tolist(), rng.choice([1, 2, 8], jobs).tolist())


def test_taken_jobs_bring_all_that_is_theirs() -> None:
    some = take(ragged(), np.array([1, 2]), "two of three")
    assert some.ids == ("j1", "j2")
    assert some.segment_start.tolist() == [0, 3, 5]
    assert some.segment_s.tolist() == [20, 21, 22, 30, 31]
    assert some.segment_fails.tolist() == [True, True, False, True, False]
    assert some.recorded_start.tolist() == [11, 41, 71, 31, 62]
    assert some.piece_start.tolist() == [0, 0, 2, 3, 6, 7]
    assert some.piece_node.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert some.piece_gpus.tolist() == [11, 12, 13, 14, 15, 16, 17]
    assert some.depends.tolist() == [[1, 0]]
    assert some.notes == ("two of three", "1 dependency on jobs outside the replay is dropped")


def test_settings_that_slurm_uses_are_stored() -> None:
    jobs = replace(
        ragged(), account=np.array([1, -1, 0]), accounts=("x", "y"), qos=np.array([0, 0, -1]), qos_names=("high",),
        min_nodes=np.array([0, 2, 3]), nice=np.array([5, 0, -7]),
    )  # fmt: skip
    some = take(jobs, np.array([1, 2]))
    assert some.account is not None
    assert some.qos is not None
    assert some.min_nodes is not None
    assert some.nice is not None
    assert (some.account.tolist(), some.accounts) == ([-1, 0], ("x", "y"))
    assert (some.qos.tolist(), some.qos_names) == ([0, -1], ("high",))
    assert (some.min_nodes.tolist(), some.nice.tolist()) == ([2, 3], [0, -7])
    assert scale_load(jobs, 2).account is jobs.account
    assert take(ragged(), np.array([1])).account is None


def test_all_or_none_can_be_taken() -> None:
    everything, nothing = take(ragged(), np.arange(3)), take(ragged(), np.zeros(0, np.int64))
    for name in ("ids", "segment_s", "piece_start", "piece_gpus", "depends", "notes", "state"):
        assert np.array_equal(getattr(everything, name), getattr(ragged(), name))
    assert (nothing.size, nothing.segment_start.tolist(), nothing.piece_start.tolist()) == (0, [0], [0])


def test_forgotten_placements() -> None:
    bare = forget_placement(ragged())
    assert (bare.piece_start.tolist(), bare.piece_node.size, len(bare.notes)) == ([0] * 7, 0, 1)
    assert forget_placement(bare) is bare


def test_load_is_what_jobs_need_over_the_time_in_which_they_come() -> None:
    assert offered_gpus(make_workload([0, 50, 100], [10, 20, 30], [1, 2, 4])) == pytest.approx(1.7)
    assert offered_gpus(ragged()) == pytest.approx(4 * 134 / 20)
    assert offered_gpus(make_workload([5], [1], [1])) == np.inf


@given(factor=st.floats(0.1, 10), seed=st.integers(0, 99))
def test_scaled_load_is_the_load_times_the_factor(factor: float, seed: int) -> None:
    before = many(3, 50, seed)
    before = replace(before, eligible=before.submit + 100)
    after = scale_load(before, factor)
    assert offered_gpus(after) == pytest.approx(factor * offered_gpus(before))
    assert np.allclose(np.diff(after.submit) * factor, np.diff(before.submit), atol=1e-6)
    assert np.allclose(after.eligible - after.submit, 100 / factor, atol=1e-6)
    assert (np.diff(after.submit) >= 0).all()
    assert (after.eligible >= after.submit).all()
    assert after.segment_s is before.segment_s


def test_scaled_load_has_no_recorded_starts() -> None:
    assert np.isnan(scale_load(ragged(), 2).recorded_start).all()
    assert "load x 2" in scale_load(ragged(), 2).notes[-1]
    assert scale_load(ragged(), 1).recorded_start.tolist() == ragged().recorded_start.tolist()
    for factor in (0, -1, np.nan, np.inf):
        with pytest.raises(UsageError, match="expected a finite number above 0"):
            scale_load(ragged(), factor)


def test_a_window_in_seconds() -> None:
    some = window(ragged(), 10, 20)
    assert (some.ids, some.submit.tolist()) == (("j1",), [10])
    assert some.notes[0] == "1 of 3 jobs is in the window from 10 to 20"
    # j0 runs from 1 to 11; it is the only one submitted before second 10
    assert "1 earlier job was running and 0 waiting" in some.notes[1]
    # a fourth job comes at 40: at 35 j0 is over, j1 waits (it ran from 11 to 31 and will from 41), j2 runs (from 31)
    four = replace(
        make_workload([0, 10, 20, 40], [0] * 4, [1] * 4),
        segment_start=np.array([0, 1, 4, 6, 7]),
        segment_s=np.append(ragged().segment_s, 1),
        segment_fails=np.zeros(7, bool),
        recorded_start=np.append(ragged().recorded_start, np.nan),
        piece_start=np.zeros(8, np.int64),
    )
    assert "1 earlier job was running and 1 waiting" in window(four, "35").notes[1]
    assert window(ragged(), None, 11.5).ids == ("j0", "j1")


def test_a_window_of_jobs_without_records_states_that_it_starts_empty() -> None:
    jobs = make_workload([0, 10, 20], [1] * 3, [1] * 3)
    told = window(jobs, 10).notes
    assert len(told) == 2
    assert str(told[1]).startswith(
        "the cluster starts empty, so the first waits come out too short: the 1 job submitted"
    )
    # nothing is left out before the first job
    assert len(window(jobs, 0, 15).notes) == 1


def test_a_window_by_the_calendar() -> None:
    jobs = many(4, 200)
    jobs = replace(jobs, origin=datetime(2017, 10, 2, 6, tzinfo=UTC))
    day = window(jobs, "2017-10-03", "2017-10-04")
    assert day.submit.min() >= 18 * 3600
    assert day.submit.max() < 42 * 3600
    assert day.size == ((jobs.submit >= 18 * 3600) & (jobs.submit < 42 * 3600)).sum()
    assert window(jobs, "2017-10-03T02:00+02:00", "2017-10-04T00:00Z").ids == day.ids


def test_instants_are_of_the_clock_of_the_trace() -> None:
    zone = ZoneInfo("America/Los_Angeles")
    jobs = replace(make_workload([0], [1], [1]), origin=datetime(2017, 11, 4, 12, tzinfo=zone))
    assert instant(jobs, "2017-11-05T12:00") == DAY  # 25 hours by a clock that is not changed
    assert instant(jobs, "2017-11-05T20:00Z") == DAY
    assert instant(jobs, "-3.5") == instant(jobs, -3.5) == -3.5


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        ("x", None, "'x' is not a time"),
        ("nan", None, "'nan' is not a time"),
        ("2017-10-02", None, "these jobs have no calendar"),
        (5, 5, "is not after its start"),
        (100, None, "no job was submitted in the window from 100 to None; the first one was at 0, the last one at 20"),
    ],
)
def test_windows_that_cannot_be(start: str | float, end: float | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        window(ragged(), start, end)


@pytest.mark.parametrize(("days", "jobs"), [(30, 3000), (7.9, 800), (0.5, 500), (3, 40)])
def test_drawn_jobs_keep_the_load(days: float, jobs: int) -> None:
    before = many(days, jobs)
    for n in (1, jobs // 3, 20 * jobs):
        after = bootstrap(before, n, 7)
        assert after.size == len(set(after.ids)) == n
        check(after, parse_cluster("8x8", after))
    assert offered_gpus(after) == pytest.approx(offered_gpus(before), rel=0.15)
    # what is drawn is a job of the trace, run time, gang and all
    place = np.array([int(name.split("~")[0][1:]) for name in after.ids])
    assert np.array_equal(after.segment_s, before.segment_s[place])
    assert np.array_equal(after.gpus, before.gpus[place])


def test_drawn_days_keep_the_time_of_day() -> None:
    before = many(12.3, 900)
    after = bootstrap(before, 5000, 3)
    place = np.array([int(name.split("~")[0][1:]) for name in after.ids])
    first = before.submit.min()
    assert np.allclose(after.submit % DAY, (before.submit[place] - first) % DAY, atol=1e-3)
    assert before.submit[place].max() < first + 12 * DAY
    assert after.notes[-1] == "5,000 jobs drawn from 12 days (seed 3)"


def test_the_seed_decides() -> None:
    before = many(9, 300)
    one, same, other = (bootstrap(before, 400, seed) for seed in (1, 1, 2))
    assert one.ids == same.ids
    assert np.array_equal(one.submit, same.submit)
    assert one.ids != other.ids


def test_jobs_of_one_instant_and_bad_sizes() -> None:
    alone = bootstrap(replace(make_workload([5, 5], [1, 2], [1, 2]), depends=np.array([[1, 0]])), 5, 0)
    assert (alone.size, set(alone.submit.tolist()), alone.notes[-1]) == (5, {0}, "1 dependency is dropped")
    for n, jobs in ((0, alone), (5, take(alone, np.zeros(0, np.int64)))):
        with pytest.raises(UsageError, match="cannot draw"):
            bootstrap(jobs, n, 0)


@given(n=st.integers(1, 60), seed=st.integers(0, 50), placed=st.booleans())
def test_drawn_jobs_bring_their_segments_and_pieces(n: int, seed: int, placed: bool) -> None:
    before = ragged() if placed else forget_placement(ragged())
    after = bootstrap(before, n, seed)
    for j, name in enumerate(after.ids):
        source = int(name.split("~")[0][1:])
        mine = slice(*after.segment_start[j : j + 2])
        theirs = slice(*before.segment_start[source : source + 2])
        assert np.array_equal(after.segment_s[mine], before.segment_s[theirs])
        for a, b in zip(range(mine.start, mine.stop), range(theirs.start, theirs.stop), strict=True):
            assert np.array_equal(
                after.piece_node[slice(*after.piece_start[a : a + 2])],
                before.piece_node[slice(*before.piece_start[b : b + 2])],
            )
    assert (np.diff(after.submit) >= 0).all()


def test_weeks_are_drawn_whole() -> None:
    # one job at noon of each day, as many GPUs as the day of the week has a number; six weeks
    before = make_workload([day * 86_400 + 43_200 for day in range(43)], [60] * 43, [day % 7 + 1 for day in range(43)])
    after = bootstrap(before, 42, 3, weeks=True)
    assert after.gpus.tolist() == list(range(1, 8)) * 6
    weeks = [int(name.partition("~")[0].lstrip("j")) // 7 for name in after.ids]
    assert [len(set(weeks[k : k + 7])) for k in range(0, 42, 7)] == [1] * 6
    assert len(set(weeks)) < 6, "with replacement"
    assert np.allclose(np.diff(after.submit), 86_400)
    with pytest.raises(UsageError, match="4 whole weeks; drawing weeks takes at least 5"):
        bootstrap(window(before, 0, 33 * 86_400), 10, 0, weeks=True)


def test_users_are_drawn_with_all_their_jobs() -> None:
    made = make_workload(list(range(0, 600, 10)), [60] * 60, [1] * 60)
    of = np.arange(60) % 6 - 1
    before = replace(made, user=of.astype(made.user.dtype), users=("a", "b", "c", "d", "e"))
    after = bootstrap_users(before, 0)
    names = np.array([*after.users, "?"], object)[after.user]
    assert {name.partition("~")[0] for name in names} < {"a", "b", "c", "d", "e", "?"}
    assert any("~" in name for name in names)
    for name in set(names) - {"?"}:
        user, _, again = name.partition("~")
        theirs = np.flatnonzero(of == "abcde".index(user))
        mine = names == name
        assert after.submit[mine].tolist() == made.submit[theirs].tolist()
        assert [after.ids[k] for k in np.flatnonzero(mine)] == [f"{made.ids[k]}~{again or 0}" for k in theirs]
    assert after.size % 10 == 0
    assert (np.diff(after.submit) >= 0).all()
    assert len(set(after.ids)) == after.size
    sizes = {bootstrap_users(before, seed).size for seed in range(5)}
    assert sizes == {60}, "all have ten jobs: six users of ten"
    with pytest.raises(UsageError, match="1 users"):
        bootstrap_users(replace(before, user=np.zeros_like(before.user)), 1)
