"""What the view shows of submitted jobs, and that jobs to come are hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.inputs.transforms import gather
from tests.unit.replay.engine.test_engine import jobs, replay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpuctl.replay.contract.view import View

HEADER = "job_id,submit_time,duration,num_gpus,vc,user,app,account,qos,predicted_time,nice,priority,noise_scale,model"
ROWS = ("b,10,20,1,prod,eve,x,physics,high,25,,,,bert", "a,0,10,1,dev,ann,x,bio,low,12,5,7,1.5,resnet")


def told(workload: Any, ask: Callable[[View], object]) -> object:
    """What a policy is told as the first job is submitted."""
    heard: list[object] = []

    class Asks(PythonPolicy):
        name = "asks"

        def decide(self, view: View) -> None:
            if not heard:
                heard.append(ask(view))
            for job in view.waiting:
                view.start(job)

    replay(Asks, workload, "1x1")
    return heard[0]


ASKS: dict[str, tuple[Callable[[View], object], object]] = {
    "job_name": (lambda view: view.job_name(0), "a"),
    "user_name": (lambda view: view.user_name(0), "ann"),
    "queue_name": (lambda view: view.queue_name(view.queue[0]), "dev"),
    "no queue": (lambda view: view.queue_name(-1), ""),
    "predicted": (lambda view: view.predicted(0), 12.0),
    "app": (lambda view: view.app(0), 0),
    "account": (lambda view: view.account(0), "bio"),
    "qos": (lambda view: view.qos(0), "low"),
    "priority": (lambda view: view.priority(0), 7.0),
    "number": (lambda view: view.column(0, "noise_scale"), 1.5),
    "text": (lambda view: view.column(0, "model"), "resnet"),
}


@pytest.mark.parametrize("what", ASKS)
def test_statements_of_a_job_on_itself(tmp_path: Path, what: str) -> None:
    ask, answer = ASKS[what]
    assert told(jobs(tmp_path, *ROWS, header=HEADER), ask) == answer


@pytest.mark.parametrize("what", ["job_name", "user_name", "predicted", "app", "account", "qos", "priority"])
def test_nothing_is_known_of_a_future_job(tmp_path: Path, what: str) -> None:
    with pytest.raises(InputError, match="has not been submitted"):
        told(jobs(tmp_path, *ROWS, header=HEADER), lambda view: getattr(view, what)(1))
    with pytest.raises(InputError, match="has not been submitted"):
        told(jobs(tmp_path, *ROWS, header=HEADER), lambda view: view.column(1, "model"))


def test_without_a_column_priority_nice_counts_and_else_nothing(tmp_path: Path) -> None:
    header = "job_id,submit_time,duration,num_gpus"
    assert told(jobs(tmp_path, "a,0,10,1,5", header=f"{header},nice"), lambda view: view.priority(0)) == -5
    assert told(jobs(tmp_path, "a,0,10,1", header=header), lambda view: view.priority(0)) == 0
    assert told(jobs(tmp_path, "a,0,10,1", header=header), lambda view: view.predicted(0)) is None


def test_a_missing_column_is_reported_with_the_existing_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        told(jobs(tmp_path, *ROWS, header=HEADER), lambda view: view.column(0, "batch"))
    assert "its own columns are: priority, noise_scale, model" in str(caught.value.hint)


def test_own_columns_go_where_their_jobs_go(tmp_path: Path) -> None:
    import numpy as np

    workload = jobs(tmp_path, *ROWS, header=HEADER)
    assert workload.own is not None
    assert workload.own["model"].to_list() == ["resnet", "bert"]
    chosen = gather(workload, np.array([1, 1, 0]))
    assert chosen.own is not None
    assert chosen.own["model"].to_list() == ["bert", "bert", "resnet"]
