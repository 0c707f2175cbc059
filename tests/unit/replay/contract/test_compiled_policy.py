"""Compiled policies: their hooks hear what those of Python policies hear, and one in a file runs as any other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.contract.compiled_policy import (
    WAITING,
    Bundle,
    CompiledPolicy,
    find_for,
    floats,
    grant,
    ints,
    job_timer,
    launch,
    lend,
    loop,
    named_timer,
    placements,
)
from gpuctl.replay.contract.conformance import foresight, random_case, run, violations
from gpuctl.replay.contract.gpu_type_cases import with_types
from gpuctl.replay.contract.hooks import HOOKS
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.inputs.check import unplaceable
from gpuctl.replay.policies import find
from tests.example_counts import examples

if TYPE_CHECKING:
    from gpuctl.replay.contract.view import View
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

ROOT = Path(__file__).parents[4]
EXAMPLE = f"{ROOT / 'docs' / 'examples' / 'compiled_policy.py'}:LongestWait"
NAMES = [*sorted(HOOKS), "decide"]
FINISH, LEASE, DOWN, UP, RECLAIM, REQUEUE, ROUND, SUBMIT, TIMER, WAKE, DECIDE = range(11)


class Heard(Bundle):
    """What was heard: second, which hook, of whom; and the jobs that wait, the one queued first ahead."""

    what = floats(2)
    line = ints()
    how = ints()
    n = ints()


@inner
def _hear(s: Any, m: Any, which: int, who: int) -> None:
    row = m.what[m.n[0]]
    row[0], row[1], row[2] = s.g[0].now, which, who
    m.n[0] += 1


@inner
def _waits(m: Any, job: int) -> None:
    m.line[m.n[1]] = job
    m.n[1] += 1


@inner
def on_submit(s: Any, job: int, m: Any) -> None:
    _hear(s, m, SUBMIT, job)
    _waits(m, job)
    job_timer(s, job, s.g[0].now + 13)
    if job % 3 == 0:
        named_timer(s, job % 4, s.g[0].now + 5)


@inner
def on_requeue(s: Any, job: int, m: Any) -> None:
    _hear(s, m, REQUEUE, job)
    _waits(m, job)


@inner
def on_finish(s: Any, job: int, m: Any) -> None:
    _hear(s, m, FINISH, job)


@inner
def on_node_down(s: Any, node: int, m: Any) -> None:
    _hear(s, m, DOWN, node)


@inner
def on_node_up(s: Any, node: int, m: Any) -> None:
    _hear(s, m, UP, node)


@inner
def on_lease_end(s: Any, job: int, m: Any) -> None:
    _hear(s, m, LEASE, job)
    if job % 2 == 0:
        grant(s, job, s.g[0].now + 41, 0)


@inner
def on_reclaim(s: Any, node: int, m: Any) -> None:
    _hear(s, m, RECLAIM, node)


@inner
def on_wake(s: Any, job: int, m: Any) -> None:
    _hear(s, m, WAKE, job)


@inner
def on_timer(s: Any, number: int, m: Any) -> None:
    _hear(s, m, TIMER, number)


@inner
def on_round(s: Any, number: int, m: Any) -> None:
    _hear(s, m, ROUND, number)
    place = s.nodes[0]
    if number % 3 == 0 and place.up == 1 and place.free == place.cap:
        lend(s, 0, s.nodes[s.nodes.size - 1].cls, s.g[0].now + 50, 10.0, 0)


@inner
def decide(s: Any, m: Any) -> None:
    _hear(s, m, DECIDE, s.g[0].waiting)
    size = 0
    for k in range(m.n[1]):
        job = m.line[k]
        if s.jobs[job].state != WAITING:
            continue
        if find_for(s, job, m.how[job]):
            launch(s, job, 0)
            grant(s, job, s.g[0].now + 37, 0)
        else:
            m.line[size] = job
            size += 1
    m.n[1] = size


@compiled
def run_all_hooks(s: Any, m: Any, until: float, steps: int) -> Any:
    return loop(
        s, (m,), until, steps, decide=decide, on_submit=on_submit, on_requeue=on_requeue, on_finish=on_finish,
        on_node_down=on_node_down, on_node_up=on_node_up, on_lease_end=on_lease_end, on_reclaim=on_reclaim,
        on_wake=on_wake, on_timer=on_timer, on_round=on_round,
    )  # fmt: skip


class CompiledEar(CompiledPolicy):
    """First come, first served, what does not fit is skipped; writes down what it hears."""

    name = "compiled-ear"
    run = run_all_hooks
    every = 30.0
    last: ClassVar[Heard]

    def memory(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> tuple[Any, ...]:
        del cluster, settings, state
        how = placements(workload, "any", None)
        CompiledEar.last = Heard(what=(100_000, 3), line=2 * workload.size, how=how, n=2)
        return (CompiledEar.last,)

    @classmethod
    def heard(cls) -> list[tuple[float, str, int]]:
        """What was heard in the last replay."""
        rows = cls.last.what[: int(cls.last.n[0])]
        return [(float(t), NAMES[int(which)], int(who)) for t, which, who in rows]


def _python_hook(name: str) -> Any:
    def hook(self: PythonEar, view: View, who: int) -> None:
        self.heard.append((view.now, name, who))
        if name == "on_submit":
            view.wake(who, view.now + 13)
            if who % 3 == 0:
                view.timer(view.now + 5, who % 4)
        elif name == "on_lease_end" and who % 2 == 0:
            view.lease(who, view.now + 41)
        elif name == "on_round" and who % 3 == 0:
            view.loan(0, view.node_class(len(view.nodes) - 1), until=view.now + 50, notice=10)

    return hook


class PythonEar(PythonPolicy):
    """The same in Python."""

    name = "python-ear"
    every = 30.0
    always = True
    heard: ClassVar[list[tuple[float, str, int]]] = []

    def begin(self, view: View) -> None:
        self.heard.clear()

    def decide(self, view: View) -> None:
        self.heard.append((view.now, "decide", len(view.waiting)))
        for job in view.waiting:
            if view.start(job):
                view.lease(job, view.now + 37)


for _name in HOOKS:
    setattr(PythonEar, _name, _python_hook(_name))


def _case(seed: int) -> tuple[Workload, Cluster, Settings]:
    """A random case; in every second one some jobs need a type of GPU, so that nodes are of several classes."""
    workload, cluster, shared = random_case(seed)
    if seed % 2:
        typed, cluster, _ = with_types(seed, (workload, cluster, shared))
        need = np.random.Generator(np.random.PCG64(seed)).integers(-1, 2, workload.size)
        need[unplaceable(replace(typed, gpu_type=need), cluster)] = -1
        workload = replace(typed, gpu_type=need)
    return workload, cluster, shared


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
def test_compiled_hooks_hear_what_python_hooks_hear(seed: int) -> None:
    case = _case(seed)
    python = run(PythonEar(), *case)
    fast = run(CompiledEar(), *case)
    assert CompiledEar.heard() == PythonEar.heard
    assert fast.jobs.equals(python.jobs)


def test_every_hook_is_heard_in_some_case() -> None:
    heard: set[str] = set()
    for seed in range(60):
        run(CompiledEar(), *_case(seed))
        heard |= {name for _, name, _ in CompiledEar.heard()}
    assert heard == set(NAMES)


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
def test_the_example_breaks_no_invariant(seed: int) -> None:
    case = random_case(seed)
    outcome = run(find(EXAMPLE)(), *case)
    assert violations(outcome, *case) == []
    assert foresight(find(EXAMPLE), case, outcome, seed) == []


def test_the_longest_wait_for_each_gpu_is_first(tmp_path: Path) -> None:
    from tests.unit.replay.engine.test_engine import jobs, replay

    # at 100 the head start of 60 s counts: b has waited (90 + 60) / 1 s a GPU, c (95 + 60) / 2, d (5 + 60) / 1
    workload = jobs(tmp_path, "a,0,100,2", "b,10,50,1", "c,5,50,2", "d,95,50,1")
    outcome = replay(find(EXAMPLE), workload, "1x2")
    starts = dict(outcome.jobs.select("job", "start_s").iter_rows())
    assert starts == {"a": 0.0, "b": 100.0, "c": 150.0, "d": 100.0}
    assert "longest wait per GPU" in outcome.decisions["reason"].to_list()


@pytest.mark.parametrize("span", [0.1, 1 / 3, 7.7])
def test_no_multiple_of_a_round_is_skipped_by_rounding(span: float) -> None:
    from gpuctl.replay.engine.rounds_kernel import next_multiple

    for number in range(1, 3000):
        for at in (number * span, np.nextafter(number * span, 0.0), (number - 0.5) * span):
            after = next_multiple(at, span)
            expected = number + 1 if at == number * span else number
            assert after == expected * span, (number, at)
