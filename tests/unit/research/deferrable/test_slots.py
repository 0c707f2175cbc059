"""Deferrable jobs slot by slot: by hand, against a slow reference, against brute force, and against the oracles."""

from __future__ import annotations

import csv
import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.compiled import jit
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.replay.policies.osdec.forecasts import forecast, of_days, quantile
from gpuctl.research.deferrable.cases import Case, read_case
from gpuctl.research.deferrable.conversion import Trace, convert, deferrable
from gpuctl.research.deferrable.generator import CaseSettings, generate
from gpuctl.research.deferrable.model import load
from gpuctl.research.deferrable.policies import Policy, optimum, parse, run_one
from gpuctl.research.deferrable.slots import Outcome, Rule, initial_state, outcome, score, simulate, worth
from gpuctl.research.learn.repeated_runs import u

if TYPE_CHECKING:
    from collections.abc import Iterator

ORACLES = Path(__file__).parents[5] / "shared" / "oracles" / "osdec"
EVICT = ("newest", "smallest-loss")


def case_of(leftover: list[int], jobs: list[tuple[int, int, int, int]], season: int = 4) -> Case:
    earliest, latest, gpus, slots = np.array(jobs, np.int64).reshape(-1, 4).T.copy()
    ids = tuple(f"j{k}" for k in range(len(jobs)))
    return Case(np.array(leftover, np.int64), ids, earliest, latest, gpus, slots, max(*leftover, 1), season)


def test_the_vectors_of_the_specification() -> None:
    assert [quantile(np.array([5, 1, 9, 3]), p) for p in (10, 50, 90)] == [1, 3, 5]
    assert u(1, 0, "gap") == pytest.approx(0.411453451845, abs=1e-11)
    assert u(1, 0, "model") == pytest.approx(0.841728916275, abs=1e-11)
    trace = Trace(
        ["x1", "x2", "x3", "x4", "x5"], np.array([100.0, 1800, 2700, 0, 3600]),
        np.array([3600.0, 900, 900, 200_000, 1800]), np.array([4, 2, 8, 1, 2]),
    )  # fmt: skip
    assert deferrable(trace, 50).tolist() == [True, False, False, False, False]
    found = convert(trace, 1800, 50)
    assert found.on_demand is not None
    assert found.on_demand.tolist() == [1, 9, 3]
    assert (found.total, found.leftover.tolist()) == (9, [8, 0, 6])
    assert [each.tolist() for each in (found.earliest, found.latest, found.slots)] == [[1], [1], [2]]
    # one GPU-slot at its own submission's end is not carried into the next slot; load from before 0 is
    early = Trace(["a", "b"], np.array([-100.0, 1800]), np.array([1900.0, 90_000]), np.array([3, 2]))
    assert convert(early, 1800, 100).leftover.tolist() == [0, 1]


def slow(  # noqa: PLR0912 - the text, as it stands
    case: Case, rule: str, per_cent: int, evict: str
) -> tuple[list[int], list[int], list[str], int]:
    """The slots once more, from the text: runs and waiting jobs as dictionaries, all looked up anew."""
    n, lost = len(case.ids), 0
    running: dict[int, int] = {}
    waiting: set[int] = set()
    evictions, state, start = [0] * n, [""] * n, [-1] * n
    for h in range(case.horizon + 1):
        for j in [j for j, s in running.items() if s + case.slots[j] == h]:
            state[j], start[j] = "done", running.pop(j)
        if h == case.horizon:
            break
        waiting |= {j for j in range(n) if case.earliest[j] == h}

        def held(x: int) -> int:
            return int(sum(case.gpus[j] for j, s in running.items() if s <= x < s + case.slots[j]))

        while held(h) > case.leftover[h]:
            if evict == "newest":
                j = max(running, key=lambda j: (running[j], j))
            else:
                j = min(running, key=lambda j, h=h: (case.gpus[j] * (h - running[j]), -j))  # type: ignore[misc]
            lost += int(case.gpus[j]) * (h - running.pop(j))
            evictions[j] += 1
            if h <= case.latest[j]:
                waiting.add(j)
            else:
                state[j] = "failed"
        for j in sorted(waiting, key=lambda j: (case.latest[j], j)):
            if held(h) + case.gpus[j] > case.leftover[h]:
                continue
            later = range(h + 1, h + int(case.slots[j]))
            if rule == "clairvoyant":
                starts = all(case.leftover[x] - held(x) >= case.gpus[j] for x in later)
            elif rule == "quantile":
                known = [forecast(case.leftover, h, x, per_cent, case.season) - held(x) for x in later]
                starts = h == case.latest[j] or all(spare >= case.gpus[j] for spare in known)
            else:
                starts = rule == "asap" or h == case.latest[j]
            if starts:
                waiting.remove(j)
                running[j] = h
        for j in [j for j in waiting if case.latest[j] <= h]:
            waiting.remove(j)
            state[j] = "failed" if evictions[j] else "missed"
    return start, evictions, state, lost


