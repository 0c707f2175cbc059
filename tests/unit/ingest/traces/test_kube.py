"""Workloads of Kueue and jobs of Volcano: every form that kubectl prints, and every stage of their lives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.formats import kube_objects
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.traces.kube import quantity, requests
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DAY = "2026-03-02T{}Z"
TIMES = "epoch(start_ts)::BIGINT % 86400, epoch(end_ts)::BIGINT % 86400"
JOBS = f"SELECT job, gpus, state, {TIMES}, attempts FROM jobs ORDER BY job"


def condition(kind: str, status: str, at: str, reason: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "lastTransitionTime": DAY.format(at), "reason": reason or kind}


def workload(name: str, gpus: object, conditions: Iterable[object] | None, **status: object) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": name, "namespace": "ml", "creationTimestamp": DAY.format("00:00:00")},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 3, "template": {"spec": pod}}]},
        "status": status | ({} if conditions is None else {"conditions": list(conditions)}),
    }  # fmt: skip


def volcano(name: str, phase: str | None, conditions: list[tuple[str, str]] | None) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": 2}}}]}
    transitions = [{"status": kind, "lastTransitionTime": DAY.format(at)} for kind, at in conditions or ()]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": name, "namespace": "ml", "creationTimestamp": DAY.format("00:00:00")},
        "spec": {"tasks": [{"name": "w", "replicas": 4, "template": {"spec": pod}}]},
        "status": {"state": {"phase": phase}, "conditions": transitions} if phase else {},
    }  # fmt: skip


RESERVED, ADMITTED = condition("QuotaReserved", "True", "00:01:00"), condition("Admitted", "True", "00:01:00")
PODS_READY = condition("PodsReady", "True", "00:02:00")
ENDED = condition("Finished", "True", "01:02:00", "Succeeded")
OBJECTS = [
    workload("done", "2", [RESERVED, ADMITTED, PODS_READY, ENDED]),
    workload("waits", 1, [condition("QuotaReserved", "False", "00:03:00", "Pending")]),
    volcano("waits too", "Pending", [("Pending", "00:00:01")]),
]
ROWS = [
    ("ml/done", 6.0, "completed", 120, 3720, 1),
    ("ml/waits", 3.0, "pending", None, None, 0),
    ("ml/waits too", 8.0, "pending", None, None, 0),
]


def rows(text: str, folder: Path, sql: str = JOBS) -> list[tuple[Any, ...]]:
    folder.mkdir()
    (folder / "objects.json").write_text(text)
    [source] = ingest([folder / "objects.json"], folder / "t.duckdb", cluster="c").sources
    assert (source.rows_rejected, source.rows_in) == (0, source.rows_loaded)
    with Store(folder / "t.duckdb") as store:
        return store.execute(sql).fetchall()


def test_whatever_kubectl_wraps_objects_in_they_are_the_same(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": OBJECTS}
    bare = [{k: v for k, v in one.items() if k not in {"kind", "apiVersion"}} for one in OBJECTS]
    typed = [
        {"items": some, "metadata": {"resourceVersion": "7"}, "kind": f"{kind}List", "apiVersion": api}
        for some, kind, api in (
            (bare[:2], "Workload", "kueue.x-k8s.io/v1beta2"),
            (bare[2:], "Job", "batch.volcano.sh/v1"),
        )
    ]
    events = [{"type": "ADDED", "object": one} for one in OBJECTS]
    forms = {
        "items last": json.dumps(listed),
        "items first": json.dumps(dict(reversed(listed.items()))),
        "items in front of the kind": json.dumps({"apiVersion": "v1", "items": OBJECTS, "kind": "List"}, indent=4),
        "a typed list behind another": "".join(json.dumps(one) for one in typed),
        "a typed list on each line": "\n".join(json.dumps(dict(reversed(one.items()))) for one in typed),
        "one list behind another": "\n".join(json.dumps({"items": [one], "kind": "List"}, indent=1) for one in OBJECTS),
        "objects on lines": "\n".join(map(json.dumps, OBJECTS)),
        "watch events": "\n".join(json.dumps(one, indent=2) for one in events),
        "an array": json.dumps(OBJECTS),
        "a list and an object": json.dumps({"items": OBJECTS[1:], "kind": "List"}) + "\n" + json.dumps(OBJECTS[0]),
    }
    for form, text in forms.items():
        assert rows(text, tmp_path / form) == ROWS, form


def test_a_long_list_that_states_its_kind_last_is_recognised(tmp_path: Path) -> None:
    bare = [{k: v for k, v in OBJECTS[0].items() if k not in {"kind", "apiVersion"}}] * 300
    many = [one | {"metadata": one["metadata"] | {"name": f"w{k:03}"}} for k, one in enumerate(bare)]
    text = json.dumps({"items": many, "kind": "WorkloadList", "apiVersion": "kueue.x-k8s.io/v1beta1"})
    assert len(text) > 3 * 65_536
    assert rows(text, tmp_path / "many", "SELECT count(*), sum(gpus) FROM jobs") == [(300, 1800.0)]


def test_the_order_of_conditions_does_not_matter(tmp_path: Path) -> None:
    kueue = [ENDED, PODS_READY, condition("Evicted", "False", "00:00:30"), ADMITTED, RESERVED]
    history = [("Running", "03:00:00"), ("Pending", "00:00:00"), ("Completed", "04:00:00"), ("Running", "00:10:00"),
               ("Restarting", "02:00:00")]  # fmt: skip
    found = [
        rows(json.dumps([workload("a", 1, kueue[::step]), volcano("b", "Completed", history[::step])]), tmp_path / name)
        for step, name in ((1, "as listed"), (-1, "reversed"))
    ]
    assert found[0] == found[1] == [
        ("ml/a", 3.0, "completed", 120, 3720, 1), ("ml/b", 8.0, "completed", 600, 14_400, 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "state", "spells", "quirks"),
    [
        (None, "pending", [], []),
        ([], "pending", [], []),
        ([RESERVED], "pending", [], []),
        ([RESERVED, ADMITTED], "running", [(60, None)], ["start_is_admission"]),
        # it holds its quota until it is not admitted any more
        (
            [ADMITTED, PODS_READY, condition("Evicted", "True", "00:30:00", "Preempted")],
            "running", [(120, None)], [],
        ),
        # evicted, and waiting again: when it started, nothing says
        (
            [condition("Admitted", "False", "00:31:00"), condition("Evicted", "True", "00:30:00")],
            "pending", [], ["earlier_attempts_lost"],
        ),
        # admitted once more
        (
            [ADMITTED, condition("Evicted", "False", "00:01:00"), condition("Requeued", "False", "00:00:59")],
            "running", [(60, None)], ["earlier_attempts_lost", "start_is_admission"],
        ),
    ],
)  # fmt: skip
def test_each_stage_of_a_workload(
    conditions: list[object] | None, state: str, spells: list[object], quirks: list[str], tmp_path: Path
) -> None:
    text = json.dumps(workload("w", "1", conditions))
    assert rows(text, tmp_path / "job", "SELECT state, attempts, quirks FROM jobs") == [(state, len(spells), quirks)]
    times = f"SELECT {TIMES} FROM attempts"
    assert rows(text, tmp_path / "attempts", times) == spells


def test_an_eviction_between_two_snapshots_ends_an_attempt(tmp_path: Path) -> None:
    evicted = [condition("Admitted", "False", "00:31:00"), condition("Evicted", "True", "00:30:00", "Preempted")]
    again = [condition("Admitted", "True", "00:40:00"), condition("Evicted", "False", "00:40:00"), ENDED]
    shots = [workload("w", 1, state) for state in ([RESERVED, ADMITTED], evicted, again)]
    text = "\n".join(json.dumps({"type": "MODIFIED", "object": one}) for one in shots)
    sql = f"SELECT {TIMES}, state FROM attempts ORDER BY attempt"
    assert rows(text, tmp_path / "a", sql) == [(60, 1860, "preempted"), (2400, 3720, "completed")]
    assert rows(text, tmp_path / "q", "SELECT quirks FROM jobs") == [(["start_is_admission"],)]


def test_missing_and_null_parts_are_unknown(tmp_path: Path) -> None:
    nothing = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "x"}}
    nulls = workload("y", None, None) | {"status": None}
    nulls["spec"] |= {"priority": None, "queueName": None, "maximumExecutionTimeSeconds": None}
    nulls["metadata"] |= {"ownerReferences": None, "labels": None}
    bare = volcano("z", None, None)
    text = json.dumps({"items": [nothing, nulls, bare, volcano("r", "Running", None)], "kind": "List"})
    sql = "SELECT job, gpus, state, queue, submit_ts IS NULL FROM jobs ORDER BY job"
    assert rows(text, tmp_path / "a", sql) == [
        ("ml/r", 8.0, "running", "default", False), ("ml/y", 0.0, "pending", None, False),
        ("ml/z", 8.0, "pending", "default", False), ("x", 0.0, "pending", None, True),
    ]  # fmt: skip


def test_a_workload_admitted_in_part_has_the_pods_that_it_got(tmp_path: Path) -> None:
    admission = {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": 2}]}
    text = json.dumps(workload("w", "4", [RESERVED, ADMITTED], admission=admission))
    assert rows(text, tmp_path / "a", "SELECT gpus, queue FROM jobs") == [(8.0, "cq")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2), (2, 2), (0.5, 0.5), ("500m", 0.5), ("1k", 1000), ("1e3", 1000), ("1E3", 1000), ("2E", None),
        (".5", 0.5),
        ("5.", 5), ("+1", 1), ("1Ki", 1024), ("1.5Gi", 1.5 * 2**30), ("1Pi", 2**50), ("100u", 1e-4), ("7n", 7e-9),
        ("", None), ("-1", None), ("1 Gi", None), ("1kk", None), (True, None), ([], None), ("1e99", None), ("٣", None),
    ],
)  # fmt: skip
def test_quantities_are_in_the_notation_of_kubernetes(text: object, value: float | None) -> None:
    if value is None:
        with pytest.raises(RowError):
            quantity(text)
    else:
        assert quantity(text) == pytest.approx(value)


def test_init_containers_run_before_the_others() -> None:
    def container(**requests: object) -> dict[str, object]:
        return {"resources": {"requests": {key.replace("_", "/"): value for key, value in requests.items()}}}

    spec = {
        "initContainers": [container(**{"nvidia.com_gpu": 4, "cpu": "1"}), container(cpu="5")],
        "containers": [container(**{"nvidia.com_gpu": 1, "cpu": "2"}), container(**{"nvidia.com_gpu": 1, "cpu": "2"})],
    }
    assert requests(spec) == (4, 5, 0, False)


def test_yaml_is_not_read_and_an_alternative_is_named() -> None:
    assert kube_objects.passes_over is not None
    reason = kube_objects.passes_over("w.yaml", b"apiVersion: kueue.x-k8s.io/v1beta1\nkind: Workload\n")
    assert "-o json" in (reason or "")
    assert kube_objects.passes_over("w.yaml", b"apiVersion: apps/v1\nkind: Deployment\n") is None
    # pods that a job owns are nothing that is read
    pods = b'{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"ownerReferences": [{"kind": "Job"}]}}]}'
    assert kube_objects.sniff("pods.json", pods) is None


def test_events_beside_objects_are_counted_and_nothing_is_read_of_them(tmp_path: Path) -> None:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "FailedScheduling"}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [volcano("v", "Pending", []), event]})
    assert rows(text, tmp_path / "q", "SELECT rows_in, rows_loaded, rows_rejected FROM sources") == [(2, 2, 0)]


def event(name: str, reason: str, first: str, last: str | None = None, *, new: bool = False) -> dict[str, Any]:
    about = {"kind": "Workload", "namespace": "ml", "name": name, "apiVersion": "kueue.x-k8s.io/v1beta1"}
    head = {"kind": "Event", "metadata": {"name": f"{name}.{first}", "namespace": "ml"}, "reason": reason}
    if new:
        stamp = DAY.format(first).replace("Z", ".250000Z")
        return {"apiVersion": "events.k8s.io/v1", **head, "regarding": about, "eventTime": stamp}
    stamps = {"firstTimestamp": DAY.format(first), "lastTimestamp": DAY.format(last or first), "eventTime": None}
    return {"apiVersion": "v1", **head, "involvedObject": about, **stamps}


RUNS = "SELECT epoch(start_ts)::BIGINT % 86400, epoch(end_ts)::BIGINT % 86400, state FROM attempts ORDER BY attempt"


def test_events_show_earlier_attempts_that_were_evicted(tmp_path: Path) -> None:
    """The workload itself shows its last attempt alone; events of other objects and of that attempt change nothing."""
    last = [condition("Admitted", "True", "02:00:00"), condition("PodsReady", "True", "02:01:00"),
            condition("Finished", "True", "03:00:00", "Succeeded"),
            condition("Evicted", "False", "02:00:00", "Preempted")]  # fmt: skip
    told = [
        event("a", "Admitted", "00:10:00"),
        event("a", "EvictedDueToPreempted", "00:30:00"),
        event("a", "Admitted", "00:40:00", new=True),
        event("a", "EvictedDueToPodsReadyTimeout", "01:00:00"),
        event("a", "Admitted", "02:00:01"),
        event("a", "Pending", "00:35:00"),
        event("another", "EvictedDueToPreempted", "00:20:00"),
    ]
    job = workload("a", 1, last)
    assert rows(json.dumps([job]), tmp_path / "alone", RUNS) == [(7260, 10_800, "completed")]
    want = [(600, 1800, "preempted"), (2400, 3600, "preempted"), (7260, 10_800, "completed")]
    for order in (1, -1):
        assert rows(json.dumps([*told, job][::order]), tmp_path / f"events {order}", RUNS) == want


def test_an_attempt_that_snapshots_and_events_show_is_one(tmp_path: Path) -> None:
    before = workload("a", 1, [condition("Admitted", "True", "00:10:00")])
    after = workload("a", 1, [condition("Admitted", "False", "00:30:00"), condition("Evicted", "True", "00:29:59")])
    told = [event("a", "Admitted", "00:10:01"), event("a", "EvictedDueToPreempted", "00:29:59")]
    assert rows(json.dumps([before, after]), tmp_path / "alone", RUNS) == [(600, 1800, "pending")]
    assert rows(json.dumps([before, after, *told]), tmp_path / "events", RUNS) == [(600, 1800, "pending")]
