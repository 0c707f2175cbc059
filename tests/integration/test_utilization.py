"""The join of telemetry with placements against a plain loop over rows, jobs and minutes."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.result_tables import table_of

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import Analysis

BEGIN = datetime(2017, 10, 10, 22, 30)
MACHINES = 3
MINUTES = 240
Attempt = tuple[str, int, datetime, datetime, str, dict[int, list[int]]]


def made_up(rng: random.Random) -> list[Attempt]:
    """Attempts that never share a GPU: (job, attempt, start, end, status, GPUs by machine)."""
    free = {(m, g): BEGIN for m in range(MACHINES) for g in range(8)}
    attempts: list[Attempt] = []
    for number in range(60):
        size = rng.choice([1, 1, 2, 4, 8, 12])
        lanes = sorted(free, key=lambda lane: (free[lane], lane))[:size]
        start = max(free[lane] for lane in lanes) + timedelta(seconds=rng.randrange(0, 900))
        end = start + timedelta(seconds=rng.randrange(20, 5000))
        held: dict[int, list[int]] = defaultdict(list)
        for machine, gpu in lanes:
            free[machine, gpu] = end
            held[machine].append(gpu)
        attempts.append((f"j{number}", 0, start, end, rng.choice(["Pass", "Killed", "Failed"]), held))
    return attempts


def written(work: Path, attempts: list[Attempt], rng: random.Random) -> dict[tuple[int, datetime], list[float | None]]:
    logs = work / "logs"
    logs.mkdir()
    jobs = [
        {
            "status": status, "vc": "v", "jobid": job, "user": "u", "submitted_time": str(start),
            "attempts": [{"start_time": str(start), "end_time": str(end), "detail": [
                {"ip": f"m{m}", "gpus": [f"gpu{g}" for g in gpus]} for m, gpus in held.items()]}],
        }
        for job, _, start, end, status, held in attempts
    ]  # fmt: skip
    (logs / "cluster_job_log").write_text(json.dumps(jobs))
    samples: dict[tuple[int, datetime], list[float | None]] = {}
    with (logs / "cluster_gpu_util").open("w") as file:
        file.write("time,machineId," + ",".join(f"gpu{g}_util" for g in range(8)) + "\n")
        for minute in range(MINUTES):
            at = BEGIN + timedelta(minutes=minute)
            for machine in range(MACHINES):
                if rng.random() < 0.05:
                    continue
                cells = [None if rng.random() < 0.03 else round(rng.uniform(0, 100), 1) for _ in range(8)]
                samples[machine, at] = cells
                file.write(f"{at} PDT,m{machine}," + "".join("NA," if c is None else f"{c}," for c in cells) + "\n")
    return samples


def plain(
    attempts: list[Attempt], samples: dict[tuple[int, datetime], list[float | None]], *, whole_minutes: bool
) -> dict[tuple[int, int, str, bool], list[float]]:
    """Utilization samples by (GPUs, nodes, status, colocated)."""
    found: dict[tuple[int, int, str, bool], list[float]] = defaultdict(list)

    def holds(attempt: Attempt, machine: int, at: datetime) -> bool:
        start = attempt[2].replace(second=0) if whole_minutes else attempt[2]
        return machine in attempt[5] and start <= at < attempt[3]

    for (machine, at), cells in samples.items():
        here = [attempt for attempt in attempts if holds(attempt, machine, at)]
        for attempt in here:
            size = sum(map(len, attempt[5].values()))
            for gpu in attempt[5][machine]:
                value = cells[gpu]
                if value is not None:
                    found[size, len(attempt[5]), attempt[4], len(here) > 1].append(value)
    return found


def rows(result: Analysis, name: str) -> list[dict[str, Any]]:
    return table_of(result, name).frame.to_dicts()


@pytest.mark.parametrize(("seed", "definition"), [(1, "gpuctl"), (2, "gpuctl"), (3, "notebook")])
def test_same_as_a_plain_loop(tmp_path: Path, seed: int, definition: Any) -> None:
    rng = random.Random(seed)
    attempts = made_up(rng)
    samples = written(tmp_path, attempts, rng)
    expected = plain(attempts, samples, whole_minutes=definition == "notebook")
    ingest([tmp_path / "logs"], tmp_path / "t.duckdb", cluster="c")
    with Store(tmp_path / "t.duckdb") as store:
        result = analyze(store, Options(definition=definition))
    state = {"Pass": "completed", "Killed": "killed", "Failed": "failed"}

    def check(row: dict[str, Any], values: list[float]) -> None:
        assert row["gpu_minutes"] == len(values), row
        assert row["mean_pct"] == pytest.approx(sum(values) / len(values), abs=1e-5)
        ordered = sorted(values)
        for name, share in (("p50_pct", 0.5), ("p90_pct", 0.9)):
            nth = ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
            assert row[name] == pytest.approx(nth, abs=1e-3)

    nodes = rows(result, "gpu_util_by_nodes")
    assert {(r["gpus"], r["nodes"]) for r in nodes} == {key[:2] for key in expected}
    for row in nodes:
        check(row, [v for key, values in expected.items() if key[:2] == (row["gpus"], row["nodes"]) for v in values])
    for row in rows(result, "gpu_util_by_colocation"):
        wanted = (row["gpus"], row["colocation"] == "colocated")
        check(row, [v for key, values in expected.items() if (key[0], key[3]) == wanted for v in values])
    for row in rows(result, "gpu_util_by_state"):
        check(
            row,
            [
                v
                for key, values in expected.items()
                if row["gpus"] in {"all", str(key[0])} and row["state"] in {"all", state[key[2]]}
                for v in values
            ],
        )
