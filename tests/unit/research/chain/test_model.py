"""A saved model and its advice: the same queue seen by a simulation and by squeue, and models that are none."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.predictors import card
from gpuctl.research.chain import episode_kernel as kernel
from gpuctl.research.chain import look_kernel, model
from gpuctl.research.chain.advice import advise
from gpuctl.research.chain.episode import Pair, Situation
from gpuctl.research.chain.past import History
from gpuctl.research.chain.policies import QUANTILES, look, start_of, wait_at
from gpuctl.research.chain.queue_now import QueuedJob, now_of, read_queue, when
from gpuctl.research.chain.trial import Evaluation
from tests.unit.research.chain.test_policies import DAY_S, busy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BASE_S = 1_700_000_040 // 60 * 60


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of fifteen days of submissions."""
    place = tmp_path_factory.mktemp("model") / "wait"
    about, files = model.train(
        busy(15, 4000), Evaluation(6, Pair(1, 1440), ("newsvendor",), 99 * DAY_S, 5 * DAY_S, 1.0)
    )
    card.save_folder(place, model.KIND, about, files)
    return place


def queued(job: str, nodes: int, limit_min: int, submit: int, start: int | None, **other: Any) -> QueuedJob:
    told: dict[str, Any] = {
        "name": "", "user": "me", "partition": "main", "comment": "", "reason": "", "end_s": None, "exit_code": None,
        "states": frozenset({"PENDING" if start is None else "RUNNING"}), **other,
    }  # fmt: skip
    at = None if start is None else BASE_S + 60 * start
    return QueuedJob(job=job, nodes=nodes, limit_s=60 * limit_min, submit_s=BASE_S + 60 * submit, start_s=at, **told)


def squeue_of(situation: Situation, minute: int) -> list[QueuedJob]:
    """What squeue would print at that minute of a simulation."""
    e = situation.initial_state()
    kernel.advance(e, minute, kernel.NEVER)
    c, p = e.c, e.minute.size - 2

    def seen(j: int, start: int | None) -> QueuedJob:
        return queued("p" if j == p else str(j), int(e.nodes[j]), int(e.limit[j]), int(e.minute[j]), start)

    runs = [seen(int(e.run[k]), int(e.start[k])) for k in range(c[kernel.RUNNING])]
    return runs + [seen(int(j), None) for j in e.line[: c[kernel.WAITING]]]


def test_squeue_shows_what_the_simulation_shows() -> None:
    log = busy(24)
    situation = Situation(log, 8 * DAY_S, 6, Pair(1, 1440))
    start = start_of(situation, 8 * DAY_S, History(log))
    minute = start.p_end - 400
    rows, _ = look(start, np.array([minute]), waits=False)
    jobs = squeue_of(situation, minute)
    assert sum(job.pending for job in jobs) > 5
    held = queued("held", 3, 60, 10, None, reason="JobHeldUser")
    away = queued("away", 6, 60, 10, None, partition="other")
    now = now_of([*jobs, held, away], next(j for j in jobs if j.job == "p"), Pair(1, 1440), 6, BASE_S + 60 * minute)
    assert now.left_out == {"JobHeldUser": 1}
    seen = np.zeros((1, look_kernel.FEATURES))
    look_kernel.look_features(now.episode(), now.episode(), 0, np.array([now.now]), seen, np.zeros(0, np.int64))
    present = list(look_kernel.PRESENT)
    # the plan's slots begin with the look
    assert seen[0, present] == pytest.approx(rows[0, present], abs=0.2)


def test_advice_is_the_quantile_of_the_users_cost(saved: Path) -> None:
    trained = model.load(saved)
    assert len(trained.trees) == len(QUANTILES)
    log = busy(24, 4000)
    situation = Situation(log, 20 * DAY_S, 6, Pair(1, 1440))
    minute = start_of(situation, 20 * DAY_S, History(log)).p_end - 240
    jobs, second = squeue_of(situation, minute), BASE_S + 60 * minute
    few, many = (advise(trained, jobs, "p", second, cost=cost, size=None) for cost in (1, 9))
    assert few.left_h == pytest.approx(4)
    assert list(few.quantiles_h) == sorted(few.quantiles_h)
    assert max(few.quantiles_h) <= few.planned_h + 1e-9
    assert few.lead_h == pytest.approx(few.quantiles_h[2])
    assert many.lead_h == pytest.approx(many.quantiles_h[4])
    assert few.lead_h < many.lead_h
    assert (few.now, many.now) == (few.lead_h >= 4, many.lead_h >= 4)
    r = np.interp(np.linspace(0.001, 0.999, 999), [0, *QUANTILES], [0, *few.quantiles_h]) - 4
    assert few.interruption_h == pytest.approx(np.maximum(r, 0).mean(), abs=0.05)
    assert few.overlap_h == pytest.approx(np.maximum(-r, 0).mean(), abs=0.05)
    assert wait_at(np.arange(6.0), np.array([0.5]))[0] == 2
    empty = advise(trained, [j for j in jobs if j.job == "p"], "p", second, cost=9, size=None)
    assert (empty.lead_h, empty.overlap_h, empty.now) == (0, pytest.approx(4), False)


