"""What models of workloads keep of a trace, what anonymous ones do not, and what knobs do."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.workloads import (
    learn,
    lublin,
    lublin_fit,
    quality,
    replay_check,
    resample,
    synthesis_options,
    tables,
    workload_folder,
)
from gpuctl.workloads.jobs import DAY_S, HOUR_S, WEEK_S, Jobs, jobs_of, most_at_once
from gpuctl.workloads.synth import Synthesis, synthesize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.workloads.synth import Model

SWF = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces" / "swf"


def a_trace(users: int = 30, weeks: int = 6, trend: float = 0.0, seed: int = 1) -> Jobs:
    """Users who work on weekdays from 9 to 17, in sessions of like jobs; their last week is busier by the trend."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        for week in range(weeks):
            for day in rng.integers(0, 5, rng.poisson(1.5 * (1 + trend * week))):
                size, run = int(2 ** rng.integers(0, 5)), float(np.exp(rng.normal(7, 1.5)))
                at = week * WEEK_S + day * DAY_S + rng.uniform(9, 17) * HOUR_S
                rows += [(at + 100 * k, size, run * rng.uniform(0.8, 1.2), user) for k in range(rng.geometric(0.25))]
    submit, size, run, user_ = (np.array(column) for column in zip(*sorted(rows), strict=True))
    none = np.full(submit.size, -1)
    limit = np.where(run < 3600, 3600.0, 86_400.0 * 7)
    state = np.full(submit.size, "completed")
    return Jobs("site", submit, size, run, limit, user_, none, none, state, unit="gpu", capacity=64.0)


@pytest.fixture(scope="module")
def trace() -> Jobs:
    return a_trace()


def rows(jobs: Jobs) -> NDArray[np.float64]:
    return np.array(sorted(zip(jobs.size.tolist(), jobs.run_s.tolist(), jobs.limit_s.tolist(), strict=True)))


