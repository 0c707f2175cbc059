"""Readers of published traces: what each makes of a small file that was made up here, whole and cut anywhere."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import built_in, formats_for
from gpuctl.ingest.read.pieces import BLOCK, has_twice
from gpuctl.ingest.traces.swf_lines import _squeezed
from gpuctl.store.database import Store
from tests.trace_files import ALEA, FRONTIER, KUBE, METACENTRUM, PODS, SWF, TRACES, VOLCANO_JOB

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = {fmt.name: fmt for fmt in built_in()}
JOBS = (
    'SELECT job, "user", queue, gpus, cpus, nodes, state, epoch(submit_ts), wait_s, run_sum_s, quirks '
    "FROM jobs ORDER BY job"
)
SIZES = "SELECT job, gpus, epoch(submit_ts), run_sum_s, state, attempts FROM jobs ORDER BY job"
MACHINES = "SELECT machine, gpus_labelled, gpu_type, cpus, mem_mb FROM machines ORDER BY machine"
LOAD = "SELECT service, epoch(ts), span_s, requests, prompt_tokens, output_tokens, failed FROM service_load ORDER BY ts"
QUEUES = "SELECT queue, quota_gpus, limit_gpus FROM queues ORDER BY queue"

# worked out by hand from the texts of tests/trace_files.py
EXPECTED: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "swf": (JOBS, [
        ("1", "1", "batch", 0.0, 4, None, "completed", 1027839905.0, 0.0, 100.0, ["size_not_as_asked"]),
        ("2", "2", "batch", 0.0, 4, None, "failed", 1027839965.0, 30.0, 100.0, []),
        ("3", "0", "batch", 0.0, 4, None, "killed", 1027840025.0, None, 100.0, ["no_wait", "size_not_as_asked"]),
        ("4", "1", "batch", 0.0, 4, None, "unknown", 1027840085.0, 20.0, 100.0, ["unknown_state"]),
    ]),
    "openb-nodes": (MACHINES, [("n0", 0, None, 32, 262144), ("n1", 8, "G2", 96, 786432), ("n2", 2, "T4", 64, 262144)]),
    "openb-pods": (JOBS, [
        ("pod-0", None, None, 0.46, 12, None, "unknown", 0.0, 5.0, 8995.0, ["seen_running", "unknown_state"]),
        ("pod-1", None, None, 2.0, 6, None, "completed", 10.0, 0.0, 60.0, []),
        ("pod-2", None, None, 1.0, 7, None, "failed", 20.0, 30.0, 40.0, []),
        ("pod-3", None, None, 4.0, 6, None, "pending", 30.0, None, None, []),
        ("pod-4", None, None, 0.0, 6, None, "unknown", 40.0, 10.0, 50.0, ["seen_running", "unknown_state"]),
    ]),
    "tiresias-jobs": (SIZES, [(str(k), 2.0**k, 30.0 * k, 100.0 * k + 1, "pending", 0) for k in range(4)]),
    "tiresias-cluster": (
        "SELECT rack, count(*), sum(gpus_labelled)::INTEGER, min(mem_mb) FROM machines GROUP BY rack ORDER BY rack",
        [("s0.0", 2, 8, 262144), ("s0.1", 2, 8, 262144), ("s1.0", 1, 8, 262144)],
    ),
    "pollux-jobs": (SIZES, [("cifar10-0", 6.0, 107.0, None, "pending", 0), ("ncf-1", 8.0, 110.5, 7.0, "pending", 0)]),
    "philly-hyperdrive": (
        "SELECT job, name, gpus, epoch(start_ts), run_sum_s, state FROM jobs ORDER BY job",
        [("application_15_0042", "1781", 8.0, 1529149681.0, 3309.5, "unknown"),
         ("application_15_0075", "1781", 1.0, 1529149909.0, 7953.0, "unknown")],
    ),
    "helios-lucid": ("SELECT job, name, queue, wait_s, run_sum_s FROM jobs", [("1", "train", "vc1", 300.0, 6900.0)]),
    "helios-quota": (QUEUES, [("vcA", 80.0, None), ("vcB", 0.0, None)]),
    "helios-vc-config": (QUEUES, [("vcA", 72.0, None), ("vcB", 40.0, None)]),
    "gavel-jobs": (SIZES, [
        ("0", 1.0, 10.0, 100.0, "pending", 0), ("1", 2.0, 20.0, 200.0, "pending", 0),
        ("2", 4.0, 40.0, 400.0, "pending", 0),
    ]),
    "gavel-speeds": ("SELECT gpu_type, name, gpus, instances FROM trace_parts ORDER BY ALL", [
        ("k80", "ResNet-18 (batch size 128)", 1.0, 100.0), ("p100", "ResNet-18 (batch size 128)", 2.0, 5.0),
        ("v100", "ResNet-18 (batch size 128)", 1.0, 8.0), ("v100", "ResNet-18 (batch size 128)", 2.0, 0.0),
    ]),
    "alibaba-spot-nodes": (MACHINES, [("0", 4, "A10", 192, None), ("1", 8, "H800", 192, None)]),
    "alibaba-spot-jobs": (SIZES, [("1", 2.0, 0.0, 2764799.0, "pending", 0), ("2", 0.5, 60.0, 600.0, "pending", 0)]),
    "alibaba-dlrm": (JOBS, [
        ("i0", None, "app_0", 1.0, 12, None, "running", None, None, None, ["created_before_trace"]),
        ("i1", None, "app_0", 0.0, 12, None, "killed", 10.5, 0.5, 189.0, []),
        ("i2", None, "app_1", 0.0, 12, None, "running", 10.0, 1.0, None, []),
    ]),
    "pai-machines": (MACHINES, [("m1", 8, "V100", 96, 524288), ("m2", 0, "CPU", 96, 524288)]),
    "pai-machine-metric": (
        "SELECT worker, machine, epoch(from_ts), gpu_pct, cpu_pct FROM machine_averages ORDER BY worker",
        [("w0", "m1", 4550060.0, 187.8, 18.5), ("w1", "m2", None, None, None)],
    ),
    "pai-simulator": (SIZES, [("0", 1.0, 0.0, 100.0, "pending", 0), ("1", 8.0, 10.0, 20.5, "pending", 0)]),
    "batsim-workload": ("SELECT job, cpus, epoch(submit_ts), run_sum_s, time_limit_s, quirks FROM jobs ORDER BY job", [
        ("1", 2, 0.0, 60.5, 100, []), ("3", 1, 7.0, 10.0, 10, ["killed_at_limit"]),
        ("4", 4, 8.0, None, 10, ["no_run_time"]),
        ("w!2", 8, 5.5, 60.5, None, []),
    ]),
    "batsim-jobs": ("SELECT job, cpus, state, wait_s, run_sum_s FROM jobs ORDER BY job", [
        ("1", 4, "completed", 2.0, 10.0), ("2", 2, "failed", 1.0, 5.0),
    ]),
    "pm100-jobs": ("SELECT job, gpus, nodes, state, wait_s, run_sum_s, time_limit_s, qos FROM jobs ORDER BY job", [
        ("1", 4.0, 1, "completed", 30.0, 3600.25, 3600, "normal"),
        ("2", 16.0, 4, "timeout", 30.0, 3600.0, 3600, "normal"),
    ]),
    "fdata-jobs": ("SELECT job, gpus, nodes, cpus, state, epoch(submit_ts), run_sum_s FROM jobs ORDER BY job", [
        ("a1", 0.0, 2, 96, "completed", 1711929600.0, 3600.0), ("a2", 0.0, 2, 96, "failed", 1711929600.0, None),
    ]),
    "borg-collections": (
        'SELECT job, "user", name, priority, gpus, state, epoch(submit_ts), wait_s, run_sum_s, attempts, quirks '
        "FROM jobs ORDER BY job",
        [("1", "u1", "l1", 201, 0.0, "completed", 600.0, 10.5, 89.5, 1, []),
         ("2", "u2", "l2", 202, 0.0, "killed", None, None, 40.0, 1, ["created_before_trace", "evicted"]),
         ("3", "u3", "l3", 203, 0.0, "pending", 610.0, None, None, 0, []),
         ("4", "u4", "l4", 204, 0.0, "running", 800.0, 100.0, None, 1, [])],
    ),
    "eagle-jobs": (
        "SELECT job, gpus, nodes, cpus, state, epoch(submit_ts), wait_s, run_sum_s, time_limit_s, quirks FROM jobs "
        "ORDER BY job",
        [("7", 4.0, 2, 72, "completed", 1546358155.0, 60.0, 600.0, 3600, []),
         ("7/4", 4.0, 2, 72, "failed", 1546358155.0, 120.0, 60.0, 3600, ["task_of_an_array"]),
         ("8", 0.0, 2, 72, "timeout", 1546358155.0, 60.0, 3600.0, 3600, []),
         ("9", 1.0, 2, 72, "killed", 1546358155.0, None, None, 3600, [])],
    ),
    "lassen-jobs": (JOBS, [
        ("11", "u1", "pbatch", 8.0, None, 2, "completed", 1551463200.0, 60.25, 3600.5, ["gpus_of_its_nodes"]),
        ("12", "u1", "pbatch", 4.0, None, 1, "failed", 1551463200.0, 60.0, 60.0, ["gpus_of_its_nodes"]),
    ]),
    "adastra-jobs": ("SELECT job, gpus, nodes, state, wait_s, run_sum_s, time_limit_s FROM jobs ORDER BY job", [
        ("1", None, 4, "completed", 30.0, 3600.0, 7200), ("2", None, 1, "timeout", 30.0, 7200.0, 7200),
    ]),
    "torque-accounting": (
        'SELECT job, "user", account, gpus, nodes, cpus, state, epoch(submit_ts), wait_s, run_sum_s, time_limit_s '
        "FROM jobs ORDER BY job",
        [("11", "u1", "a1", 2.0, 2, 32, "completed", 1490660000.0, 1060.0, 600.0, 3600),
         ("12[3]", "u1", "a1", 4.0, 3, 32, "timeout", 1490660000.0, 1060.0, 3600.0, 3600),
         ("13", "u1", "a1", 0.0, 1, 32, "timeout", 1490660000.0, 1060.0, 60.0, 86400)],
    ),
    "themis-jobs": (SIZES, [("1", 4.0, 0.0, 62.5, "pending", 0), ("2", 1.0, 60.5, 10.0, "pending", 0)]),
    "alcf-jobs": ("SELECT job, gpus, nodes, state, wait_s, run_sum_s FROM jobs ORDER BY job", [
        ("1001", None, 10, "completed", 600.0, 3600.0), ("1002", None, 4, "failed", 600.0, 3600.0),
    ]),
    "alibaba-asi": ("SELECT job, queue, gpus, state, submit_ts, wait_s, run_sum_s, quirks FROM jobs ORDER BY job", [
        ("p1", "HP", 8.0, "completed", None, 12.5, 7200.0, ["no_times"]),
        ("p2", "LP", 0.5, "running", None, None, 900.0, ["no_times"]),
    ]),
    "acme-util": ("SELECT machine, epoch(ts), util::INTEGER[] FROM gpu_samples ORDER BY ts LIMIT 2", [
        ("10.140.1.10", 1688169600.0, [0, 100]), ("10.140.1.10", 1688169615.0, [10, 100]),
    ]),
    "llm-azure": (LOAD, [
        ("AzureLLMInferenceTrace_code", pytest.approx(1700158623.97996, abs=1e-6), 0.0, 1.0, 4808, 10, None),
        ("AzureLLMInferenceTrace_code", pytest.approx(1700158624.03196, abs=1e-6), 0.0, 1.0, 3180, 8, None),
        ("AzureLLMInferenceTrace_code", 1700158625.0, 0.0, 1.0, 110, 27, None),
    ]),
    "llm-burstgpt": (LOAD, [
        ("ChatGPT", 5.0, 0.0, 1.0, 472, 18, 0.0), ("GPT-4", 45.5, 0.0, 1.0, 1087, 0, 1.0),
    ]),
    "llm-mooncake": (LOAD, [("conversation_trace", 3.0 * k, 0.0, 1.0, 100 + k, k, None) for k in range(4)]),
    "alibaba-genai-requests": (LOAD, [
        ("TXT_2_IMG", 1731661070.0, 0.0, 1.0, None, None, 0.0), ("TXT_2_IMG", 1731665774.0, 0.0, 1.0, None, None, 1.0),
    ]),
    "alibaba-genai-qps": (LOAD, [
        ("API Requests", 1662859176.0, 57.0, pytest.approx(5.7), None, None, None),
        ("API Requests", 1662859233.0, 57.0, 114.0, None, None, None),
    ]),
    "alibaba-genai-gpu-util": ("SELECT machine, epoch(ts), util FROM gpu_samples ORDER BY ts", [
        ("c1", 1662858720.0, [0.0]), ("c1", 1662858777.0, [55.5]),
    ]),
    "kube-objects": ("SELECT job, queue, gpus, gpu_type, state, wait_s, run_sum_s, attempts FROM jobs ORDER BY job", [
        ("team/a", "cq", 8.0, "a100", "completed", 30.0, 3510.0, 1),
        ("team/b", "cq", 2.0, "a100", "failed", 30.0, 3450.0, 1),
        ("team/c", "cq", 16.0, "a100", "running", 30.0, None, 1),
        ("team/mpi", "gold", 8.0, None, "completed", 600.0, 3000.0 + 5400.0, 2),
    ]),
}  # fmt: skip


def loaded(folder: Path, files: dict[str, str], name: str = "trace.duckdb", **options: Any) -> Store:
    """A store of some files."""
    place = folder / name.replace(".", "-")
    place.mkdir()
    for file, text in files.items():
        (place / file).write_text(text, newline="")
    report = ingest([place], folder / name, **options)
    for source in report.sources:
        assert source.rows_in == source.rows_loaded + source.rows_already_stored + source.rows_rejected, source
    return Store(folder / name)


def test_every_trace_has_figures_worked_out_by_hand() -> None:
    in_several = {"pai-jobs", "pai-tasks", "pai-instances", "pai-groups"}
    assert TRACES.keys() == EXPECTED.keys() | in_several


@pytest.mark.parametrize("name", EXPECTED)
def test_rows(name: str, tmp_path: Path) -> None:
    sql, rows = EXPECTED[name]
    with loaded(tmp_path, dict([TRACES[name]])) as store:
        assert store.execute("SELECT DISTINCT format, rows_rejected FROM sources").fetchall() == [(name, 0)]
        assert store.execute(sql).fetchall() == rows
        stored = store.execute("SELECT epoch, unit FROM clusters").fetchall()
    fmt = FORMATS[name]
    epoch = "real" if name == "swf" else fmt.epoch
    assert stored == [(None if epoch == "real" else epoch, None if fmt.unit == "job" else fmt.unit)]


@pytest.mark.parametrize("name", TRACES)
def test_a_file_that_is_cut_anywhere_loses_no_row(name: str, tmp_path: Path) -> None:
    from tests.philly_log import load as load_one

    file, text = TRACES[name]
    data, fmt = text.encode(), FORMATS[name]
    with Store(tmp_path / "trace.duckdb", write=True) as store:
        for at in range(1, len(data), max(1, len(data) // 5)):
            try:
                sink = load_one(fmt, data[:at], store)
            except InputError:
                continue
            assert sink.rows_in == sink.rows_loaded + sink.rows_already_stored + len(sink.rejects), (file, at)


def test_jobs_of_pai_are_made_of_all_its_tables(tmp_path: Path) -> None:
    files = dict(TRACES[name] for name in ("pai-jobs", "pai-tasks", "pai-instances", "pai-groups", "pai-machines"))
    sql = (
        'SELECT right(job, 1), "user", account, name, gpus, cpus, nodes, gpu_type, state, epoch(submit_ts), '
        "wait_s, run_sum_s, attempts, quirks FROM jobs ORDER BY job"
    )
    with loaded(tmp_path, files) as store:
        assert store.execute(sql).fetchall() == [
            ("0", "user0", "g1", "nmt", 1.0, 12, 2, "V100", "completed", 4550000.0, 60.0, 940.0, 1, []),
            # its only instance has no start: that of its task
            ("1", "user1", "g2", None, 4.0, 6, 1, "V100", "failed", 4550100.0, None, 950.0, 1, ["start_before_submit"]),
            ("2", "user0", None, None, 0.0, 24, 1, "V100", "running", 4550200.0, None, None, 1,
             ["start_before_submit"]),
            ("3", None, None, None, None, None, None, None, "pending", None, None, None, 0,
             ["not_in_job_table", "not_in_task_table"]),
        ]  # fmt: skip
        placed = "SELECT machine, gpus FROM placements ORDER BY machine"
        assert store.execute(placed).fetchall() == [("m1", 0.5), ("m2", 0.5)]
        assert store.value("SELECT epoch FROM clusters") == "shifted"
    # told once more, they are the same; so are jobs of another file
    (tmp_path / "trace-duckdb" / TRACES["pai-simulator"][0]).write_text(TRACES["pai-simulator"][1])
    ingest([tmp_path / "trace-duckdb"], tmp_path / "trace.duckdb", cluster="trace-duckdb")
    with Store(tmp_path / "trace.duckdb") as store:
        assert store.value("SELECT count(*) FROM jobs") == 4 + 2
        assert store.value("SELECT count(*) FROM attempts") == 3


def test_extensions_of_swf_are_identified_by_their_shape(tmp_path: Path) -> None:
    with loaded(tmp_path, {"wagap.swf": METACENTRUM}, "m.duckdb") as store:
        assert store.execute("SELECT job, queue, epoch(submit_ts), wait_s FROM jobs ORDER BY job").fetchall() == [
            (str(k), f"q_{k}d", 1356996147.0 + k, 10.0) for k in range(3)
        ]
        assert store.execute("SELECT job, machine FROM placements ORDER BY ALL").fetchall() == [
            ("0", "12"), ("1", "12"), ("1", "13"), ("2", "14"),
        ]  # fmt: skip
        assert store.value("SELECT epoch FROM clusters") is None
    with loaded(tmp_path, {"frontier.swf": FRONTIER}, "f.duckdb") as store:
        assert store.execute("SELECT gpus, nodes, cpus FROM jobs").fetchall() == [(64.0, 8, None)]
        assert store.value("SELECT epoch FROM clusters") == "relative"
    with loaded(tmp_path, {"dag.swf": ALEA}, "a.duckdb") as store:
        assert store.execute("SELECT job, cpus, run_sum_s FROM jobs ORDER BY job").fetchall() == [
            ("1", 1, 2400.0), ("2", 1, 2400.0),
        ]  # fmt: skip


def test_blanks_of_swf_are_squeezed_as_a_regular_expression_does() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        data = bytes(rng.choices(b"  \n1a", k=rng.randrange(14))) + b"\n"
        assert _squeezed(data) == re.sub(rb"(?m)^ +| +$", b"", re.sub(b" +", b" ", data))


@pytest.mark.parametrize("before", [0, 1, BLOCK - 2, BLOCK - 1, BLOCK, 2 * BLOCK - 1])
def test_two_line_ends_are_found_wherever_blocks_meet(before: int) -> None:
    assert has_twice(b"x" * before + b"\n\n" + b"x" * BLOCK, b"\n")
    assert not has_twice(b"x" * before + b"\nx\n" + b"x" * BLOCK, b"\n")


def test_rows_of_swf_that_are_none(tmp_path: Path) -> None:
    good = SWF.splitlines()[-1]
    bad = [
        "1 2 3",
        good.replace(" 100 ", " x ", 1),
        good.replace("4 240", "-1 240", 1),
        f"{good} a b c d e",
        "\xff" + good,
    ]
    with loaded(tmp_path, {"bad.swf": SWF + "\n".join(bad) + f"\n{good}\n"}) as store:
        found = store.execute("SELECT line_no, reason FROM rejects ORDER BY line_no").fetchall()
        first = SWF.count("\n") + 1
        assert [line - first for line, _ in found] == [0, 1, 2, 3, 4]
        assert store.value("SELECT rows_already_stored FROM sources") == 1
        assert [reason for _, reason in found][:4] == [
            "not 18 cells", "cell 4 is not a number", "no job number", "more than 22 cells",
        ]  # fmt: skip


def test_snapshots_of_a_job_of_kubernetes_are_put_together(tmp_path: Path) -> None:
    import json

    early = json.loads(json.dumps(VOLCANO_JOB))
    early["status"] = {
        "state": {"phase": "Running"},
        "conditions": [{"status": "Running", "lastTransitionTime": "2026-01-01T00:05:00Z"}],
    }
    events = [{"type": "ADDED", "object": early}, {"type": "MODIFIED", "object": VOLCANO_JOB}]
    text = "\n".join(json.dumps(event, indent=2) for event in events)
    with loaded(tmp_path, {"jobs.json": text}) as store:
        assert store.execute("SELECT rows_in, rows_loaded FROM sources").fetchall() == [(2, 2)]
        sql = "SELECT attempt, epoch(start_ts)::BIGINT % 86400, run_s, state FROM attempts ORDER BY attempt"
        assert store.execute(sql).fetchall() == [
            (0, 300, 300.0, "preempted"), (1, 600, 3000.0, "preempted"), (2, 5400, 5400.0, "completed"),
        ]  # fmt: skip
    with loaded(tmp_path, {"all.json": KUBE}, "all.duckdb") as store:
        assert store.execute(QUEUES).fetchall() == [("cq", 16.0, 24.0), ("gold", None, None)]
        assert store.execute(MACHINES).fetchall() == [("n1", 8, "A100", 64, 1048576)]


def test_admission_and_ready_pods_are_one_start(tmp_path: Path) -> None:
    import json

    whole = json.loads(KUBE)["items"][0]
    since = {
        "Admitted": "2026-01-01T00:10:00Z",
        "PodsReady": "2026-01-01T00:11:00Z",
        "Finished": "2026-01-01T01:00:00Z",
    }
    transitions = [{"type": name, "status": "True", "lastTransitionTime": stamp} for name, stamp in since.items()]
    events = [whole | {"status": {"conditions": transitions[:count]}} for count in (1, 2)]
    # the pods of the last one were not ready for a while
    again = [transitions[0], transitions[1] | {"lastTransitionTime": "2026-01-01T00:20:00Z"}, transitions[2]]
    for name, last in (("a", transitions), ("b", again)):
        text = "\n".join(json.dumps(one, indent=2) for one in [*events, whole | {"status": {"conditions": last}}])
        with loaded(tmp_path, {"jobs.json": text}, f"{name}.duckdb") as store:
            sql = "SELECT epoch(start_ts)::BIGINT % 86400, wait_s, run_s, state FROM attempts"
            assert store.execute(sql).fetchall() == [(660, 600.0, 2940.0, "unknown")]
            assert store.execute("SELECT quirks FROM jobs").fetchall() == [([],)]


@pytest.mark.parametrize(
    ("name", "path", "value", "reason"),
    [
        ("kube-objects", ("metadata", "creationTimestamp"), {}, "a time is not as RFC 3339 has it"),
        ("kube-objects", ("status", "admission", "podSetAssignments"), [{"flavors": ["x"]}], "flavors is no object"),
        ("batsim-workload", ("walltime",), [1], "walltime is not a number, 0 or more"),
        ("batsim-workload", ("profile",), [], "profile is neither a number nor a text"),
    ],
)
def test_lists_and_objects_in_place_of_values_spoil_one_row(
    name: str, path: tuple[str, ...], value: object, reason: str, tmp_path: Path
) -> None:
    import json

    file, text = TRACES[name]
    document = json.loads(text)
    place = document["items" if "items" in document else "jobs"][0]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with loaded(tmp_path, {file: json.dumps(document)}) as store:
        assert [r for (r,) in store.execute("SELECT reason FROM rejects").fetchall()] == [reason]
        assert store.value("SELECT count(*) FROM jobs") == len(EXPECTED[name][1]) - 1


def test_a_second_variant_of_a_trace_adds_nothing(tmp_path: Path) -> None:
    untimed = "\n".join(",".join(line.split(",")[:5]) for line in PODS.splitlines()) + "\n"
    with loaded(tmp_path, {"a.csv": PODS, "b.csv": untimed}) as store:
        sql = "SELECT rows_loaded, rows_already_stored + rows_rejected FROM sources ORDER BY source"
        assert store.execute(sql).fetchall() == [(5, 0), (0, 5)]
    with loaded(tmp_path, {"b.csv": untimed}, "b.duckdb") as store:
        assert store.value("SELECT count(*) FROM jobs WHERE submit_ts IS NULL AND quirks = ['no_times']") == 5


def test_records_without_an_end_are_reported(tmp_path: Path) -> None:
    """Lines of other kinds are no rows, and neither is what is cut or has no time; a start without an end is kept."""
    file, text = TRACES["torque-accounting"]
    good = text.splitlines()[1]
    lines = [
        "no record", good.replace("ctime", "x").replace("qtime", "y"), good.replace("ctime=1490660000", "ctime=soon"),
        good.replace(";11.bw;", ";.bw;"), good.replace(" end=1490661660", "").replace(";11.", ";14."), good,
    ]  # fmt: skip
    with loaded(tmp_path, {file: text + "\n".join(lines) + "\n"}) as store:
        assert [reason for (reason,) in store.execute("SELECT reason FROM rejects ORDER BY line_no").fetchall()] == [
            "not DATE;KIND;JOB;KEY=VALUE ...", "neither ctime nor qtime is there",
            "ctime is not in seconds from 1970", "no job",
        ]  # fmt: skip
        assert store.execute("SELECT run_sum_s, state FROM jobs WHERE job = '14'").fetchall() == [(None, "completed")]
    bad = [{"job_id": "1"}, 7, {"job_id": "", "start_time": 0}]
    whole = [{"job_id": "3", "start_time": 0, "total_iterations": 1, "time_per_iteration": 1, "max_parallelism": n}
             for n in (1, 0, [], "1e99")]  # fmt: skip
    import json

    with loaded(tmp_path, {"t.json": json.dumps([whole[0], *bad, *whole[1:]], indent=1)}, "t.duckdb") as store:
        assert [reason for (reason,) in store.execute("SELECT reason FROM rejects ORDER BY line_no").fetchall()] == [
            "start_time is not a number, 0 or more", "not a JSON object", "job_id is no printable text",
            "max_parallelism is less than 1", "max_parallelism is not a number, 0 or more",
            "max_parallelism is not a number, 0 or more",
        ]  # fmt: skip


def test_events_of_borg_in_several_files_are_of_one_job(tmp_path: Path) -> None:
    text = TRACES["borg-collections"][1]
    head, *rows = text.splitlines(keepends=True)
    odd = (
        head
        + rows[0].replace(",2,,0,", ",2,,1,")
        + rows[0].replace(",0,1,", ",12,1,", 1)
        + rows[0].replace(",0,1,", ",,1,", 1)
    )
    parts = {"a.csv": head + "".join(rows[::2]), "b.csv": head + "".join(rows[1::2]), "c.csv": odd}
    sql, expected = EXPECTED["borg-collections"]
    with loaded(tmp_path, parts) as store:
        assert store.execute(sql).fetchall() == expected
        assert store.value("SELECT count(*) FROM attempts") == 3
        assert [reason for (reason,) in store.execute("SELECT reason FROM rejects ORDER BY line_no").fetchall()] == [
            "an alloc set, a reservation and no job", "type is no event of a collection", "type is empty",
        ]  # fmt: skip


def test_steps_of_gavel_have_a_length_where_speeds_are_there(tmp_path: Path) -> None:
    """On V100s, else on the fastest type that runs the job at all, whatever is loaded first, and once more the same."""
    file, speeds = TRACES["gavel-speeds"]
    job = "ResNet-18 (batch size 128)\tpython3 main.py\tcifar10\t--num_steps\t1\t{steps}\t{gpus}\t1\t-1.000000\t{at}\n"
    trace = "".join(job.format(steps=1000 * k, gpus=k, at=10 * k) for k in (1, 2, 4))
    sql = "SELECT job, run_sum_s, run_last_s, quirks FROM jobs ORDER BY job"
    known = [("0", 125.0, 125.0, ["run_time_of_steps"]), ("1", 400.0, 400.0, ["run_time_of_steps"]),
             ("2", None, None, ["work_in_steps"])]  # fmt: skip
    with loaded(tmp_path, {"a.trace": trace, file: speeds}) as store:
        assert store.execute(sql).fetchall() == known
    with loaded(tmp_path, {"a.trace": trace}, "later.duckdb") as store:
        assert [run for _, run, _, _ in store.execute(sql).fetchall()] == [None] * 3
    (tmp_path / file).write_text(speeds)
    for _ in range(2):
        ingest([tmp_path / file], tmp_path / "later.duckdb", cluster="later-duckdb")
        with Store(tmp_path / "later.duckdb") as store:
            assert store.execute(sql).fetchall() == known
    bad = {"v100": {"('a', 0)": {"null": 1.0}, "a": {"null": 1.0}, "('a', 1)": {"x": 1.0}, "('b', 1)": {"null": 2.0}}}
    import json

    (tmp_path / "bad.json").write_text(json.dumps(bad).replace('{"v100": {', '{"v100": {"(\'c\', 1)": {"null": 1.0}, '))
    report = ingest([tmp_path / "bad.json"], tmp_path / "bad.duckdb")
    assert [(s.rows_in, s.rows_loaded, s.rows_rejected) for s in report.sources] == [(5, 2, 3)]


def test_parquet_is_a_container(tmp_path: Path) -> None:
    import polars as pl

    frame = pl.read_csv(TRACES["pm100-jobs"][1].encode(), infer_schema=False).with_columns(
        pl.col("job_id").cast(pl.Int64),
        pl.col("submit_time", "start_time", "end_time").str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z"),
        pl.lit("a\n,b").alias("partition"),
        power=pl.lit([1.0, 2.0]),
    )
    frame.write_parquet(tmp_path / "job_table.parquet")
    whole = (tmp_path / "job_table.parquet").read_bytes()
    ingest([tmp_path / "job_table.parquet"], tmp_path / "p.duckdb")
    with Store(tmp_path / "p.duckdb") as store:
        assert store.execute(EXPECTED["pm100-jobs"][0]).fetchall() == EXPECTED["pm100-jobs"][1]
        assert store.execute("SELECT DISTINCT queue FROM jobs").fetchall() == [("a ,b",)]
    (tmp_path / "cut.parquet").write_bytes(whole[:-10])
    with pytest.raises(InputError, match="damaged Parquet"):
        ingest([tmp_path / "cut.parquet"], tmp_path / "q.duckdb")


def test_more_jobs_than_gpus_are_reported(tmp_path: Path) -> None:
    place = tmp_path / "spot"
    place.mkdir()
    for name in ("alibaba-spot-nodes", "alibaba-spot-jobs"):
        file, text = TRACES[name]
        # 2 GPUs for 2 764 799 s and half a one for 600 s, of 4, submitted within 60 s
        (place / file).write_text(text)
    report = ingest([place], tmp_path / "s.duckdb")
    share = (2 * 2764799 + 0.5 * 600) / 60 / 4
    assert report.warnings == (
        f"jobs ask for {100 * share:.0f} % of the 4 GPUs of type A10 on average: a replay of them never drains",
    )


def test_tables_of_pai_without_their_names(tmp_path: Path) -> None:
    place = tmp_path / "pai"
    place.mkdir()
    for k, name in enumerate(("pai-jobs", "pai-tasks", "pai-instances")):
        (place / f"part{k}.csv").write_text(TRACES[name][1])
    (place / "part3.csv").write_text("ab" * 12 + ",V100,96,512,8\n")
    (place / "part4.csv").write_text("ab" * 30 + ",user0,V100M32,g1,nmt\n")
    report = ingest([place], tmp_path / "s.duckdb")
    assert {s.path.rpartition("/")[2]: s.format for s in report.sources} == {
        "part0.csv": "pai-jobs", "part1.csv": "pai-tasks", "part2.csv": "pai-instances", "part3.csv": "pai-machines",
        "part4.csv": "pai-groups",
    }  # fmt: skip


def test_chronus_counts_in_minutes(tmp_path: Path) -> None:
    """Its column of deadlines tells its files from those of Tiresias, wherever the column stands."""
    rows = "job_id,{}num_gpu,submit_time,model_name,duration\n7,{}2,1440,vgg16,90\n"
    for name, column, cell, scale in (("a", "", "", 1), ("b", "expect_time_list,", "60-90,", 60)):
        with loaded(tmp_path, {f"{name}.csv": rows.format(column, cell)}, f"{name}.duckdb") as store:
            assert store.execute("SELECT epoch(submit_ts), run_sum_s FROM jobs").fetchall() == [
                (1440.0 * scale, 90.0 * scale)
            ]


def test_deadlines_of_elasticflow_and_chronus(tmp_path: Path) -> None:
    """ElasticFlow's are seconds of the file's clock, Chronus's minutes after submission; best effort has none."""
    texts = {
        "elasticflow": "job_id,submit_time,model_name,ddl,num_gpu,duration,best_effort\n"
        "1,100,vgg16,400,1,90,0\n2,100,vgg16,500,1,90,1\n3,100,vgg16,,1,90,0\n",
        "chronus": "job_id,num_gpu,submit_time,model_name,duration,expect_time_list,expect_value_list,job_type\n"
        "1,1,10,vgg16,90,5,10,strict\n2,1,10,vgg16,90,5-6.5-9,10-8-5,soft\n3,1,10,vgg16,90,5,10,best\n"
        "4,1,10,vgg16,90,,,strict\n5,1,10,vgg16,90,5-x,10-1,soft\n",
    }
    sql = "SELECT job, epoch(deadline_ts), quirks FROM jobs ORDER BY job"
    found = {}
    for name, text in texts.items():
        with loaded(tmp_path, {f"{name}.csv": text}, f"{name}.duckdb") as store:
            found[name] = store.execute(sql).fetchall()
            faults = store.execute("SELECT reason FROM rejects").fetchall()
    # Shockwave's: a multiple of the run time, below 0 none
    line = "ResNet-18 (batch size 32)\tpython3 main.py\timage\t--num_steps\t0\t100\t1\tstatic\t1\t{}\t200\t50\n"
    with loaded(tmp_path, {"slo.trace": line.format("1.5") + line.format("-1.000000")}, "slo.duckdb") as store:
        assert store.execute(sql).fetchall() == [("0", 350, []), ("1", None, [])]
    assert found["elasticflow"] == [("1", 400, []), ("2", None, []), ("3", None, [])]
    assert found["chronus"] == [("1", 900, []), ("2", 900, ["soft_deadline"]), ("3", None, []), ("4", None, [])]
    assert faults == [("expect_time_list is not minutes with - between them",)]


@pytest.mark.parametrize("name", ["batsim-jobs", "batsim-workload"])
def test_batsims_processors_are_what_the_user_says(tmp_path: Path, name: str) -> None:
    """As those of SWF: cores, GPUs or nodes, each alone."""
    file, text = TRACES[name]
    (tmp_path / file).write_text(text)
    found = {}
    for unit in (None, "core", "gpu", "node"):
        ingest([tmp_path / file], tmp_path / f"{unit}.duckdb", cluster="c", formats=formats_for(None, swf_unit=unit))
        with Store(tmp_path / f"{unit}.duckdb") as store:
            found[unit] = store.execute("SELECT sum(gpus), sum(cpus), sum(nodes) FROM jobs").fetchall()
    procs = {"batsim-jobs": 6, "batsim-workload": 15}[name]
    assert found[None] == found["core"] == [(0, procs, None)]
    assert (found["gpu"], found["node"]) == ([(procs, None, None)], [(0, None, procs)])
    with pytest.raises(UsageError, match="expected one of core, gpu, node"):
        formats_for(None, swf_unit="socket")
