"""Readers of GPU samples on lines whose values and times are worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.telemetry_renewal import renew
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

T = 1_793_412_420
"""2026-10-31T02:07:00Z; 03:07:00 in Berlin."""
SAMPLES = """
    SELECT s.reader, s.machine, s.gpu, epoch(r.ts) AS t, r.util, r.mem_mb, r.power_w, r.sm_pct, r.tensor_pct
    FROM gpu_readings AS r JOIN gpu_series AS s USING (series) ORDER BY ALL
"""
REJECTS = "SELECT reason, count(*) FROM rejects GROUP BY ALL ORDER BY ALL"


def loaded(folder: Path, name: str, text: str, sql: str = SAMPLES) -> list[tuple[Any, ...]]:
    path = folder / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    db = folder / "made.duckdb"
    ingest([folder / "logs"], db, cluster="c", timezone="Europe/Berlin")
    with Store(db) as store:
        return store.execute(sql).fetchall()


def test_telegraf(tmp_path: Path) -> None:
    tags = r"nvidia_smi,arch=Ampere,host=gpu01,index=3,name=NVIDIA\ A100\,\ 80GB,pstate=P0,uuid=GPU-a1"
    text = (
        f"{tags} memory_used=40536i,power_draw=398.25,utilization_gpu=93i,utilization_memory=41i {T}500000000\n"
        f"{tags} memory_used=4i,power_draw=61.5,utilization_gpu=0i {T + 60}000000000\n"
    )
    assert loaded(tmp_path, "t.influx", text) == [
        ("telegraf", "gpu01", 3, T + 0.5, 93.0, 40536.0, 398.25, None, None),
        ("telegraf", "gpu01", 3, T + 60, 0.0, 4.0, 61.5, None, None),
    ]


def test_ldms(tmp_path: Path) -> None:
    text = (
        "#Time,Time_usec,ProducerName,component_id,job_id,app_id,gpu_id,gpu_utilization,fb_used,power_usage,sm_active\n"
        f"{T}.250000,250000,gpu03,3,410221,0,7,90,73053,597.5,0.5\n"
        f"{T + 60}.250000,250000,gpu03,3,0,0,7,0,4,71,\n"
    )
    assert loaded(tmp_path, "dcgm.1.csv", text) == [
        ("ldms", "gpu03", 7, T + 0.25, 90.0, 73053.0, 597.5, 50.0, None),
        ("ldms", "gpu03", 7, T + 60.25, 0.0, 4.0, 71.0, None, None),
    ]
    with Store(tmp_path / "made.duckdb") as store:
        labels = store.execute("SELECT job FROM gpu_series ORDER BY job NULLS LAST").fetchall()
    assert labels == [("410221",), (None,)]


def test_dmon_reads_columns_by_name_and_times_as_local(tmp_path: Path) -> None:
    head = "#Date Time gpu sm mem fb pwr gtemp\n#YYYYMMDD HH:MM:SS Idx % % MB W C\n"
    text = f"{head} 20261031 03:07:00 0 93 41 40536 398 61\n 20261031 03:07:00 1 - - 4 61 30\n{head}" + (
        " 20261031   03:08:00     0    0   0   4   60   30\n"
    )
    assert loaded(tmp_path, "dmon.gpu01.log", text) == [
        ("dmon", "gpu01", 0, T, 93.0, 40536.0, 398.0, None, None),
        ("dmon", "gpu01", 0, T + 60, 0.0, 4.0, 60.0, None, None),
        ("dmon", "gpu01", 1, T, None, 4.0, 61.0, None, None),
    ]


def test_ganglia_puts_a_mean_in_the_middle_of_its_step(tmp_path: Path) -> None:
    fetch = f"                          sum\n\n{T}: 9.3000000000e+01\n{T + 60}: -nan\n{T + 120}: 5.0000000000e-01\n"
    assert loaded(tmp_path, "gpu05/gpu2_util.fetch.txt", fetch) == [
        ("ganglia", "gpu05", 2, T - 30, 93.0, None, None, None, None),
        ("ganglia", "gpu05", 2, T + 30, None, None, None, None, None),
        ("ganglia", "gpu05", 2, T + 90, 0.5, None, None, None, None),
    ]


def test_gmond_subtracts_the_age_of_a_value(tmp_path: Path) -> None:
    def metric(name: str, value: str, units: str, age: int) -> str:
        return f'<METRIC NAME="{name}" VAL="{value}" TYPE="uint32" UNITS="{units}" TN="{age}" TMAX="60"/>'

    text = (
        f'<?xml version="1.0"?>\n<GANGLIA_XML VERSION="3.7.2" SOURCE="gmond">\n<CLUSTER NAME="a" LOCALTIME="{T}">'
        '<HOST NAME="gpu01" REPORTED="1">'
        + metric("gpu0_util", "93", "%", 12)
        + metric("gpu0_fb_memory", "40536", "MB", 12)
        + metric("gpu0_uuid", "GPU-a1", "", 12)
        + metric("gpu1_util", "50", "%", 241)
        + metric("gpu2_util", "0.5", "ratio", 1)
        + metric("gpu3_util", "101", "%", 1)
        + metric("gpu4_util", "nan", "%", 1)
        + metric("cpu_idle", "3", "%", 1)
        + "</HOST></CLUSTER></GANGLIA_XML>\n"
    )
    assert loaded(tmp_path, "gmond.xml", text) == [
        ("ganglia", "gpu01", 0, T - 12, 93.0, None, None, None, None),
        ("ganglia", "gpu01", 0, T - 12, None, 40536.0, None, None, None),
    ]
    with Store(tmp_path / "made.duckdb") as store:
        assert store.execute(REJECTS).fetchall() == [
            ("a value that cannot be right", 2), ("not in %", 1), ("stale: older than four times TMAX", 1)
        ]  # fmt: skip
        assert store.execute("SELECT machine, gpu, uuid FROM gpu_devices").fetchall() == [("gpu01", 0, "GPU-a1")]


def test_the_inventory_numbers_gpus_by_position(tmp_path: Path) -> None:
    gpu = (
        '<gpu id="00000000:{}:00.0"><product_name>A100</product_name><uuid>GPU-{}</uuid>'
        "<minor_number>{}</minor_number><fb_memory_usage><total>81920 MiB</total></fb_memory_usage></gpu>"
    )
    text = (
        '<?xml version="1.0" ?>\n<nvidia_smi_log><timestamp>Sat Oct 31 01:00:00 2026</timestamp>'
        + gpu.format("07", "aa", 2)
        + gpu.format("B7", "bb", 0)
        + "</nvidia_smi_log>\n"
    )
    sql = "SELECT machine, gpu, uuid, pci_bus_id, minor, mem_mb FROM gpu_devices ORDER BY gpu"
    assert loaded(tmp_path, "gpu02.xml", text, sql) == [
        ("gpu02", 0, "GPU-aa", "0000:07:00", 2, 81920.0),
        ("gpu02", 1, "GPU-bb", "0000:b7:00", 0, 81920.0),
    ]


def test_dcgmi_dmon_counts_rounds_from_the_start_in_its_name(tmp_path: Path) -> None:
    head = "#Entity   GPUTL  FBUSD  POWER    GRACT  SMACT  TENSO\nID              W\n"
    text = (
        f"{head}GPU 0  90  73053  597.670  0.900  0.639  N/A\nGPU 1  0  4  71.000  0.000  0.000  0.000\n"
        f"{head}GPU 0  95  2147483632  598.5  0.9  0.6  0.25\nGPU 1  0  4  71.0  0.000  0.000  0.000\n"
        "GPU-I 3  N/A  9.5e1  1.0  0.5  0.5  0.5\nGPU 0  9300  4  71  0  0  0\nGPU 1  0  4\n"
    )
    assert loaded(tmp_path, "dcgmi-dmon.gpu03.20261031T020700Z.30s.txt", text) == [
        ("dcgmi-dmon", "gpu03", 0, T, 90.0, 73053.0, pytest.approx(597.67), pytest.approx(63.9), None),
        ("dcgmi-dmon", "gpu03", 0, T + 30, 95.0, None, 598.5, pytest.approx(60), 25.0),
        ("dcgmi-dmon", "gpu03", 1, T, 0.0, 4.0, 71.0, 0.0, 0.0),
        ("dcgmi-dmon", "gpu03", 1, T + 30, 0.0, 4.0, 71.0, 0.0, 0.0),
    ]
    with Store(tmp_path / "made.duckdb") as store:
        assert [why for why, _ in store.execute(REJECTS).fetchall()] == [
            "GPUTL cannot be right: is it in another unit?",
            "a MIG instance, by a number of DCGM's own: query dcgm-exporter, whose GPU_I_ID is NVML's",
            "not a row of dcgmi dmon: expected an entity and a cell for each column",
        ]


def test_dcgmi_dmon_without_a_start_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dmon.gpu03.txt").write_text("#Entity   GPUTL  POWER\nID          W\nGPU 0  90  71.0\n")
    report = ingest([tmp_path / "dmon.gpu03.txt"], tmp_path / "made.duckdb", cluster="c")
    assert report.failed
    assert "no start, interval and node" in str(report.sources[0].message)


@pytest.mark.parametrize(("gpus", "mean", "withheld"), [(2, 73.0, None), (1, None, "ambiguous"), (8, None, "coverage")])
def test_dcgmi_stats_are_of_the_whole_group(
    tmp_path: Path, gpus: int, mean: float | None, withheld: str | None
) -> None:
    fields = "JobIDRaw|JobID|User|Account|Partition|State|Submit|Start|End|NNodes|NCPUS|AllocTRES|NodeList"
    times = "2026-10-31T14:00:00|2026-10-31T14:00:40|2026-10-31T17:00:40"
    (tmp_path / "sacct.txt").write_text(
        f"{fields}\n410202|410202|ann|lab|gpu|COMPLETED|{times}|1|8|gres/gpu={gpus}|gpu02\n"
    )
    block = (
        "| GPU ID: {} |\n| Start Time | Sat Oct 31 14:00:33 2026 |\n| End Time | Sat Oct 31 17:00:43 2026 |\n"
        "| Max GPU Memory Used (bytes) | {} |\n| SM Utilization (%) | Avg: {}, Max: 100, Min: 0 |\n"
    )
    text = (
        "Successfully retrieved statistics for job: 410202. \n"
        + block.format(0, 2**30, 77)
        + block.format(1, 2**31, 69)
    )
    (tmp_path / "dcgmi-stats-410202.gpu02.txt").write_text(text)
    db = tmp_path / "made.duckdb"
    ingest([tmp_path], db, cluster="c", timezone="Europe/Berlin", then=renew)
    with Store(db) as store:
        row = store.execute("SELECT gpu_util_mean, gpu_mem_max_mb, withheld, join_by FROM job_gpu_usage").fetchall()
    assert row == [(mean, 2048.0 if mean else None, withheld, "summary")]


def test_amd_smi_has_units_in_its_cells(tmp_path: Path) -> None:
    text = (
        "timestamp,gpu,power_usage,hotspot_temperature,gfx,gfx_clock,mem,vram_used,vram_total\n"
        f"{T},0,512 W,61 C,83 %,2100 MHz,31 %,51.5 GB,192.0 GB\n{T},1,140 W,61 C,0 %,2100 MHz,0 %,300 MB,192.0 GB\n"
        f"{T},2,N/A,61 C,N/A,N/A,N/A,N/A,192.0 GB\n{T},3,0.5 kB,61 C,5 V,N/A,N/A,1 GB,192.0 GB\n"
    )
    assert loaded(tmp_path, "amd01.csv", text) == [
        ("amd-smi", "amd01", 0, T, 83.0, 51.5 * 1024, 512.0, None, None),
        ("amd-smi", "amd01", 1, T, 0.0, 300.0, 140.0, None, None),
        ("amd-smi", "amd01", 2, T, None, None, None, None, None),
    ]


def test_ceems_maps_gpus_and_names_no_job_by_a_gpu(tmp_path: Path) -> None:
    text = (
        'ceems_compute_unit_gpu_index_flag{gpuiid="",gpuuuid="GPU-a1",hindex="gpu03/gpu-0",hostname="gpu03",index="0",'
        'manager="slurm",uuid="410221"} 1\n'
    )
    sql = "SELECT machine, gpu, uuid FROM gpu_devices"
    assert loaded(tmp_path, "gpu03.20261031T020700Z.prom", text, sql) == [("gpu03", 0, "GPU-a1")]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("40 GB", None),
        ("40 KiB", "memory.used [MiB]"),
        ("nan", None),
        ("[N/A]", None),
        ("1e400", None),
        ("-1 MiB", "cannot be right"),
        ("2147483632 MiB", None),
        ("17000000 MiB", "cannot be right"),
    ],
)
def test_wrong_units_and_signs_of_no_value_are_no_numbers(tmp_path: Path, cell: str, why: str | None) -> None:
    text = (
        "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"
        f"2026/10/31 03:07:00.000, 0, 93 %, {cell}\n2026/10/31 03:08:00.000, 0, 94 %, 10 MiB\n"
    )
    rows = loaded(tmp_path, "gpu02.csv", text)
    known = {"40 GB": 40960.0}.get(cell)
    assert [(row[4], row[5]) for row in rows] == [*([] if why else [(93.0, known)]), (94.0, 10.0)]
    with Store(tmp_path / "made.duckdb") as store:
        assert len(store.execute(REJECTS).fetchall()) == bool(why)


def test_a_header_in_an_unknown_unit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gpu02.csv").write_text("timestamp, index, memory.used [KiB]\n2026/10/31 03:07:00.000, 0, 93\n")
    report = ingest([tmp_path / "gpu02.csv"], tmp_path / "made.duckdb", cluster="c")
    assert "is in [KiB]: expected" in str(report.sources[0].message)