def test_users_move_whole_weeks_and_nothing_else(trace: Jobs) -> None:
    model = resample.fit(trace)
    assert (model.method, model.near) == ("users", np.inf)
    drawn = model.draw(trace.count, np.random.default_rng(3), lambda weeks: np.ones(weeks.size))
    np.testing.assert_array_equal(rows(drawn), rows(trace))
    for user in (0, 7):
        own, moved = trace.take(trace.user == user), drawn.take(drawn.user == user)
        week = {tuple(own.run_s[own.submit_s // WEEK_S == k].tolist()) for k in range(6)}
        assert {tuple(moved.run_s[moved.submit_s // WEEK_S == k].tolist()) for k in range(6)} == week
        np.testing.assert_allclose(np.sort(own.submit_s % WEEK_S), np.sort(moved.submit_s % WEEK_S), atol=1e-5)
    # more users than there are: others who work alike
    twice = model.draw(2 * trace.count, np.random.default_rng(3), lambda weeks: np.full(weeks.size, 2.0))
    assert twice.span_s < 1.1 * trace.span_s
    assert np.unique(twice.user).size == 2 * np.unique(trace.user).size


def test_a_trend_keeps_pieces_near_their_place(trace: Jobs) -> None:
    rising = a_trace(users=60, weeks=16, trend=0.5)
    model = resample.fit(rising)
    assert model.trend[1] < 0.01 < resample.fit(trace).trend[1]
    assert model.near == 2
    drawn = model.draw(rising.count, np.random.default_rng(0), lambda weeks: np.ones(weeks.size))
    load = np.bincount((drawn.submit_s // WEEK_S).astype(int))
    assert load[8:].mean() > 1.5 * load[:4].mean()
    weeks = resample.fit(dataclasses.replace(rising, user=np.full(rising.count, -1)))
    assert (weeks.method, weeks.near) == ("weeks", 1.5)
    flat = resample.fit(dataclasses.replace(a_trace(weeks=12), user=np.full(a_trace(weeks=12).count, -1)))
    assert (flat.method, flat.near) == ("weeks", np.inf)
    assert weeks.trend[0] < 0.5 < flat.trend[0]
    drawn = weeks.draw(rising.count, np.random.default_rng(0), lambda weeks: np.ones(weeks.size))
    np.testing.assert_array_equal(rows(drawn), rows(rising))
    np.testing.assert_allclose(np.sort(drawn.submit_s % DAY_S), np.sort(rising.submit_s % DAY_S), atol=1e-5)


@pytest.mark.parametrize("method", ["users", "weeks", "jobs", "parametric", "lublin"])
def test_a_model_survives_its_folder_and_a_seed_gives_the_same_jobs(trace: Jobs, method: str, tmp_path: Path) -> None:
    model: Model = (
        learn.fit(trace)
        if method == "parametric"
        else lublin.Lublin(lublin.for_machine(lublin.PUBLISHED, 64), "gpu", 64.0)
        if method == "lublin"
        else resample.fit(trace, method)
    )
    workload_folder.save(tmp_path / "m", model, tables.about(model, trace, (), (), anonymous=False))
    again, card = workload_folder.load(tmp_path / "m")
    assert tables.method_of(again) == card["method"] == method
    wanted = Synthesis(500, seed=5, load=0.7)
    one, other = synthesize(model, wanted), synthesize(again, wanted)
    for name in ("submit_s", "size", "limit_s", "user"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    # a folder has five digits of a mixture's numbers
    np.testing.assert_allclose(one.run_s, other.run_s, rtol=1e-3, atol=2)
    assert one.count == 500
    assert one.load() == pytest.approx(0.7, rel=0.02)
    assert not np.array_equal(synthesize(model, Synthesis(500, seed=6, load=0.7)).submit_s, one.submit_s)


def test_knobs_do_what_they_say(trace: Jobs) -> None:
    model = resample.fit(trace)
    plain = synthesize(model, Synthesis(3_000))
    large = synthesize(model, Synthesis(3_000, large=synthesis_options.Large(0.5, 16)))
    assert (plain.size >= 16).mean() < 0.3
    assert (large.size >= 16).mean() == pytest.approx(0.5, abs=0.01)
    assert quality.autocorrelation(np.log(large.size), 1) > 0.5
    tail = synthesize(model, Synthesis(3_000, tail=1.5))
    cut = np.quantile(plain.run_s, 0.9)
    np.testing.assert_array_equal(tail.run_s[plain.run_s < cut - 1], plain.run_s[plain.run_s < cut - 1])
    assert np.log(tail.run_s.max() / cut) == pytest.approx(1.5 * np.log(plain.run_s.max() / cut), rel=0.01)
    grown = synthesize(model, Synthesis(3_000, growth=4))
    weekly = np.bincount((grown.submit_s // WEEK_S).astype(int))
    assert 2 < weekly[-4:-1].mean() / weekly[:3].mean() < 6
    by_users = synthesize(model, Synthesis(3_000, load=2 * trace.load(), load_by="users"))
    assert by_users.load() == pytest.approx(2 * trace.load(), rel=0.25)
    hour = np.bincount((by_users.submit_s // HOUR_S).astype(int) % 24, minlength=24)
    assert hour[8:19].sum() > 0.98 * hour.sum()
    with pytest.raises(UsageError, match="no job has 1000"):
        synthesize(model, Synthesis(10, large=synthesis_options.Large(0.5, 1000)))


def test_days_in_place_of_jobs_and_other_users(trace: Jobs) -> None:
    model = resample.fit(trace)
    found = synthesize(model, Synthesis(10**6, days=14))
    # nobody works on weekends here
    assert int(found.submit_s[-1] // DAY_S - found.submit_s[0] // DAY_S) == 11
    whole = synthesize(model, Synthesis(trace.count))
    np.testing.assert_array_equal(found.submit_s, whole.submit_s[whole.submit_s < 14 * DAY_S])
    assert found.count > 100
    loaded = synthesize(model, Synthesis(10**6, days=14, load=2 * trace.load()))
    assert loaded.load() == pytest.approx(2 * trace.load(), rel=0.35)
    assert int(loaded.submit_s[-1] // DAY_S - loaded.submit_s[0] // DAY_S) in {11, 12, 13}
    with pytest.raises(UsageError, match="more than 10 jobs"):
        synthesize(model, Synthesis(10, days=14))

    def by_user(jobs: Jobs) -> list[tuple[float, ...]]:
        return [tuple(jobs.run_s[jobs.user == user].tolist()) for user in range(int(jobs.user.max()) + 1)]

    own = by_user(trace)
    some = by_user(synthesis_options.with_users(trace, 7, np.random.default_rng(1)))
    assert len(some) == 7 == len(set(some) & set(own))
    more = by_user(synthesis_options.with_users(trace, 2 * len(own) + 3, np.random.default_rng(1)))
    assert sorted(more.count(one) for one in own) == [2] * (len(own) - 3) + [3] * 3
    few = synthesize(model, Synthesis(500, users=4))
    assert set(few.user) == {0, 1, 2, 3}
    assert np.unique(synthesize(learn.fit(trace), Synthesis(500, users=4)).user).size == 4
    with pytest.raises(UsageError, match="the model has no users"):
        synthesize(lublin.Lublin(lublin.for_machine(lublin.PUBLISHED, 64), "gpu", 64.0), Synthesis(10, users=4))


def test_laws_find_again_what_made_a_trace(trace: Jobs) -> None:
    found = learn.fit(a_trace(users=60, weeks=12))
    assert found.users == 60
    assert found.single == pytest.approx(0.25, abs=0.03)
    assert found.more == pytest.approx(3, abs=0.4)
    assert found.same_inside > 0.95
    rate = found.rate.reshape(7, 24)
    assert rate[:5, 9:17].sum() > 0.97 * rate.sum()
    # sessions of one size after another look alike by chance, and their run times do not
    assert 0.1 < found.within < 0.3
    drawn = synthesize(found, Synthesis(20_000))
    assert np.log(drawn.run_s).mean() == pytest.approx(7, abs=0.15)
    assert np.log(drawn.run_s).std() == pytest.approx(1.5, abs=0.15)
    # jobs of one law of sizes, one rate, and no memory are told apart from the trace
    alone = learn.fit(trace, "poisson")
    scores = {
        s.measure: s for s in quality.scores(trace, [synthesize(alone, Synthesis(trace.count, k)) for k in range(3)])
    }
    assert scores["index of dispersion of arrivals, 1 h"].verdict == quality.UNLIKE
    assert scores["jobs in the busiest 8 hours of the day, share"].verdict == quality.UNLIKE


def test_an_anonymous_model_rests_on_groups(trace: Jobs) -> None:
    """A job like no other, of a user like no other, leaves no trace; and what few users do is not told."""
    odd = {"submit_s": 3 * WEEK_S + 6 * DAY_S + 3 * HOUR_S, "size": 7777, "run_s": 12_345_678.0, "limit_s": 98_765.0}
    columns = {name: np.append(getattr(trace, name), value) for name, value in odd.items()}
    order = np.argsort(columns["submit_s"], kind="stable")
    more = {"user": 99, "queue": 0, "gpu_type": 0, "state": "failed"}
    columns |= {name: np.append(getattr(trace, name), value) for name, value in more.items()}
    # eleven jobs of one size and limit, but of one user
    few = trace.take(slice(0, 11))
    few = dataclasses.replace(few, size=np.full(11, 19), limit_s=np.full(11, 4242.0), user=np.full(11, 98))
    marked = dataclasses.replace(
        trace, name="secret", queues=("boss-only",), gpu_types=("B999",),
        **{name: np.append(values[order], getattr(few, name)) for name, values in columns.items()},
    )  # fmt: skip
    marked = marked.take(np.argsort(marked.submit_s, kind="stable"))
    model = learn.fit(marked, anonymous=True)
    card = tables.about(model, marked, (), (), anonymous=True)
    text = json.dumps([workload_folder.contents(model), card])
    for word in ("7777", "12345678", "98765", "4242", "secret", "boss", "B999", "failed", "sha256"):
        assert word not in text
    assert set(model.sizes.tolist()) == {1, 2, 4, 8, 16}
    assert 19 not in model.sizes
    assert model.longest.max() < 1e6
    # each number of hours is of ten jobs of five users: the night of Sunday is one with other hours
    assert np.unique(model.rate).size <= 48
    for values in (model.rate, model.kind_share, model.longest, model.limit_share):
        assert all(float(f"{value:.3g}") == value for value in values.tolist())
    for k, mixture in enumerate(model.runs):
        jobs = np.searchsorted(model.class_top, marked.size) == k
        assert (mixture.weight * jobs.sum() >= 10).all()
        assert (mixture.sd >= 0.3).all()
    with pytest.raises(UsageError, match="must name the users"):
        learn.fit(dataclasses.replace(trace, user=np.full(trace.count, -1)), anonymous=True)
    with pytest.raises(UsageError, match="at least 5"):
        learn.fit(dataclasses.replace(trace, user=trace.user % 4), anonymous=True)


def test_an_anonymous_model_keeps_no_duration_of_one_users_jobs(trace: Jobs) -> None:
    """Many jobs of one user run exactly as long, and longest; no number tells how long."""
    own = trace.take(slice(0, 200))
    own = dataclasses.replace(own, run_s=np.full(200, 86_423.0), size=np.ones(200, np.int64), user=np.full(200, 98))
    parts = {name: np.append(getattr(trace, name), getattr(own, name))
             for name in ("submit_s", "size", "run_s", "limit_s", "user", "queue", "gpu_type", "state")}  # fmt: skip
    marked = dataclasses.replace(trace, **parts)
    marked = marked.take(np.argsort(marked.submit_s, kind="stable"))
    assert any(abs(mean - np.log(86_423)) < 0.03 for law in learn.fit(marked).runs for mean in law.mean.tolist())
    model = learn.fit(marked, anonymous=True)
    group = np.searchsorted(model.class_top, marked.size)
    for k, law in enumerate(model.runs):
        assert np.round(law.mean, 1).tolist() == law.mean.tolist(), "steps of 10 %"
        part, who = law.part(np.log(marked.run_s[group == k])), marked.user[group == k]
        for number in range(law.weight.size if law.weight.size > 1 else 0):
            users = np.unique(who[part == number], return_counts=True)[1]
            assert users.size >= learn.LEAST_USERS
            assert 2 * users.max() <= users.sum(), "no user has most of a law's jobs"
    assert not np.isin(model.longest, marked.run_s).any(), "the longest run time is that of no job"
    text = tables.about(model, marked, (), (), anonymous=True)["privacy"]
    assert "no exact duration of anybody's jobs" in text


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ({"mean": {"verdict": quality.UNLIKE}, "p50": {"verdict": quality.LIKE}}, "1 of 2 measures of the jobs"),
        ({quality.UNLIKE: 3, quality.LIKE: 7}, "3 of 10 measures of the jobs"),
        ({quality.UNLIKE: 0, quality.LIKE: 7}, ""),
        ({"mean": {"verdict": quality.LIKE}}, ""),
        ("not scored", ""),
    ],
)
def test_synth_warns_where_the_model_was_unlike_its_trace(trace: Jobs, scores: object, told: str) -> None:
    model, wanted = learn.fit(trace), Synthesis(50, 0)
    found = tables.synthesis_result(model, synthesize(model, wanted), wanted, (), "", card={"scores": scores})
    said = [text for text in found.warnings if "unlike the trace (fit_quality)" in text]
    assert len(said) == bool(told)
    assert all(told in text for text in said)


@pytest.mark.parametrize(
    ("origin", "given", "guessed"),
    [("held", None, True), ("offered", None, True), ("machines", None, False), ("held", 64.0, False)],
)
def test_synth_warns_where_the_load_rests_on_a_guess(
    trace: Jobs, origin: str, given: float | None, guessed: bool
) -> None:
    model, wanted = learn.fit(dataclasses.replace(trace, capacity_from=origin)), Synthesis(50, 0, 0.5, capacity=given)
    found = tables.synthesis_result(model, synthesize(model, wanted), wanted, (), "")
    assert any("guessed capacity" in text for text in found.warnings) == guessed
    assert not any("guess" in text for text in tables.synthesis_result(
        model, synthesize(model, Synthesis(50, 0)), Synthesis(50, 0), (), "").warnings)  # fmt: skip


def test_halves_are_the_yardstick() -> None:
    trace = a_trace(weeks=8)
    first, second = quality.halves(trace)
    assert first.count + second.count == trace.count
    assert first.submit_s[-1] < (trace.submit_s[0] + trace.submit_s[-1]) / 2 <= second.submit_s[0]
    same = {(s.measure, s.of): s for s in quality.scores(trace, [trace])}
    assert all(s.verdict != quality.UNLIKE for s in same.values())
    assert same["KS distance", "size"].synthetic == 0
    assert same["jobs at the time, size and run time of a job of the trace, share", ""].synthetic == 1
    longer = dataclasses.replace(trace, run_s=trace.run_s * 50)
    other = {(s.measure, s.of): s for s in quality.scores(trace, [longer])}
    assert other["KS distance", "ln run time"].verdict == quality.UNLIKE
    assert other["Wasserstein distance", "ln run time"].synthetic == pytest.approx(np.log(50))


def test_replays_compare_at_one_load() -> None:
    trace = a_trace(users=8, weeks=4)
    stretched = dataclasses.replace(trace, submit_s=trace.submit_s * 3)
    scores = {(s.measure, s.of): s for s in replay_check.scores(trace, [stretched], 64, 0.8)}
    wait = scores["mean wait, h", "fifo"]
    assert wait.synthetic == pytest.approx(wait.trace)
    assert wait.trace > scores["mean wait, h", "easy"].trace > 0
    used = replay_check.waits(trace, 64, 0.8, ["fifo"])["fifo"]
    assert 0.5 < used["utilization until the last submission, share"] < 0.8


def test_lublins_laws_are_those_of_the_authors_program() -> None:
    """Statistics of the authors' own output for 256 processors, and of ours."""
    drawn = synthesize(lublin.Lublin(lublin.for_machine(lublin.PUBLISHED, 256), "cpu", 256.0), Synthesis(40_000))
    parallel = drawn.size[drawn.size > 1]
    assert (drawn.size == 1).mean() == pytest.approx(0.249, abs=0.01)
    assert (np.log2(parallel) % 1 == 0).mean() == pytest.approx(0.815, abs=0.01)
    assert drawn.size.mean() == pytest.approx(22.1, rel=0.03)
    assert np.log(np.median(drawn.run_s) / 137) == pytest.approx(0, abs=0.1)
    assert np.log(drawn.run_s).mean() == pytest.approx(5.68, abs=0.05)
    assert np.log(drawn.run_s).std() == pytest.approx(3.02, abs=0.05)


def test_lublins_laws_are_found_again() -> None:
    laws = lublin.for_machine(lublin.PUBLISHED, 256)
    found = lublin_fit.fit(synthesize(lublin.Lublin(laws, "cpu", 256.0), Synthesis(10_000, seed=5)))
    for name, value in vars(laws).items():
        assert getattr(found, name) == pytest.approx(value, rel=0.1), name


def test_jobs_are_counted_in_what_they_have() -> None:
    frame = pl.DataFrame(
        {
            "job": list("abcde"),
            "submit_s": [4 * DAY_S + 50.0, 4 * DAY_S + 10, None, 4 * DAY_S + 7, 4 * DAY_S + 99],
            "run_sum_s": [10.0, 20, 30, 0, None], "gpus": [0.0] * 5, "cpus": [4.0, 1.5, 2, 2, 2],
            "user": ["z", "y", "x", "z", "z"],
            "start_s": [4 * DAY_S + 50.0, 4 * DAY_S + 45, None, None, None],
        }
    )  # fmt: skip
    found = jobs_of("x", frame)
    assert (found.unit, found.capacity, found.capacity_from) == ("cpu", 6, "held")
    assert found.submit_s.tolist() == [10, 50]
    assert found.size.tolist() == [2, 4]
    assert found.user.tolist() == [0, 1]
    assert dict(found.left_out) == {"no submission": 1, "no run time": 1, "a run time of 0 s": 1, "rounded up": 1}
    with pytest.raises(InputError, match="none of 5 jobs"):
        jobs_of("x", frame, unit="gpu")
    assert most_at_once(np.array([0.0, 5, 10]), np.array([10.0, 10, 1]), np.array([2, 3, 4])) == 7


def _mean_wait_h(jobs: Jobs, capacity: int) -> float:
    return replay_check.waits(jobs, capacity, 0.8, ["fifo"])["fifo"]["mean wait, h"]


def _check_waits(trace: Jobs, capacity: int) -> None:
    """The median of twelve seeds, under fifo at load 0.8, is within a factor of 1.5 of the log's own mean wait."""
    own, model = _mean_wait_h(trace, capacity), resample.fit(trace)
    waits = [_mean_wait_h(synthesize(model, Synthesis(trace.count, seed)), capacity) for seed in range(12)]
    assert own / 1.5 < float(np.median(waits)) < own * 1.5


def test_waits_of_synthetic_jobs_are_near_those_of_their_trace(trace: Jobs) -> None:
    """They depend on sessions of like jobs: in another order, the same jobs wait less than the factor allows."""
    _check_waits(trace, 64)
    order = np.random.default_rng(0).permutation(trace.count)
    mixed = dataclasses.replace(trace, size=trace.size[order], run_s=trace.run_s[order])
    assert _mean_wait_h(mixed, 64) < _mean_wait_h(trace, 64) / 1.5


@pytest.mark.parametrize(
    ("name", "zone_s", "capacity"), [("hpc2n.swf", 7200, 240), ("NASA-iPSC-1993-3.1-cln.swf.gz", -25_200, 128)]
)
def test_waits_of_published_logs(name: str, zone_s: int, capacity: int) -> None:
    if not (SWF / name).exists():
        pytest.skip("../shared is not there")
    import gzip

    raw = (SWF / name).read_bytes()
    lines = (gzip.decompress(raw) if name.endswith("gz") else raw).decode("latin-1").splitlines()
    begin = next(float(line.split(":")[1]) for line in lines if line.startswith(";") and "UnixStartTime" in line)
    cells = np.array(
        [line.split()[:18] for line in lines if line[:1] not in {"", ";"} and len(line.split()) >= 18], float
    )
    frame = pl.DataFrame(
        {
            "job": [f"{k:06}" for k in range(len(cells))], "submit_s": cells[:, 1] + begin + zone_s,
            "run_sum_s": cells[:, 3], "cpus": cells[:, 4], "user": cells[:, 11].astype(int).astype(str),
        }
    )  # fmt: skip
    trace = jobs_of(name, frame, stock={"cpu": capacity})
    assert _mean_wait_h(trace, capacity) == pytest.approx({240: 13.4, 128: 58.3}[capacity], abs=0.06)
    _check_waits(trace, capacity)
