"""The loop of layers, against cases by hand, against all schedules of tiny cases, and against the shared oracles."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.compiled.jit import interpreted
from gpuctl.core.errors import UsageError
from gpuctl.research.accel import compare
from gpuctl.research.accel import state as s
from gpuctl.research.accel.costs import Machine, machine_of, parse_system, read_costs
from gpuctl.research.accel.offline import exhaustive, fair_speeds
from gpuctl.research.accel.policies import NAMES, rule
from gpuctl.research.accel.recorded import read_arrivals
from gpuctl.research.accel.requests import (
    Requests,
    capacity_us,
    csv_of,
    generate,
    models_of,
    read_requests,
    requests_of,
)
from gpuctl.research.accel.saved import SHAPES, small
from gpuctl.research.accel.simulate import Outcome, Policy, Rules, simulate, state_of
from gpuctl.research.accel.world_kernel import share
from gpuctl.research.learn.repeated_runs import u
from tests.example_counts import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

ORACLES = Path(__file__).resolve().parents[5] / "shared" / "oracles" / "relmas"
TINY = """model,idx,kind,compute_us,dram_bytes,energy_uj
m,0,simba-s,4,100,1
m,0,eyeriss-s,6,200,2
m,1,simba-s,10,800,3
m,1,eyeriss-s,5,300,2
n,0,simba-s,3,450,2
n,0,eyeriss-s,8,160,1
n,1,simba-s,6,60,2
n,1,eyeriss-s,4,400,3
o,0,simba-s,12,600,5
o,0,eyeriss-s,7,420,4
"""
PAIR = "simba-s:1,eyeriss-s:1@100"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    path = tmp_path_factory.mktemp("costs") / "layers.csv"
    path.write_text(TINY)
    return machine_of(parse_system(PAIR), read_costs(path))


def asked(machine: Machine, rows: Sequence[tuple[str, float, float]]) -> Requests:
    return requests_of(
        [
            (f"r{k}", f"t{k % 2}", "", machine.model(m), arrival, deadline)
            for k, (m, arrival, deadline) in enumerate(rows)
        ]
    )


FIRST = (("m", 0, 14), ("n", 0, 16), ("o", 2, 18))


def lines(outcome: Outcome) -> list[tuple[float, ...]]:
    return sorted(tuple(round(float(x), 3) for x in row) for row in zip(*outcome.log, strict=True))


def test_layers_run_where_and_when_they_do_by_hand(tiny: Machine) -> None:
    outcome = simulate(tiny, asked(tiny, FIRST), rule("edf-eft"))
    assert lines(outcome) == [(0, 0, 0, 0, 4), (0, 1, 1, 8, 14), (1, 0, 1, 0, 8), (1, 1, 1, 14, 19), (2, 0, 0, 4, 16)]
    assert outcome.met.tolist() == [True, False, True]
    assert outcome.energy_uj == 1 + 2 + 1 + 3 + 5


def test_the_best_of_all_schedules(tiny: Machine) -> None:
    best = exhaustive(tiny, asked(tiny, FIRST), Rules())
    assert (best.met.sum(), best.end.sum()) == (2, pytest.approx(41.5))
    second = exhaustive(tiny, asked(tiny, (("o", 0, 12), ("o", 0, 30), ("m", 1, 26), ("n", 3, 20))), Rules())
    assert (second.met.sum(), second.end.sum()) == (4, pytest.approx(61.2))


def test_a_plan_holds_until_the_next_multiple_of_the_period(tiny: Machine) -> None:
    outcome = simulate(tiny, asked(tiny, FIRST), rule("edf-eft"), Rules(period_us=10))
    # at 10 all three wait: r0 goes to 1 until 15, r1 to 0 until 16, and r2 takes 1 as soon as that is free
    assert lines(outcome) == [
        (0, 0, 0, 0, 4), (0, 1, 1, 10, 15), (1, 0, 1, 0, 8), (1, 1, 0, 10, 16), (2, 0, 1, 15, 22)
    ]  # fmt: skip
    assert outcome.decisions == 2


def test_late_requests_are_dropped_or_last(tiny: Machine) -> None:
    rows = (("o", 0, 5), ("n", 0, 40), ("m", 0, 40))
    kept, dropped = (simulate(tiny, asked(tiny, rows), rule("edf-eft"), Rules(drop=d)) for d in (False, True))
    assert (kept.dropped, dropped.dropped) == (0, 1)
    assert np.isnan(dropped.end[0])
    assert kept.end[0] > 0
    behind = simulate(tiny, asked(tiny, rows), rule("edf-eft+h"))
    assert behind.start[0] > 0 == kept.start[0]


def test_hashed_numbers() -> None:
    assert u(1, 0, "gap") == pytest.approx(0.411453451845, abs=1e-12)
    assert u(1, 0, "model") == pytest.approx(0.841728916275, abs=1e-12)


def speeds_of(demands: Sequence[float], bandwidth: float) -> list[float]:
    """By the kernel: a system on which so many layers run."""
    n = len(demands)
    columns = np.array(demands)[None, :]
    one = np.ones((1, n))
    machine = Machine(
        parse_system(f"k:{n}@{bandwidth}"), ("m",), np.zeros(1, int), np.ones(1, int), one, columns, one, one,
        np.ones(1), np.ones(1), np.zeros((1, 4 * n)), None, "",
    )  # fmt: skip
    z = state_of(machine, requests_of([(f"r{k}", "t", "", 0, 0.0, 9.0) for k in range(n)]), rule("fcfs-idle"))
    z.on[:] = np.arange(n)
    with interpreted():
        share(z)
    assert z.f[s.USED] == pytest.approx(min(bandwidth, sum(demands)))
    return [float(each) for each in z.speed]


def test_bandwidth_is_shared_max_min_fair() -> None:
    assert speeds_of([25, 80, 150], 100) == [1, 0.46875, 0.25] == fair_speeds([25, 80, 150], 100)


@settings(max_examples=examples(200))
@given(demands=st.lists(st.floats(0, 200), min_size=1, max_size=6), bandwidth=st.floats(1, 500))
def test_no_share_is_larger_or_smaller_than_it_must_be(demands: list[float], bandwidth: float) -> None:
    speeds = speeds_of(demands, bandwidth)
    got = [speed * b for speed, b in zip(speeds, demands, strict=True)]
    assert sum(got) == pytest.approx(min(bandwidth, sum(demands)))
    assert all(0 < speed <= 1 for speed in speeds)
    # who gets less than it asks for gets no less than anyone else
    short = [g for g, b in zip(got, demands, strict=True) if g < b - 1e-9]
    assert all(g >= max(got) - 1e-6 for g in short)


CASES = st.lists(st.tuples(st.sampled_from("mno"), st.integers(0, 12), st.integers(4, 30)), min_size=1, max_size=3)


@settings(max_examples=examples(60))
@given(case=CASES, name=st.sampled_from(NAMES), period=st.sampled_from([0, 3]), drop=st.booleans())
def test_nothing_beats_the_best_of_all_schedules(
    tiny: Machine, case: list[tuple[str, int, int]], name: str, period: int, drop: bool
) -> None:
    requests = asked(tiny, [(m, a, a + d) for m, a, d in case])
    best = exhaustive(tiny, requests, Rules())
    found = simulate(tiny, requests, rule(name), Rules(float(period), drop))
    assert found.met.sum() <= best.met.sum()
    if not found.dropped and found.met.sum() == best.met.sum():
        assert found.end.sum() >= best.end.sum() - 1e-6
    check_log(tiny, requests, found)


def check_log(machine: Machine, requests: Requests, outcome: Outcome) -> None:
    """Layers follow each other, on one request and on one sub-accelerator, and none is faster than it can be."""
    moved = np.zeros(0)
    for of in (0, 2):
        for each in np.unique(outcome.log[of]):
            some = outcome.log[of] == each
            begin, end = outcome.log[3][some], outcome.log[4][some]
            order = np.argsort(begin, kind="stable")
            assert (begin[order][1:] >= end[order][:-1] - 1e-6).all()
            if of == 0:
                assert outcome.log[1][some][order].tolist() == list(range(some.sum()))
                assert begin.min() >= requests.arrival[each]
    flat = machine.first[requests.model[outcome.log[0]]] + outcome.log[1]
    took = outcome.log[4] - outcome.log[3]
    assert (took >= machine.alone[flat, outcome.log[2]] - 1e-5).all()
    moved = machine.dram[flat, outcome.log[2]].sum()
    assert moved <= machine.system.bandwidth * outcome.makespan_us + 1e-3


def expected(case: str, machine: Machine, requests: Requests, policy: Policy, rules: Rules) -> Outcome:
    """Simulate a case of the oracles, and compare it with what is expected."""
    outcome = simulate(machine, requests, policy, rules)
    with (ORACLES / f"{case}_expected.csv").open() as file:
        rows = list(csv.DictReader(file))
    for column, found in (("start_us", outcome.start), ("end_us", outcome.end)):
        if column in rows[0]:
            wanted = np.array([float(row[column] or "nan") for row in rows])
            np.testing.assert_allclose(found, wanted, atol=0.01, rtol=0, err_msg=case)
    assert outcome.met.tolist() == [row["met"] == "1" for row in rows], case
    log = ORACLES / f"{case}_log.csv"
    if log.exists():
        with log.open() as file:
            layers = list(csv.DictReader(file))
        names = [requests.names[r] for r in outcome.log[0].tolist()]
        assert [row["request"] for row in layers] == names, case
        assert [int(row["layer"]) for row in layers] == outcome.log[1].tolist(), case
        assert [int(row["sub_accelerator"]) for row in layers] == outcome.log[2].tolist(), case
    return outcome


def machine_like(requests: str, system: str) -> Machine:
    path = ORACLES / "tiny_layers.csv" if requests.startswith("tiny") else None
    return machine_of(parse_system(system), read_costs(path))


def test_shared_oracles() -> None:
    if not ORACLES.is_dir():
        pytest.skip("shared/oracles/relmas is not beside the checkout")
    table = [line.strip("|").split("|") for line in (ORACLES / "README.md").read_text().splitlines() if line[:1] == "|"]
    cases = [[cell.strip() for cell in row] for row in table if len(row) > 15 and row[0].strip() not in {"case", "---"}]
    assert len(cases) >= 31
    for case, of, system, period, drop, policy, *figures in cases:
        machine = machine_like(of, system)
        requests = read_requests(ORACLES / f"{of}_requests.csv", machine)
        found = expected(case, machine, requests, rule(policy), Rules(float(period or 0), drop == "1"))
        assert [found.dropped, found.decisions, found.candidates] == [int(each) for each in figures[-3:]], case
    weights = json.loads((ORACLES / "netb_weights.json").read_text())
    for of in ("mix60", "load140"):
        machine = machine_like(of, "six")
        net = small({name: np.array(weights[name]) for name in SHAPES}, "net", 6)
        expected(f"{of}_netb", machine, read_requests(ORACLES / f"{of}_requests.csv", machine), net, Rules())
    machine = machine_like("burst80", "six")
    some = models_of("resnet50 mobilenetv2 googlenet yolov3-tiny unet-s", machine)
    made = csv_of(generate(machine, some, 80, 1.0, 12, burst=True), machine)
    assert made == (ORACLES / "burst80_requests.csv").read_text()


def test_names_of_policies() -> None:
    assert compare.names_of(" edf-eft+h, genetic,relmas:m ,genetic") == ("edf-eft+h", "genetic", "relmas:m")


class OfSpans:
    """A store with two services, one of which tells requests by spans."""

    def cluster(self, _: object) -> str:
        return "c"

    def frame(self, *_: object) -> pl.DataFrame:
        rows = [(5e6, 4.0, 2.0, "a"), (6e6, 0.0, 1.0, "b"), (9e6, 4.0, 0.5, "a"), (13e6, 4.0, 1.5, "a")]
        return pl.DataFrame(rows, schema=["at_us", "span_s", "requests", "service"], orient="row")


def test_requests_of_spans_are_spread_over_them(tiny: Machine) -> None:
    store: Any = OfSpans()
    found = read_arrivals(store, None, None, 9)
    # two of a from 5 s, one of b at 6 s; half a request is kept for the next span
    assert found.times_us == (0, 1e6, 2e6, 8e6, 10e6)
    assert found.services == ("a", "b", "a", "a", "a")
    assert read_arrivals(store, None, "a", 2).times_us == (0, 2e6)
    with pytest.raises(UsageError, match="none of that name"):
        read_arrivals(store, None, "c", 9)
    made = generate(tiny, [0, 1, 2], 5, 0.5, 1, recorded=found)
    assert made.tenants == found.services
    rate = 0.5 / capacity_us(tiny, [0, 1, 2])
    assert made.arrival[-1] == pytest.approx(4 / rate, abs=0.001)
