"""Samples of GPUs joined to jobs: weights, idleness, ranges, clocks, on figures worked out by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.analyze.gpu_usage import clocks, ranges, spans, usage
from gpuctl.analyze.gpu_usage.over_time import gpus_over_time
from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.analyze.telemetry_renewal import renew
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = "JobIDRaw|JobID|User|Account|Partition|State|Submit|Start|End|NNodes|NCPUS|AllocTRES|NodeList"
NODE = """NodeName=n1 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.10
   Gres=gpu:a100:2(S:0-1)
   RealMemory=515000 AllocMem=0 FreeMem=506000 Sockets=2 Boards=1
   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   CfgTRES=cpu=64,mem=515000M,billing=64,gres/gpu=2
   AllocTRES=

"""
MINUTE = 60


def sacct(*jobs: tuple[str, str, str, int]) -> str:
    lines = [
        f"{name}|{name}|ann|lab|gpu|COMPLETED|2026-10-31T{start}|2026-10-31T{start}|2026-10-31T{end}|1|4|gres/gpu={gpus}|n1"
        for name, start, end, gpus in jobs
    ]
    return "\n".join([FIELDS, *lines]) + "\n"


def smi(*values: tuple[str, int, str]) -> str:
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"
    return head + "".join(f"2026/10/31 {at}.000, {gpu}, {util}, 10 MiB, 100.00 W\n" for at, gpu, util in values)


def usage_of(folder: Path, files: dict[str, str], options: usage.Options | None = None) -> dict[str, dict[str, object]]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    db = folder.parent / "made.duckdb"
    ingest(
        [folder],
        db,
        cluster="c",
        timezone="UTC",
        then=lambda store, name: renew(store, name, options or usage.Options()),
    )
    with Store(db) as store:
        rows = store.frame("SELECT * FROM job_gpu_usage")
    return {row["job"]: row for row in rows.iter_rows(named=True)}


def minutes(first: int, last: int, values: dict[int, list[str]]) -> str:
    rounds = [(f"{t // 60:02d}:{t % 60:02d}:30", t - first) for t in range(first, last)]
    return smi(*((at, gpu, f"{some[k % len(some)]}") for at, k in rounds for gpu, some in values.items()))


def test_a_job_with_all_gpus_of_its_node_has_their_mean_and_the_gpu_that_it_never_used(tmp_path: Path) -> None:
    files = {
        "scontrol_node.txt": NODE,
        "sacct.txt": sacct(("7", "01:00:00", "02:00:00", 2)),
        "n1.csv": minutes(50, 130, {0: ["50 %", "70 %"], 1: ["0 %"]}),
    }
    found = usage_of(tmp_path / "logs", files)["7"]
    assert found["gpu_util_mean"] == pytest.approx(30.0)
    assert found["gpu_util_coverage"] == pytest.approx(1.0)
    assert (found["gpus_unused"], found["idle_gpu_h"], found["join_by"]) == (1, pytest.approx(1.0), "node")
    assert found["energy_kwh"] == pytest.approx(0.2)
    assert found["withheld"] is None


def test_on_a_shared_node_without_indices_there_is_a_range_and_no_mean(tmp_path: Path) -> None:
    files = {
        "scontrol_node.txt": NODE,
        "sacct.txt": sacct(("7", "01:00:00", "02:00:00", 1), ("8", "01:00:00", "02:00:00", 1)),
        "n1.csv": minutes(50, 130, {0: ["80 %"], 1: ["20 %"]}),
    }
    found = usage_of(tmp_path / "logs", files)
    for job in ("7", "8"):
        assert (found[job]["withheld"], found[job]["gpu_util_mean"]) == ("ambiguous", None)
        assert (found[job]["gpu_util_low"], found[job]["gpu_util_high"]) == (pytest.approx(20), pytest.approx(80))
        assert found[job]["idle_gpu_h"] is None


def test_each_gpu_over_time_has_means_of_periods_and_unknown_gpus_have_none(tmp_path: Path) -> None:
    files = {
        "scontrol_node.txt": NODE,
        "sacct.txt": sacct(
            ("7", "01:00:00", "02:00:10", 2), ("8", "03:00:00", "04:00:00", 1), ("9", "03:00:00", "04:00:00", 1)
        ),
        # no samples from 1:20 to 1:40
        "n1.csv": minutes(50, 80, {0: ["50 %", "70 %"], 1: ["0 %"]})
        + minutes(100, 130, {0: ["100 %"], 1: ["0 %"]}).partition("\n")[2]
        + minutes(180, 240, {0: ["80 %"], 1: ["20 %"]}).partition("\n")[2],
    }
    usage_of(tmp_path / "logs", files)
    with Store(tmp_path / "made.duckdb") as store:
        found = {job: gpus_over_time(store, "c", job) for job in ("7", "8", "9", "none")}
    busy, idle = found["7"][0]
    assert [(one.machine, one.gpu, one.period_s) for one in (busy, idle)] == [("n1", 0, 120.0), ("n1", 1, 120.0)]
    # half an interval beyond the last sample before the gap, and before the first one after it
    assert busy.pct == (60.0,) * 10 + (None,) * 10 + (100.0,) * 10
    assert idle.pct == (0.0,) * 10 + (None,) * 10 + (0.0,) * 10
    assert busy.mean_pct == pytest.approx((20 * 60 + 20.17 * 100) / 40.17, abs=0.1)
    assert busy.coverage == pytest.approx(40 / 60, abs=0.01)
    assert found["8"] == found["9"] == found["none"] == {}


def test_unknown_is_not_idle_and_too_little_coverage_withholds(tmp_path: Path) -> None:
    files = {
        "scontrol_node.txt": NODE,
        "sacct.txt": sacct(("7", "01:00:00", "02:00:00", 2), ("9", "03:00:00", "03:01:00", 2)),
        "n1.csv": minutes(50, 75, {0: ["[N/A]", "0 %"], 1: ["[N/A]", "0 %"]})
        + minutes(175, 185, {0: ["9 %"], 1: ["9 %"]}),
    }
    found = usage_of(tmp_path / "logs", files)
    assert (found["7"]["withheld"], found["7"]["gpus_unused"]) == ("coverage", None)
    assert found["9"]["withheld"] == "short"


def answer(metric: str, series: list[tuple[dict[str, str], list[list[object]]]]) -> str:
    result = [{"metric": {"__name__": metric, **labels}, "values": values} for labels, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_a_label_joins_while_its_job_runs_and_blank_values_are_none(tmp_path: Path) -> None:
    start = 1793408400  # 2026-10-31T01:00:00Z
    times = [start + MINUTE * k for k in range(-5, 70)]
    own = {"gpu": "0", "UUID": "GPU-1", "Hostname": "n1", "hpc_job": "7", "job": "dcgm", "instance": "n1:9400"}
    values = [[t, "9223372036854775794" if t % 120 else "40"] for t in times]
    files = {
        "scontrol_node.txt": NODE,
        "sacct.txt": sacct(("7", "01:00:00", "02:00:00", 1)),
        "util.json": answer("DCGM_FI_DEV_GPU_UTIL", [(own, values)]),
    }
    found = usage_of(tmp_path / "logs", files)["7"]
    assert (found["join_by"], found["samples"], found["gpu_util_mean"]) == ("label", 30, pytest.approx(40))


def test_a_gauge_of_the_last_xid_is_an_event_when_it_changes(tmp_path: Path) -> None:
    own = {"gpu": "1", "UUID": "GPU-1", "pci_bus_id": "00000000:07:00.0", "Hostname": "n1"}
    at = 1793408400
    values = [[at - 300, "31"], [at, "31"], [at + 300, "79"], [at + 600, "79"]]
    line = (
        "2026-10-31T01:04:10+0000 n1 kernel: NVRM: Xid (PCI:0000:07:00): 79, pid=1, name=python, GPU has fallen off\n"
    )
    files = {
        "scontrol_node.txt": NODE,
        "sacct.txt": sacct(("7", "01:00:00", "02:00:00", 2)),
        "xid.json": answer("DCGM_FI_DEV_XID_ERRORS", [(own, values)]),
        "kernel.log": line * 3,
    }
    usage_of(tmp_path / "logs", files)
    with Store(tmp_path / "made.duckdb") as store:
        rows = store.execute("SELECT machine, gpu, code, origin, jobs FROM gpu_faults").fetchall()
    assert rows == [("n1", 1, 79, "log", ["7"])]


def test_peaks_of_steps_are_a_bound_and_never_a_mean(tmp_path: Path) -> None:
    head = FIELDS + "|TRESUsageInTot"
    job = sacct(("7", "01:00:00", "02:00:00", 2)).splitlines()[1]
    step = job.replace("7|7|", "7.0|7.0|", 1)
    files = {
        "scontrol_node.txt": NODE,
        "sacct.txt": f"{head}\n{job}|\n{step}|cpu=00:01:00,gres/gpumem=90M,gres/gpuutil=150,mem=9K\n",
    }
    found = usage_of(tmp_path / "logs", files)["7"]
    assert (found["gpu_util_mean"], found["gpu_util_high"], found["withheld"]) == (None, 75.0, "peak_only")


@pytest.mark.parametrize("offset", [0, 97, -150])
def test_the_offset_of_a_clock_is_the_lower_end_of_its_plateau(offset: int) -> None:
    rng = np.random.default_rng(5)
    start = np.cumsum(rng.integers(2000, 4000, 40)).astype(float)
    end = start + rng.integers(900, 1500, 40)
    grid = np.arange(0.0, end[-1] + 1000, 60) + 11
    busy = np.zeros(len(grid), bool)
    for one, other in zip(start, end, strict=True):
        busy |= (grid >= one + 80) & (grid < other)
    found = clocks.estimate([grid[busy] + offset], [start], [end], 60.0)
    assert found is not None
    assert found.strong == (offset != 0)
    assert abs(found.offset - offset) <= 8 or (offset == 0 and found.offset <= 0 <= found.high)


@given(
    st.lists(st.lists(st.integers(0, 100), min_size=4, max_size=4), min_size=3, max_size=20),
    st.integers(1, 3),
    st.data(),
)
def test_a_range_holds_the_truth(table: list[list[int]], count: int, data: st.DataObject) -> None:
    mine = data.draw(st.permutations(range(4)))[:count]
    values = np.array(table, float)
    t = np.arange(len(table)) * 60.0 + 30
    node = ranges.Rounds(t, values, 60.0, np.zeros(values.shape, bool))
    found = ranges.bound(node, (0.0, 60.0 * len(t)), count, np.full(len(t), 4 - count))
    truth = values[:, mine].sum() * 60
    assert found.low - 1e-6 <= truth <= found.high + 1e-6
    assert found.covered == pytest.approx(60 * len(t) * count)


def test_a_gap_breaks_a_run_of_idleness() -> None:
    t = np.array([0, 60, 120, 600, 660, 720], float)
    some, _ = spans.samples(np.zeros(6, np.int64), t, np.zeros(6))
    held = spans.Held(np.zeros(1, np.int64), np.array([0.0]), np.array([900.0]))
    holder = spans.holders(some, held)
    assert spans.idle(some, holder, held, 100.0)[0] == pytest.approx(150 + 180)
    assert spans.weights(some, holder, held).sum() == pytest.approx(150 + 180)


def test_without_samples_the_means_that_accounting_states_fill_the_tables_of_utilization(tmp_path: Path) -> None:
    """gpustats in Comment: 2 GPUs at 60 % for 90 minutes from 01:30, half of them beside a job without a figure."""
    head = FIELDS.replace("|NodeList", "|NodeList|Comment")
    stated = json.dumps({"gpu_util": 60, "gpu_mem_max": 100, "ngpu": 2, "ncpu": 4, "step": 90})
    row = "{0}|{0}|{1}|lab|gpu|COMPLETED|2026-10-31T{2}|2026-10-31T{2}|2026-10-31T{3}|1|4|gres/gpu={4}|n1|{5}"
    lines = [head, row.format("7", "ann", "01:30:00", "03:00:00", 2, stated),
             row.format("8", "bob", "02:15:00", "05:00:00", 1, "")]  # fmt: skip
    found = usage_of(tmp_path / "logs", {"scontrol_node.txt": NODE, "sacct.txt": "\n".join(lines) + "\n"})
    assert (found["7"]["gpu_util_mean"], found["7"]["join_by"]) == (60, "summary")
    assert found["8"]["gpu_util_mean"] is None
    names = ("gpu_util_by_state", "gpu_util_by_nodes", "gpu_util_by_colocation", "users", "idle_users")
    with Store(tmp_path / "made.duckdb") as store:
        made = {table.name: table for table in analyze(store, Options(tables=names)).tables}
    rows = {name: table.frame.to_dicts() for name, table in made.items()}
    every = next(r for r in rows["gpu_util_by_state"] if r["gpus"] == r["state"] == "all")
    assert (every["gpu_minutes"], every["mean_pct"], every["p50_pct"]) == (180, 60, 60)
    assert [(r["gpus"], r["nodes"], r["gpu_minutes"]) for r in rows["gpu_util_by_nodes"]] == [(2, 1, 180)]
    by = {r["colocation"]: r["gpu_minutes"] for r in rows["gpu_util_by_colocation"]}
    assert by == {"dedicated": 90, "colocated": 90}
    assert {r["user"]: (r["measured_jobs"], r["util_mean_pct"]) for r in rows["users"]} == {
        "ann": (1, 60), "bob": (None, None),
    }  # fmt: skip
    [idle] = rows["idle_users"]
    assert (idle["user"], idle["gpu_hours"], idle["idle_gpu_hours"], idle["gpus_unused"]) == ("ann", 3, 0, 0)
    assert "a summary states" in made["gpu_util_by_state"].population
    assert "upper bound" in made["gpu_util_by_state"].population
