"""Job histories of MapReduce, written by Hadoop 3.3.4's own EventWriter: as JSON, as binary Avro, and cut off."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.read.avro import CUT_OFF, DAMAGED, records
from tests.example_files import FIXTURES
from tests.unit.ingest.batch.loaded import COUNTS, ask, load

if TYPE_CHECKING:
    from pathlib import Path

AS_JSON, BINARY = "job_1800000000000_0011-json.jhist", "job_1800000000000_0012-binary.jhist"
FIELDS = 'job, queue, "user", name, state, gpus, nodes, cpus, mem_mb, wait_s, run_sum_s, reason'
JOBS = f"SELECT {FIELDS} FROM jobs ORDER BY job"
# as the program that wrote the fixtures set them: two maps of 3 cores and 2048 MiB, and the second job's out of memory
WANT: list[tuple[Any, ...]] = [
    ("application_1800000000000_0011", "root.vision", "eve", "sort", "completed", None, 2, 6, 4096, 21, 414, None),
    (
        *("application_1800000000000_0012", "root.vision", "eve", "fit", "failed", None, 2, None, None, 21, 184),
        "Task failed task_m_000001",
    ),
]


def data(name: str) -> bytes:
    """A fixture."""
    return (FIXTURES / "yarn/jhist" / name).read_bytes()


def test_both_encodings_give_what_was_written(tmp_path: Path) -> None:
    store, _ = load(tmp_path, {name: data(name) for name in (AS_JSON, BINARY)})
    assert ask(store, JOBS) == WANT
    sql = (
        "SELECT right(container, 12), machine, is_master, cpus, epoch(allocated_ts) - 1800000000, "
        "CASE WHEN NOT is_master THEN reason END FROM containers"
    )
    assert ask(store, f"{sql} ORDER BY container") == [
        ("11_01_000001", "n1", True, None, 5, None), ("11_01_000002", "n1", False, 3, 20, None),
        ("11_01_000003", "n2", False, 3, 21, None), ("11_01_000004", "n3", False, 1, 330, None),
        ("12_01_000001", "n1", True, None, 5, None), ("12_01_000002", "n1", False, None, 20, None),
        ("12_01_000003", "n2", False, None, 21, "Error: java.lang.OutOfMemoryError: Java heap space"),
    ]  # fmt: skip


def test_gpus_come_from_the_resource_manager(tmp_path: Path) -> None:
    app = {
        **{"id": WANT[0][0], "state": "FINISHED", "finalStatus": "SUCCEEDED", "startedTime": 1_800_000_000_500},
        **{"finishedTime": 1_800_001_021_000, "user": "eve", "queue": "root.vision"},
        "resourceSecondsMap": {"entry": [{"key": "memory-mb", "value": "1"}, {"key": "vcores", "value": "1"},
                                         {"key": "yarn.io/gpu", "value": "2000"}]},
    }  # fmt: skip
    store, _ = load(tmp_path, {AS_JSON: data(AS_JSON), "apps.json": json.dumps({"apps": {"app": [app]}})})
    assert ask(store, "SELECT wait_s, gpus, run_sum_s, quirks FROM jobs") == [(20.5, 2, 1000, ["gpus_estimated"])]


def test_a_history_that_is_cut_off_gives_its_first_events(tmp_path: Path) -> None:
    store, _ = load(tmp_path, {"a.jhist": data(BINARY)[:-40]})
    assert ask(store, COUNTS) == [(11, 10, 0, 1)]
    assert [(row[4], row[9]) for row in ask(store, JOBS)] == [("running", 21)]
    assert ask(store, "SELECT reason FROM rejects") == [(CUT_OFF,)]


# examples of https://avro.apache.org/docs/1.11.1/specification/#binary-encoding
RECORD = {"type": "record", "name": "test", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}


@pytest.mark.parametrize(
    ("schema", "encoded", "value"),
    [
        ("int", "01", -1),
        ("int", "7f", -64),
        ("long", "8001", 64),
        ("string", "06666f6f", "foo"),
        (RECORD, "3606666f6f", {"a": 27, "b": "foo"}),
        ({"type": "array", "items": "long"}, "04063600", [3, 27]),
        ({"type": "array", "items": "long"}, "0304063600", [3, 27]),
        (["null", "string"], "020261", "a"),
        ({"type": "enum", "name": "Foo", "symbols": ["A", "B", "C", "D"]}, "06", "D"),
    ],
)
def test_avro_is_decoded_as_its_specification_has_it(schema: Any, encoded: str, value: Any) -> None:
    assert list(records(io.BytesIO(bytes.fromhex(encoded * 3)), schema)) == [value] * 3


@pytest.mark.parametrize(("encoded", "why"), [("08", DAMAGED), ("ff" * 10, DAMAGED), ("80", CUT_OFF)])
def test_bytes_that_fit_no_schema_are_one_fault(encoded: str, why: str) -> None:
    schema = {"type": "enum", "name": "Foo", "symbols": ["A", "B", "C", "D"]}
    [fault] = records(io.BytesIO(bytes.fromhex(encoded)), schema)
    assert isinstance(fault, RowError)
    assert str(fault) == why
