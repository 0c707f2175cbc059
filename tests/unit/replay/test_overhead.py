"""Costs of preemptions, resizes and migrations: what each model charges, to the second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.preemption_cost import overhead
from tests.unit.replay.engine.test_engine import jobs, replay

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.contract.view import View

HEADER = "job_id,submit_time,duration,num_gpus,min_gpus,max_gpus,speed_curve"


class Moves(PythonPolicy):
    """Stops the job at 10 and starts it again; lets it grow at 50 and move at 80."""

    name = "moves"
    always = True
    preempts = True

    def begin(self, view: View) -> None:
        for k, second in enumerate((10, 50, 80)):
            view.timer(second, k)

    def decide(self, view: View) -> None:
        if view.now == 10:
            view.preempt(0)
        if view.now == 50:
            assert view.resize(0, 2)
        if view.now == 80:
            assert view.migrate(0, {1: 2})
        for job in list(view.waiting):
            view.start(job)


@pytest.mark.parametrize(
    ("spec", "stopped", "resumed", "moved"),
    [
        ("none", 0, 0, 0),
        ("const:15", 5, 10, 15),
        ("resume:12", 0, 12, 12),
        ("resize:7", 0, 0, 7),
        ("none+resize:7", 0, 0, 7),
        ("resume:12+resize:7", 0, 12, 7),
        ("const:15+resize:0", 5, 10, 0),
    ],
)
def test_costs_of_a_stop_a_resize_and_a_migration(
    tmp_path: Path, spec: str, stopped: float, resumed: float, moved: float
) -> None:
    workload = jobs(tmp_path, "a,0,200,1,1,2,1;2", header=HEADER)
    outcome = replay(Moves, workload, "2x2", spec)
    done = 10 + (40 - stopped - resumed) + 2 * (30 - moved)
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(80 + moved + (200 - done) / 2)]
    assert outcome.jobs["overhead_gpu_s"].to_list() == [pytest.approx(stopped + resumed + 4 * moved)]


def test_a_resize_of_its_own_price_leaves_the_rest_of_the_model(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,200,1,1,2,1;2", header=HEADER)
    cluster = parse_cluster("2x2", workload)
    alone, both = (overhead(spec, workload, cluster) for spec in ("pickyman", "pickyman+resize:3"))
    assert both.text == f"{alone.text}; 3 s for a resize or migration"
    assert (both.suspend, both.resume, both.bytes) == (alone.suspend, alone.resume, alone.bytes)
    assert both.move.tolist() == [3]
    assert np.isfinite(alone.move).all()


@pytest.mark.parametrize(
    "spec", ["", "free", "none:3", "resume", "resume:", "resume:-1", "resize", "const:30+", "const:30+resize",
             "resize:nan", "+resize:3", "resize:3+const:30", "helios:3"]
)  # fmt: skip
def test_an_unknown_model_is_reported_with_the_known_ones(tmp_path: Path, spec: str) -> None:
    workload = jobs(tmp_path, "a,0,200,1")
    with pytest.raises(UsageError) as caught:
        overhead(spec, workload, parse_cluster("2x2", workload))
    assert "resize:SECONDS alone" in str(caught.value.hint)