def test_it_reports_what_cannot_be_known(saved: Path) -> None:
    trained = model.load(saved)
    p = queued("1", 1, 60, 0, 0)
    for jobs, told in (
        ([], "no job"),
        ([queued("1", 1, 60, 0, None)], "does not run"),
        ([p, queued("2", 7, 60, 0, None)], "more than 6 nodes"),
    ):
        with pytest.raises(InputError, match=told):
            advise(trained, jobs, "1", BASE_S + 600, cost=1, size=None)


def test_advice_states_where_a_queue_names_only_the_first_tasks_of_an_array(
    saved: Path, gpuctl: Callable[..., Any], root: Path, tmp_path: Path
) -> None:
    told = json.loads((root / "tests/fixtures/slurm/state/squeue.json").read_text())
    p = next(job for job in told["jobs"] if job["job_state"] == "RUNNING")
    array = {**next(job for job in told["jobs"] if job["job_state"] == "PENDING"), "array_task_id": None}
    for words, note in (("1-3", ""), ("1-3,...", "of 1 arrays")):
        place = tmp_path / "squeue.json"
        place.write_text(json.dumps({**told, "jobs": [p, {**array, "array_task_string": words}]}))
        at = p["start_time"] + 60 if isinstance(p["start_time"], int) else p["start_time"]["number"] + 60
        done = gpuctl(
            "chain", "advise", saved, "--squeue", place, "--job", str(p["job_id"]), "--at", str(at), "--nodes", "99"
        )
        assert note in done.stderr
        assert ("arrays" in done.stderr) == bool(note)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ratios.npy", lambda a: a[::-1].copy()), ("pool.npy", lambda a: a + 2), ("count.npy", lambda a: a + 99),
        ("past.npy", lambda a: np.full_like(a, np.nan)), ("users.npy", lambda a: np.append(a, a)),
    ],
)  # fmt: skip
def test_arrays_that_no_model_has_are_refused(saved: Path, tmp_path: Path, name: str, change: Any) -> None:
    folder = card.load_folder(saved, model.KIND)
    about = {k: v for k, v in folder.card.items() if k not in {"gpuctl_model", "kind", "gpuctl", "made_with", "files"}}
    files = {**folder.files, "users.npy": np.array([5]), "past.npy": np.zeros((1, 12)), "count.npy": np.array([1])}
    card.save_folder(tmp_path / "m", model.KIND, about, {**files, name: change(files[name])})
    with pytest.raises(InputError, match="shape or values"):
        model.load(tmp_path / "m")


@pytest.mark.parametrize("change", [{"cluster": None}, {"cluster": [6]}, {"trees": 8.0}])
def test_a_card_that_no_model_has_is_refused(saved: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    shutil.copytree(saved, tmp_path / "m")
    about = json.loads((tmp_path / "m" / card.CARD).read_text())
    (tmp_path / "m" / card.CARD).write_text(json.dumps({**about, **change}))
    with pytest.raises(InputError, match="cluster, trees and quantiles"):
        model.load(tmp_path / "m")


def test_the_queue_of_a_real_slurm_is_read(root: Path) -> None:
    data = (root / "tests/fixtures/slurm/state/squeue.json").read_bytes()
    jobs = read_queue(data, "squeue.json")
    assert {job.job for job in jobs} == {str(job["job_id"]) for job in json.loads(data)["jobs"]}
    assert any(job.holds and job.start_s for job in jobs)
    assert all(job.start_s is None for job in jobs if job.pending)
    assert when(b'{"jobs": [], "last_update": {"set": true, "number": 17}}') == 17
    told = json.loads(data)
    job = {**next(job for job in told["jobs"] if job["job_state"] == "PENDING"), "state_reason": "Priority"}
    array = {
        **job,
        "array_task_id": None,
        "array_task_string": "3-11:2,20,...%4",
        "partition": "far,main",
        "job_id": 90,
    }
    jobs = read_queue(json.dumps({"jobs": [array, {**array, "partition": "far", "job_id": 91}]}).encode(), "q")
    p = queued("p", 1, 60, 0, 0)
    assert len(now_of([p, *jobs], p, Pair(1, 60), 6, BASE_S + 600).waiting) == jobs[0].tasks == 6
    assert jobs[0].cut
    for bad in (b"", b"[]", b'{"jobs": 3}', b'{"jobs": [{"job_id": "x"}]}', b'{"jobs": [{"job_id": 1}]}'):
        with pytest.raises(InputError, match="is not a queue"):
            read_queue(bad, "queue")
