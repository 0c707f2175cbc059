"""The same workload through every form of Slurm accounting gives the same jobs, attempts and placements.

What a form does not carry stands in `NOT_CARRIED`, with the reason, and nothing else may differ. An entry that nothing
needs any more fails, too.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.formats import slurm_dbd, slurm_jobcomp, slurm_json
from gpuctl.ingest.pipeline.registry import all_formats
from tests.philly_log import new_store
from tests.slurm_loading import FIXTURES, SHARED, load, rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpuctl.ingest.core.format import Format
    from gpuctl.store.database import Store

Table = dict[tuple[Any, ...], dict[str, Any]]
KEYS = {"jobs": ("job",), "attempts": ("job", "attempt"), "placements": ("job", "attempt", "machine")}
WHOLE = SHARED / "22.05.8"

FOLDED = "text of sacct until 25.05: codes of 128 and more stand there less 128"
UNRELIABLE = "22.05: 0 for whatever no signal ended, so NULL but for completed jobs"
TWICE = (
    "job 24 lost its node and ran again with the submission time it had: two records, where the others have the last"
)
REQUEUED = "requeue by exit code: FAILED, its state when the file was written"

ONE_OF_SEVERAL = "of several partitions asked for, which one it got"
DATABASE_NAME = "nothing: the file has it right, and the database of 22.05 lost non-latin letters and quotes"

# (form, table, column): why the form does not carry it (for FOLDED: why the text does not)
NOT_CARRIED: dict[tuple[str, str, str], str] = {
    **{("json", table, f"exit_{part}"): UNRELIABLE for table in ("jobs", "attempts") for part in ("code", "signal")},
    **{("json", "jobs", f"derived_exit_{part}"): UNRELIABLE for part in ("code", "signal")},
    **{("json", table, "source_state"): "who cancelled it is a name, not a number" for table in ("jobs", "attempts")},
    **{("json", table, "quirks"): f"{UNRELIABLE}; {FOLDED}" for table in ("jobs", "attempts")},
    **{(f, "attempts", c): "it has no Elapsed" for f in ("dbd", "jobcomp") for c in ("stated_gpu_s", "elapsed_s")},
    **{("jobcomp", "attempts", c): "what was allocated" for c in ("billing", "gpus_by_type")},
    **{(form, "attempts", "started_as"): "this release has no submit_line" for form in ("json", "jobcomp")},
    ("jobcomp", "attempts", "suspended_s"): "how long a job was suspended",
    ("dbd", "jobs", "user"): "this dump has no assoc_table: the number of the user on the system",
    ("dbd", "jobs", "qos"): "this dump has no qos_table",
    ("dbd", "jobs", "exit_code"): FOLDED,
    ("dbd", "attempts", "exit_code"): FOLDED,
    ("dbd", "jobs", "quirks"): FOLDED,
    ("jobcomp", "jobs", "exit_code"): FOLDED,
    ("jobcomp", "attempts", "exit_code"): FOLDED,
    ("jobcomp", "jobs", "quirks"): f"all GPUs are those asked for (gpus_requested); {FOLDED}",
    ("json", "jobs", "gpu_type_request"): "nothing: the text lacks Constraints",
    ("dbd", "jobs", "gpu_type_request"): "nothing: the text lacks Constraints",
    ("jobcomp", "jobs", "gpu_type_request"): "what was allocated, as of jobs that asked for whole nodes and no GPU",
    ("jobcomp", "attempts", "quirks"): "how long a job was suspended",
    **{("jobcomp", table, "source_state"): f"who cancelled it; {REQUEUED}; {TWICE}" for table in ("jobs", "attempts")},
    ("jobcomp", "attempts", "state"): f"{REQUEUED}; {TWICE}",
    **{("jobcomp", table, "reason"): "why it waited" for table in ("jobs", "attempts")},
    ("jobcomp", "attempts", "started_by"): "which scheduler started it",
    ("jobcomp", "jobs", "priority"): "priority",
    ("jobcomp", "jobs", "gpu_type"): "types but those asked for",
    **{("jobcomp", table, "gpus"): "GPUs given beyond those asked for" for table in KEYS},
    ("jobcomp", "placements", "estimated"): "GPUs given beyond those asked for",
    ("jobcomp", "jobs", "mem_mb"): "memory given beyond that asked for",
    **{("jobcomp", "jobs", name): ONE_OF_SEVERAL for name in ("queue", "partition")},
    ("jobcomp", "jobs", "name"): DATABASE_NAME,
    **{
        ("jobcomp", "attempts", name): TWICE
        for name in ("start_ts", "end_ts", "released_ts", "wait_s", "run_s")
    },
    **{
        ("jobcomp", "jobs", name): TWICE
        for name in ("start_ts", "attempts", "wait_s", "run_span_s", "run_sum_s")
    },
}  # fmt: skip
NEVER_ELIGIBLE = {"63", "64"}
"""Cancelled without ever having been eligible: sacct leaves them out of any period, unless asked for by state."""


def _text_format(head: bytes) -> Format:
    (found,) = (fmt for fmt in all_formats() if fmt.sniff("sacct.txt", head) is not None)
    return found


def _read(store: Store, folder: Path) -> dict[str, dict[str, Table]]:
    text = (folder / "sacct_XD_P_delim.txt").read_bytes()
    whole = folder == WHOLE
    files: dict[str, tuple[Format, bytes]] = {
        "text": (_text_format(text[:65536]), text),
        "json": (slurm_json.FORMAT, _bytes(folder / ("sacct.json.gz" if whole else "sacct.json"))),
        "dbd": (slurm_dbd.FORMAT, _bytes(folder / ("slurmdbd_tables.sql.gz" if whole else "slurmdbd.sql"))),
        "jobcomp": (slurm_jobcomp.FORMAT, _bytes(folder / "jobcomp.log")),
    }
    tables: dict[str, dict[str, Table]] = {}
    for source, (form, (fmt, data)) in enumerate(files.items(), 1):
        sink = load(fmt, data, store, cluster=form, source=source)
        # the small fixture has steps of two jobs that it leaves out
        lost = 0 if whole or form != "dbd" else 4
        assert [reason for _, reason, _ in sink.rejects] == ["a step of a job that is not in this dump"] * lost
        tables[form] = {
            table: {tuple(row[name] for name in key): row for row in rows(store, table, form)}
            for table, key in KEYS.items()
        }
    return tables


def _bytes(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.fixture(scope="module", params=["fixture", "whole"])
def forms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    if request.param == "whole" and not WHOLE.is_dir():
        pytest.skip("no shared data beside this checkout")
    with new_store(tmp_path_factory.mktemp("forms")) as store:
        yield {"whole": request.param == "whole", **_read(store, WHOLE if request.param == "whole" else FIXTURES)}


def test_every_job_is_accounted_for_in_each_form(forms: dict[str, Any]) -> None:
    counts = {form: {table: len(forms[form][table]) for table in KEYS} for form in ("text", "json", "dbd", "jobcomp")}
    if forms["whole"]:
        assert counts == {
            "text": {"jobs": 459, "attempts": 469, "placements": 488},
            "json": {"jobs": 459, "attempts": 469, "placements": 488},
            "dbd": {"jobs": 461, "attempts": 471, "placements": 488},
            "jobcomp": {"jobs": 454, "attempts": 465, "placements": 489},
        }
    text = {key[0]: row for key, row in forms["text"]["jobs"].items()}
    pending = {job for job, row in text.items() if row["state"] == "pending"}
    assert {key[0] for key in forms["json"]["jobs"]} == set(text)
    assert {key[0] for key in forms["dbd"]["jobs"]} == set(text) | NEVER_ELIGIBLE
    assert {key[0] for key in forms["jobcomp"]["jobs"]} == (set(text) | NEVER_ELIGIBLE) - pending


@pytest.mark.parametrize("form", ["json", "dbd", "jobcomp"])
@pytest.mark.parametrize("table", KEYS)
def test_fields_are_the_same_but_for_what_a_form_does_not_carry(forms: dict[str, Any], form: str, table: str) -> None:
    text_rows, form_rows = forms["text"][table], forms[form][table]
    common = set(text_rows) & set(form_rows)
    assert len(common) > 0.9 * len(text_rows)
    different = {
        column: {
            key: (text_rows[key][column], form_rows[key][column])
            for key in common
            if text_rows[key][column] != form_rows[key][column]
        }
        for column in next(iter(text_rows.values()))
    }
    excused = {column for f, t, column in NOT_CARRIED if (f, t) == (form, table)}
    surprises = {
        column: dict(list(cells.items())[:5]) for column, cells in different.items() if cells and column not in excused
    }
    assert surprises == {}
    if forms["whole"]:
        assert sorted(column for column in excused if not different[column]) == [], "no longer needed"


def test_what_the_excuses_allow_is_what_they_say(forms: dict[str, Any]) -> None:
    text = forms["text"]["attempts"]
    for key, row in forms["dbd"]["attempts"].items():
        if key in text and row["exit_code"] != text[key]["exit_code"]:
            assert row["exit_code"] - 128 == text[key]["exit_code"]
    for key, row in forms["json"]["attempts"].items():
        if row["exit_code"] is not None:
            assert (row["exit_code"], row["exit_signal"]) == (text[key]["exit_code"], text[key]["exit_signal"])
        else:
            assert row["state"] != "completed"
            assert ("exit_code_not_told" in row["quirks"]) == (row["state"] == "failed")
    seven = {row["state"] for row in forms["jobcomp"]["attempts"].values()}
    assert "pending" not in seven
    assert all("gpus_requested" in row["quirks"] for row in forms["jobcomp"]["jobs"].values())


@pytest.mark.skipif(not WHOLE.is_dir(), reason="no shared data beside this checkout")
def test_forms_of_one_cluster_make_no_attempt_twice(tmp_path: Path) -> None:
    text = (WHOLE / "sacct_XD_P_delim.txt").read_bytes()
    files = [
        (_text_format(text[:65536]), text),
        (slurm_json.FORMAT, _bytes(WHOLE / "sacct.json.gz")),
        (slurm_dbd.FORMAT, _bytes(WHOLE / "slurmdbd_tables.sql.gz")),
        (slurm_jobcomp.FORMAT, _bytes(WHOLE / "jobcomp.log")),
    ]
    orders = [fmt.order for fmt, _ in files]
    assert orders == sorted(set(orders))
    with new_store(tmp_path) as store:
        sinks = [load(fmt, data, store, source=source) for source, (fmt, data) in enumerate(files, 1)]
        # 513 steps in each; the two jobs that only the dump has, and its 15 events and 13 names
        assert [sink.rows_loaded for sink in sinks] == [469, 513, 2 + 15 + 13 + 513, 0]
        # the file of completed jobs has the earlier end of some jobs that came back
        assert [sink.rows_rejected for sink in sinks] == [0, 0, 0, 7]
        assert [sink.rows_already_stored for sink in sinks] == [0, 469, 469, 458]
        assert store.value("SELECT count(*) FROM jobs") == 461
        assert store.value("SELECT count(*) FROM attempts") == 471
        assert store.value("SELECT count(*) FROM (SELECT DISTINCT job, start_ts, queued_ts FROM attempts)") == 471


def test_events_of_the_dump_are_those_of_sacctmgr(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        load(slurm_dbd.FORMAT, (FIXTURES / "slurmdbd.sql").read_bytes(), store)
        events = rows(store, "machine_events")
        names = {row["name"]: row["value"] for row in rows(store, "settings")}
    assert len(events) == 14
    assert [row for row in events if row["machine"] == "gpu004"][-1] == {
        "machine": "gpu004",
        "from_ts": "2026-11-20 21:06:50",
        "to_ts": "2026-11-20 21:07:07",
        "state": "DRAIN",
        "reason": "ECC errors | row remap pending",
    }
    assert names["slurmdbd.tres.1002"] == "gres/gpu:a100"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside this checkout")
@pytest.mark.parametrize(("release", "jobs", "attempts"), [("22.05.8", 22, 24), ("24.11.5", 22, 22)])
def test_json_of_two_releases_states_what_their_text_says(
    tmp_path: Path, release: str, jobs: int, attempts: int
) -> None:
    folder = SHARED / f"ci-smoke-{release}"
    with new_store(tmp_path) as store:
        text = (folder / "sacct_XD.us.txt").read_bytes()
        load(_text_format(text[:65536]), text, store, cluster="text", source=1)
        document = (folder / "sacct.json").read_bytes()
        sink = load(slurm_json.FORMAT, document, store, cluster="json", source=2)
        steps = sum(len(job["steps"]) for job in json.loads(document)["jobs"])
        assert (sink.rows_in, sink.rejects) == (attempts + steps, [])
        text_rows, form_rows = ({row["job"]: row for row in rows(store, "jobs", form)} for form in ("text", "json"))
        again = {row["job"] for row in rows(store, "attempts", "text") if row["attempt"] > 0}
        last = {row["job"]: row for row in rows(store, "attempts", "text")}
    assert len(text_rows) == len(form_rows) == jobs
    assert len(again) == 2
    for job, row in form_rows.items():
        if release == "24.11.5" and job in again:
            # without -D there is only the last attempt, and the release says that others are missing
            assert row["quirks"] == ["attempts_missing"]
            assert row["submit_ts"] == last[job]["queued_ts"]
            continue
        excused = {column for form, table, column in NOT_CARRIED if (form, table) == ("json", "jobs")}
        if release == "24.11.5":
            # what no step had is not told, where the text says 0
            excused = {"source_state", "quirks", "derived_exit_code", "derived_exit_signal"}
            assert row["derived_exit_code"] in {None, text_rows[job]["derived_exit_code"]}
        assert {k: v for k, v in row.items() if k not in excused} == {
            k: v for k, v in text_rows[job].items() if k not in excused
        }
