"""Jobs in the formats of other tools, and back: what a format can say stays."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.traces import mapped
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.trace import read_trace
from gpuctl.replay.models.inference import parse_inference
from gpuctl.store.database import Store
from gpuctl.workloads import convert
from tests.example_files import HELIOS, PHILLY
from tests.trace_files import SWF, TRACES

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {
    "swf": '"user", queue, gpus, epoch(submit_ts), wait_s, run_sum_s, state',
    "gavel": "gpus, epoch(submit_ts) - min(epoch(submit_ts)) OVER ()",
    "shockwave": "gpus, epoch(submit_ts) - min(epoch(submit_ts)) OVER (), run_sum_s",
    "tiresias": "gpus, epoch(submit_ts) - min(epoch(submit_ts)) OVER (), run_sum_s",
    "pollux": "gpus, epoch(submit_ts) - min(epoch(submit_ts)) OVER ()",
    "batsim": "job, gpus, epoch(submit_ts) - min(epoch(submit_ts)) OVER (), run_sum_s",
    "philly-csv": "queue, gpus, epoch(submit_ts), run_sum_s",
    "philly": 'job, "user", queue, gpus, epoch(submit_ts), wait_s, run_sum_s',
}
"""What each format can say of a job of Helios."""


def store_of(folder: Path, name: str, text: str | bytes, **options: object) -> Path:
    place = folder / name.replace(".", "-")
    place.mkdir()
    (place / name).write_bytes(text.encode() if isinstance(text, str) else text)
    db = folder / f"{name}.duckdb"
    report = ingest([place], db, cluster="c", **options)  # type: ignore[arg-type]
    assert not report.nothing_loaded, report
    return db


def written(db: Path, to: str, unit: str | None = None) -> tuple[bytes, convert.WrittenJobs]:
    out = io.BytesIO()
    with Store(db) as store:
        done = convert.convert(store, "c", to, out, unit=unit)
    return out.getvalue(), done


def jobs_of(db: Path, columns: str) -> list[tuple[object, ...]]:
    with Store(db) as store:
        return store.execute(f"SELECT {columns} FROM jobs ORDER BY submit_ts, job").fetchall()


@pytest.mark.parametrize("to", COLUMNS)
def test_there_and_back(to: str, tmp_path: Path) -> None:
    text = HELIOS.replace("NODE_FAIL", "COMPLETED").replace("TIMEOUT", "FAILED")
    before = store_of(tmp_path, "cluster_log.csv", text)
    data, done = written(before, to)
    assert done.rows == 5
    after = (
        store_of(tmp_path, f"again.{to}", data, timezone="Asia/Shanghai")
        if to.startswith("philly")
        else store_of(tmp_path, f"again.{to}", data, **{})
    )
    columns = COLUMNS[to].replace("gpus", "cpus::DOUBLE AS gpus") if to in {"swf", "batsim"} else COLUMNS[to]
    kept = jobs_of(before, COLUMNS[to])
    if to == "swf":
        # users are numbered in the order of their names
        kept = [(str(int(str(row[0])[1:]) + 1), *row[1:]) for row in kept]
    assert jobs_of(after, columns) == kept


def test_swf_round_trips(tmp_path: Path) -> None:
    before = store_of(tmp_path, "a.swf", SWF)
    data, done = written(before, "swf", "core")
    after = store_of(tmp_path, "b.swf", data)
    told = 'job, "user", account, name, queue, cpus, epoch(submit_ts), wait_s, run_sum_s, time_limit_s, state'
    assert jobs_of(after, told) == jobs_of(before, told)
    assert done.rows == 4
    assert [str(n) for n in done.notes] == ["sizes are cores: no job has GPUs, or this unit was requested"]
    with Store(after) as store:
        assert store.execute("SELECT sum(cpus), count(*) FROM machines").fetchall() == [(16, 1)]
        assert store.value("SELECT epoch FROM clusters") is None


def test_values_that_a_format_lacks_are_counted(tmp_path: Path) -> None:
    pods = store_of(tmp_path, *TRACES["openb-pods"])
    data, done = written(pods, "batsim")
    assert [str(n) for n in done.notes] == [
        "1 job is left out: no size", "1 job is left out: no run time",
        "1 size is not a whole number and is rounded up",
        "no nodes are known: nb_res is the size of the largest job",
    ]  # fmt: skip
    found = json.loads(data)
    assert found["nb_res"] == 2
    assert [(j["id"], j["subtime"], j["res"], found["profiles"][j["profile"]]) for j in found["jobs"]] == [
        ("pod-0", 0.0, 1, {"type": "DelayProfile", "delay": 8995.0}),
        ("pod-1", 10.0, 2, {"type": "DelayProfile", "delay": 60.0}),
        ("pod-2", 20.0, 1, {"type": "DelayProfile", "delay": 40.0}),
    ]
    nothing = store_of(tmp_path, *TRACES["llm-azure"])
    with pytest.raises(InputError, match="no job of cluster c can be written"):
        written(nothing, "swf")
    with pytest.raises(UsageError, match="no such format"):
        written(pods, "swg")
    with pytest.raises(UsageError, match="needs the nodes"):
        written(nothing, "inference-load")


def test_applications_of_pollux(tmp_path: Path) -> None:
    """By name where it is one of theirs, else by GPU-hours: below 1, 10, 100, and from 100 on."""
    hours = [("bert", 4, 0.1), ("mine", 4, 0.249), ("mine", 4, 0.25), ("mine", 8, 1.25), ("mine", 8, 12.5)]
    rows = [f"j{k},{100 + k},{h * 3600},{gpus},{name}\n" for k, (name, gpus, h) in enumerate(hours)]
    csv = "id,at,took,num,app\n" + "".join(rows)
    own = mapped.column_mapping(["id=job_id", "at=submit_time", "took=duration", "num=num_gpus", "app=name"], [])
    assert own is not None
    db = store_of(tmp_path, "mine.csv", csv, formats=[mapped.with_map(own)])
    data, done = written(db, "sia")
    assert data.decode().splitlines() == [
        "name,time,application,num_replicas,batch_size",
        "bert-0,0.0,bert,4,96", "cifar10-1,1.0,cifar10,4,1024", "deepspeech2-2,2.0,deepspeech2,4,160",
        "yolov3-3,3.0,yolov3,8,128", "imagenet-4,4.0,imagenet,8,1280",
    ]  # fmt: skip
    assert str(done.notes[0]) == "the applications of 4 jobs are chosen by their GPU-hours"


def test_a_replay_reads_the_csv_of_jobs(tmp_path: Path) -> None:
    before = store_of(tmp_path, "cluster_log.csv", HELIOS)
    data, _ = written(before, "jobs-csv")
    (tmp_path / "jobs.csv").write_bytes(data)
    found = read_jobs(tmp_path / "jobs.csv")
    assert list(found.gpus) == [1, 2, 3, 4, 5]
    assert found.segment_s.tolist() == [row[0] for row in jobs_of(before, "run_sum_s")]
    assert found.queues == ("vc0", "vc1")


def test_deadlines_survive_as_a_csv_and_reach_a_replay(tmp_path: Path) -> None:
    text = "job_id,submit_time,model_name,ddl,num_gpu,duration\n1,100,a,400.5,1,90\n2,160,a,,1,90\n"
    before = store_of(tmp_path, "jobs.csv", text)
    data, _ = written(before, "jobs-csv")
    (tmp_path / "own.csv").write_bytes(data)
    given = read_jobs(tmp_path / "own.csv").deadline
    assert given is not None
    assert given.tolist() == pytest.approx([400.5, np.nan], nan_ok=True)
    with Store(before) as store:
        workload, _ = read_trace(store)
    # second 0 of a replay is the first submission
    assert workload.submit.tolist() == [0, 60]
    assert workload.deadline is not None
    assert workload.deadline.tolist() == pytest.approx([300.5, np.nan], nan_ok=True)
    own = mapped.column_mapping(["id=job_id", "at=submit_time", "took=duration", "num=num_gpus", "due=deadline"], [])
    assert own is not None
    csv = "id,at,took,num,due\n1,100,90,1,400\n"
    with Store(store_of(tmp_path, "mine.csv", csv, formats=[mapped.with_map(own)])) as store:
        assert store.execute("SELECT epoch(deadline_ts) FROM jobs").fetchall() == [(400,)]


def test_places_of_philly_stay(tmp_path: Path) -> None:
    before = store_of(tmp_path, "cluster_job_log", PHILLY["cluster_job_log"])
    data, done = written(before, "philly")
    after = store_of(tmp_path, "again", data)
    sql = "SELECT job, attempt, machine, gpus, gpu_indices FROM placements ORDER BY ALL"
    with Store(before) as one, Store(after) as other:
        assert other.execute(sql).fetchall() == one.execute(sql).fetchall()
    assert (done.rows, done.notes) == (12, ())


def test_what_philly_has_no_word_for_is_left_out(tmp_path: Path) -> None:
    db = store_of(tmp_path, *TRACES["openb-pods"])
    with Store(db, write=True) as store:
        store.execute("UPDATE job_rows SET gpus = 1")
        store.execute("DELETE FROM attempt_rows WHERE job = 'pod-2'")
    data, done = written(db, "philly")
    assert [(job["jobid"], job["status"]) for job in json.loads(data)] == [("pod-1", "Pass")]
    assert [str(n) for n in done.notes[:3]] == [
        "1 job is left out: not ended", "2 jobs are left out: outcome unknown", "1 job is left out: no attempt",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="--nodes is for"), Store(db) as store:
        convert.convert(store, "c", "swf", io.BytesIO(), nodes=3)


def test_load_of_services_for_loans(tmp_path: Path) -> None:
    # 4 spans of 5 minutes: 100, 0, 1 000, 500 tokens
    rows = [(10, 60, 40), (700, 500, 500), (1100, 250, 250)]
    text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" + "".join(
        f"{t},m,{a},{b},{a + b},x\n" for t, a, b in rows
    )
    db = store_of(tmp_path, "BurstGPT_1.csv", text)
    out = io.BytesIO()
    with Store(db) as store:
        convert.convert(store, "c", "inference-load", out, nodes=10)
    # 99th percentile of (0, 100, 500, 1 000): 985; ceil(10 x 1.02 x 100 / 985) = 2 of 10 are needed, then 0, 10, 6
    assert out.getvalue().decode() == "time_s,nodes_free\n0,8\n300,10\n600,0\n900,4\n"
    (tmp_path / "load.csv").write_bytes(out.getvalue())
    lent = parse_inference("10x8", tmp_path / "load.csv")
    assert lent.free.tolist() == [8, 10, 0, 4]
