"""An application whose containers come and go: GPU-hours, occupancy and replay count each container in its own time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.analyze.explain import explain
from gpuctl.analyze.options import Options
from gpuctl.analyze.shared_tables import SharedTables
from gpuctl.replay.inputs.trace import read_trace
from gpuctl.store.database import Store
from tests.analyzed_logs import rows
from tests.unit.ingest.yarn import cluster as y

if TYPE_CHECKING:
    from pathlib import Path

LOST = 60.0
"""When two of the four workers are preempted."""


def shrinking() -> y.App:
    """Four workers of four GPUs on two machines from 20 on; two of them are preempted, the others run to 200."""
    stay = [y.Container(n, 20, 21, 200, f"n{n - 1}", 4) for n in (2, 3)]
    go = [y.Container(n, 20, 21, LOST, f"n{n - 3}", 4, exit_code=-102) for n in (4, 5)]
    return y.App(5, 10, [y.Attempt([y.Container(1, 12, 13, 205), *stay, *go], 201)], 201)


def urgent() -> y.App:
    """Waits for the GPUs that are preempted: eight on the same two machines, from right after on."""
    workers = [y.Container(n, LOST + 1, LOST + 2, 100, f"n{n - 1}", 4) for n in (2, 3)]
    return y.App(6, 30, [y.Attempt([y.Container(1, 32, 33, 103), *workers], 101)], 101, user="bob", queue="prod")


def growing() -> y.App:
    """One worker of a GPU for 100 s, then eight more for 300 s."""
    more = [y.Container(3 + n, 110, 111, 410, "n3", 1) for n in range(7)]
    return y.App(7, 5, [y.Attempt([y.Container(1, 6, 7, 415), y.Container(2, 10, 11, 100, "n3", 1), *more], 411)], 411)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    log = y.rm_log([shrinking(), urgent()], modern=True)
    for container in shrinking().attempts[0].containers[3:]:
        entity = shrinking().container_id(0, container.number)
        text = (
            f"Non-AM container preempted, current appAttemptId=x, containerId={entity}, resource=<memory:1, vCores:1>"
        )
        log.add(LOST - 0.001, f"{y.RM}.rmapp.attempt.RMAppAttemptImpl", text)
    return y.load(tmp_path, {"rm.log": log.text()})[0]


HELD_S = {5: 2 * 4 * 180 + 2 * 4 * 40, 6: 2 * 4 * 39}


def test_gpu_hours_are_those_of_the_containers(db: Path) -> None:
    total = sum(HELD_S.values()) / 3600
    [overview] = rows(db, "overview")
    assert math.isclose(overview["gpu_hours"], total)
    span = overview["span_days"] * 86400
    assert math.isclose(overview["occupancy_pct"], 100 * total * 3600 / (16 * span))
    assert math.isclose(sum(row["gpu_hours"] for row in rows(db, "queues")), total)
    assert math.isclose(sum(row["gpu_hours"] for row in rows(db, "users")), total)
    assert math.isclose(next(r for r in rows(db, "gpu_hours_lost") if r["size_bucket"] == "all")["gpu_hours"], total)


def test_containers_that_still_run_are_held_until_the_log_ends(tmp_path: Path) -> None:
    app = y.running()  # four GPUs from 44 s on
    app.attempts[0].containers.append(y.Container(3, 50, 51, 70, "n3", 2))
    db, _ = y.load(tmp_path, {"rm.log": y.rm_log([app, y.gang()]).text()})
    held_s = 4 * (130 - 44) + 2 * (70 - 50)
    assert [row["gpu_hours"] for row in rows(db, "users")] == pytest.approx([(held_s + 2 * 110 + 2 * 88) / 3600])


def test_no_machine_holds_more_than_it_has(db: Path) -> None:
    with Store(db) as store:
        bases = SharedTables(store, "c", Options(), lambda _: None)
        held = bases.ask("SELECT machine, gpus, held_from_c AS a, held_until_c AS b FROM base_holdings")
        assert not bases.ask("FROM base_placements WHERE NOT by_container")
    for machine in ("n1", "n2"):
        own = [row for row in held if row["machine"] == machine]
        assert max(sum(r["gpus"] for r in own if r["a"] <= one["a"] < r["b"]) for one in own) == 8
    assert max(row["gpus_busy"] for row in rows(db, "occupancy")) <= 16


def test_preempted_containers_are_reported_and_whom_they_made_room_for(db: Path) -> None:
    states = y.frame(db, "SELECT state, count(*) AS n FROM containers WHERE gpus > 0 GROUP BY ALL ORDER BY ALL").rows()
    assert (("preempted", 2) in states, sum(n for _, n in states)) == (True, 6)
    found = {row["finding"]: row["rows"] for row in rows(db, "data_quality")}
    assert found["attempts that lost containers to preemption and went on"] == 1
    with Store(db) as store:
        own, other = (explain(store, app.id, Options()).notes for app in (shrinking(), urgent()))
    assert any("YARN preempted 2 containers with 8 GPUs of this job" in note for note in own)
    assert any(
        f"While this job waited, YARN preempted 2 containers with 8 GPUs of {shrinking().id}" in n for n in other
    )


def test_the_total_of_the_resource_manager_is_compared(db: Path) -> None:
    [one] = rows(db, "source_totals")
    assert (one["compared"], one["differing"]) == (2, 0)
    assert math.isclose(one["gpu_hours"], one["stated_gpu_hours"])


def test_a_replay_holds_the_same_gpu_hours(db: Path) -> None:
    with Store(db) as store:
        workload, cluster = read_trace(store)
    held = workload.gpus * workload.true_run_time
    assert np.allclose(held, [HELD_S[5], HELD_S[6]])
    assert workload.gpus.tolist() == [16, 8]
    assert cluster.total_gpus == 16
    assert any("containers of 1 job came and went" in note for note in workload.notes)


def test_a_job_that_grew_is_replayed_with_the_mean_of_what_it_held(tmp_path: Path) -> None:
    db, _ = y.load(tmp_path, {"rm.log": y.rm_log([growing()]).text()})
    with Store(db) as store:
        workload, _ = read_trace(store)
    held_s = 90 + 7 * 300
    assert workload.gpus.tolist() == [math.ceil(held_s / 400)]
    assert math.isclose(workload.true_run_time[0], held_s / workload.gpus[0])
    assert workload.true_run_time[0] <= 400


def test_amounts_without_gpus_mean_nothing_where_nobody_counts_gpus(tmp_path: Path) -> None:
    """Releases before 3.1 write <memory:1024, vCores:1> of every container, whatever its process uses."""
    app = y.gang()
    for container in app.attempts[0].containers:
        container.gpus = 0
    old = y.rm_log([app], summaries=False).text().replace(b", yarn.io/gpu: 8", b"")
    db, _ = y.load(tmp_path, {"rm.log": old})
    assert y.frame(db, "SELECT gpus FROM jobs").rows() == [(None,)]
    assert y.frame(db, "SELECT DISTINCT gpus FROM machines").rows() == [(None,)]
    # another application's container shows that GPUs are counted here: then none means none
    y.load(tmp_path, {"more.log": y.rm_log([y.running()], summaries=False).text()})
    assert y.frame(db, "SELECT gpus FROM jobs ORDER BY job").rows() == [(0.0,), (4.0,)]