@st.composite
def cases(draw: st.DrawFn, slots: int = 12, jobs: int = 8) -> Case:
    horizon = draw(st.integers(1, slots))
    leftover = draw(st.lists(st.integers(0, 6), min_size=horizon, max_size=horizon))
    found = []
    for _ in range(draw(st.integers(0, jobs))):
        length = draw(st.integers(1, min(horizon, 5)))
        earliest = draw(st.integers(0, horizon - length))
        found.append((earliest, draw(st.integers(earliest, horizon - length)), draw(st.integers(1, 5)), length))
    return case_of(leftover, found, draw(st.integers(1, 4)))


RULES = {"asap": kernel.ASAP, "latest": kernel.LATEST, "quantile": kernel.QUANTILE, "clairvoyant": kernel.CLAIRVOYANT}


@given(cases(), st.sampled_from(EVICT), st.integers(0, 100))
def test_all_rules_as_a_slow_reference(case: Case, evict: str, per_cent: int) -> None:
    for name, kind in RULES.items():
        found = simulate(case, Rule(kind, per_cent), evict)
        told = found.start.tolist(), found.evictions.tolist(), list(found.state), found.lost
        assert told == slow(case, name, per_cent, evict), name
        assert name != "clairvoyant" or not found.lost


def schedules(case: Case) -> Iterator[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    choices = [[-1, *range(e, late + 1)] for e, late in zip(case.earliest.tolist(), case.latest.tolist(), strict=True)]
    for starts in itertools.product(*choices):
        held = np.zeros(case.horizon, int)
        for s, gpus, length in zip(starts, case.gpus.tolist(), case.slots.tolist(), strict=True):
            if s >= 0:
                held[s : s + length] += gpus
        if (held <= case.leftover).all():
            yield np.array(starts, np.int64)


@given(cases(6, 4), st.sampled_from(EVICT), st.integers(0, 100), st.integers(0, 2**32))
def test_nobody_beats_the_optimum_and_it_is_that_of_brute_force(
    case: Case, evict: str, per_cent: int, seed: int
) -> None:
    best = max(worth(case, starts).sum() for starts in schedules(case))
    found = optimum(case, 10)
    assert worth(case, found.outcome.start).sum() == pytest.approx(best, abs=1e-6)
    assert any((found.outcome.start == starts).all() for starts in schedules(case))
    draw = np.random.Generator(np.random.PCG64(seed))
    asked = initial_state(case, Rule(kernel.DECIDING), evict)
    with jit.interpreted():
        offered = kernel.advance(asked, -1)
        while offered >= 0:
            h = asked.c[kernel.SLOT]
            held = sum(case.gpus[j] for j in asked.run[: asked.c[kernel.RUNS]])
            assert held == asked.load[h] <= case.leftover[h] - case.gpus[offered]
            offered = kernel.advance(asked, int(draw.integers(2)))
    for each in (outcome(asked), *(simulate(case, Rule(kind, per_cent), evict) for kind in RULES.values())):
        assert worth(case, each.start).sum() - each.lost <= best + 1e-6
        done = [state == "done" for state in each.state]
        assert (each.start >= 0).tolist() == done
        assert each.lost == 0 or each.evictions.sum() > 0


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 6), st.integers(0, 100), st.data())
def test_forecasts_by_tables_are_those_of_the_definition(
    leftover: list[int], season: int, per_cent: int, data: st.DataObject
) -> None:
    values = np.array(leftover)
    now = data.draw(st.integers(0, values.size - 1))
    slot = data.draw(st.integers(now + 1, now + 3 * season))
    last = slot - season * -(-(slot - now) // season)
    table = of_days(values, season, per_cent)
    expected = forecast(values, now, slot, per_cent, season)
    assert expected == (table[last] if last >= 0 else values[now])


def test_a_net_of_zeros_is_the_middle_quantile_and_compiled_code_does_the_same() -> None:
    case = generate(CaseSettings(7, 0.9, days=3, gpus=64))
    zero = (np.zeros((kernel.FEATURES, 3)), np.zeros(3), np.zeros(3), np.zeros(1))
    draw = np.random.Generator(np.random.PCG64(1))
    drawn = tuple(draw.standard_normal(each.shape) for each in zero)
    for weights, same in ((zero, Rule(kernel.QUANTILE, 50)), (drawn, None)):
        rule = Rule(kernel.NET, 50, weights)  # type: ignore[arg-type]
        python, compiled = initial_state(case, rule), initial_state(case, rule)
        with jit.interpreted():
            kernel.advance(python, -1)
        with jit.interpreted(on=False):
            kernel.advance(compiled, -1)
        assert (python.start == compiled.start).all()
        found = outcome(python)
        assert same is None or (found.start == simulate(case, same).start).all()
    assert found.evictions.sum() > 0


@pytest.fixture(scope="module")
def oracles() -> Path:
    if not ORACLES.is_dir():
        pytest.skip("no oracles beside the checkout")
    return ORACLES


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_case_of_the_oracles(oracles: Path) -> None:
    text = (oracles / "README.md").read_text()
    lines = re.findall(r"^\| ((?:hand|gen|philly)\w+_\w.*)\|$", text, re.MULTILINE)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    nets = re.findall(r"^- (\w+)_netc: score ([\d.]+)", text, re.MULTILINE)
    rows += [
        [f"{name}_netc", name, "48", "newest", f"osdec:{oracles / 'netc_weights.json'}", told] for name, told in nets
    ]
    assert len(rows) == 34
    for name, source, season, evict, policy, *_, told in rows:
        case = read_case(oracles / f"{source}_capacity.csv", oracles / f"{source}_jobs.csv", int(season))
        [chosen] = parse([policy])
        found = run_one(case, chosen, evict, 1).outcome
        ours = [
            {"job": job, "start": str(s) if s >= 0 else "", "end": str(s + k) if s >= 0 else "",
             "evictions": str(evicted), "state": state, "done": str(int(state == "done"))}
            for job, s, k, evicted, state in zip(
                case.ids, found.start.tolist(), case.slots.tolist(), found.evictions.tolist(), found.state, strict=True
            )
        ]  # fmt: skip
        expected = table(oracles / f"{name}_expected.csv")
        assert [{key: row[key] for key in expected[0]} for row in ours] == expected, name
        assert score(case, found) == pytest.approx(float(told), abs=1e-6), name


def test_the_optimum_of_the_oracles(oracles: Path) -> None:
    told = json.loads((oracles / "optimum.json").read_text())
    for name, exact in told["exact"].items():
        case = read_case(oracles / f"{name}_capacity.csv", oracles / f"{name}_jobs.csv", 4)
        best, below = map(int, exact["best_worth"].split("/"))
        assert worth(case, optimum(case, 10).outcome.start).sum() == pytest.approx(best / below, abs=1e-9)
    case = read_case(oracles / "philly7_capacity.csv", oracles / "philly7_jobs.csv", None)
    found = optimum(case, 30)
    bounds = told["milp"]["philly7"]
    assert bounds["found"]["score"] - 1e-6 <= score(case, found.outcome) <= bounds["upper_bound_score"] + 1e-6
    assert score(case, found.outcome) <= found.bound + 1e-9


def test_generated_cases_are_the_oracles(oracles: Path) -> None:
    for name, seed, share in (("gen50", 1, 0.5), ("gen80", 2, 0.8)):
        made = generate(CaseSettings(seed, share))
        kept = read_case(oracles / f"{name}_capacity.csv", oracles / f"{name}_jobs.csv", None)
        assert made.ids == kept.ids
        for column in ("leftover", "on_demand", "earliest", "latest", "gpus", "slots"):
            assert (getattr(made, column) == getattr(kept, column)).all()
        assert made.total == kept.total


def test_a_model_from_a_file_of_weights(tmp_path: Path) -> None:
    good = {"w": [[0.0]] * kernel.FEATURES, "b": [0.0], "v": [0.0]}
    path = tmp_path / "weights.json"
    path.write_text(json.dumps(good))
    case = generate(CaseSettings(3, 0.8, days=2, gpus=32))
    ran = run_one(case, Policy("osdec", model=load(path)), "newest", 1)
    assert isinstance(ran.outcome, Outcome)
    assert (ran.outcome.start == simulate(case, Rule(kernel.QUANTILE, 50)).start).all()
