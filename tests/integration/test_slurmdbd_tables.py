"""Every table of slurmdbd, written out by itself in every form: what each is taken for, and what is made of it.

The fixture holds the columns of all 31 tables of a Slurm 22.05.8 of our own (`labs/slurm`), and the rows of six.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline.detect import HEAD, detect
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.store.database import Store

TABLES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[1] / "fixtures" / "slurm" / "other" / "slurmdbd_tables.json").read_text()
)
TAKEN_FOR = {
    "lab_job_table": "slurm-dbd",
    "lab_event_table": "slurm-dbd",
    "lab_assoc_table": "slurm-dbd-names",
    "qos_table": "slurm-dbd-names",
    "tres_table": "slurm-dbd-names",
}
# what the site published in place of the table: chosen columns, lists as Python writes them (MIT SuperCloud's 29)
PUBLISHED = (
    *("id_job", "id_array_job", "id_array_task", "id_user", "kill_requid", "nodes_alloc", "nodelist", "cpus_req"),
    *(
        "derived_ec",
        "exit_code",
        "gres_used",
        "array_max_tasks",
        "array_task_pending",
        "constraints",
        "flags",
        "mem_req",
    ),
    *("partition", "priority", "state", "timelimit", "time_submit", "time_eligible", "time_start", "time_end"),
    *("time_suspended", "track_steps", "tres_alloc", "tres_req", "job_type"),
)


def tabs(name: str) -> str:
    """What ``mariadb -B`` prints."""
    table = TABLES[name]
    return "".join("\t".join(cells) + "\n" for cells in [table["columns"], *table["rows"]])


def commas(name: str) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([TABLES[name]["columns"], *TABLES[name]["rows"]])
    return text.getvalue()


def sql(name: str) -> str:
    """What ``mariadb-dump`` writes of one table."""
    table = TABLES[name]
    columns = ",\n".join(f"  `{column}` text" for column in table["columns"])
    rows = (
        ", ".join("NULL" if c == "NULL" else "'" + c.replace("'", "''") + "'" for c in row) for row in table["rows"]
    )
    inserts = "".join(f"INSERT INTO `{name}` VALUES ({row});\n" for row in rows)
    return f"-- Table structure for table `{name}`\nCREATE TABLE `{name}` (\n{columns}\n);\n{inserts}"


FORMS = {"tabs": tabs, "commas": commas, "sql": sql}


def published(mapping: dict[str, str]) -> str:
    table = TABLES["lab_job_table"]
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(PUBLISHED)
    for row in table["rows"]:
        cells = dict(zip(table["columns"], row, strict=True)) | {"track_steps": "0", "job_type": "BATCH"}
        cells["nodelist"] = f"['{cells['nodelist']}']" if cells["nodelist"] not in {"", "NULL"} else "[]"
        out.writerow([mapping.get(cells[name], cells[name]) for name in PUBLISHED])
    return text.getvalue()


def count(store: Path, table: str) -> int:
    with Store(store) as opened:
        return int(opened.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_taken_for_what_it_is_or_for_nothing(name: str, form: str) -> None:
    found, why, ambiguous = detect(f"{name}.txt", FORMS[form](name).encode()[:HEAD], all_formats())
    assert (found.name if found else None, ambiguous) == (TAKEN_FOR.get(name), False), why
    if found is None and form != "sql":
        assert why.startswith("slurmdbd's ")
        assert name.endswith(why.removeprefix("slurmdbd's ").partition(":")[0]) or "usage" in name


@pytest.mark.parametrize("form", FORMS)
def test_a_dump_table_by_table_holds_what_the_whole_dump_holds(tmp_path: Path, form: str) -> None:
    apart, whole = tmp_path / "apart", tmp_path / "whole"
    apart.mkdir()
    whole.mkdir()
    for name in TABLES:
        (apart / f"{name}.txt").write_text(FORMS[form](name))
    (whole / "dump.sql").write_text("".join(sql(name) for name in TABLES))
    assert not ingest([apart], tmp_path / "a.duckdb", cluster="lab").failed
    assert not ingest([whole], tmp_path / "w.duckdb", cluster="lab").failed
    told = []
    for store in ("a.duckdb", "w.duckdb"):
        with Store(tmp_path / store) as opened:
            jobs = "SELECT job, state, submit_ts, start_ts, end_ts, gpus, gpu_type, account, qos FROM jobs ORDER BY ALL"
            events = "SELECT machine, from_ts, to_ts, state, reason FROM machine_events ORDER BY ALL"
            told.append((opened.frame(jobs).rows(), opened.frame(events).rows()))
    assert told[0] == told[1]
    # a job that was started anew has several rows; two events are about the whole cluster
    ids = {row[TABLES["lab_job_table"]["columns"].index("id_job")] for row in TABLES["lab_job_table"]["rows"]}
    named = TABLES["lab_event_table"]["columns"].index("node_name")
    events = [row for row in TABLES["lab_event_table"]["rows"] if row[named]]
    assert ({row[0] for row in told[0][0]}, len(told[0][1])) == (ids, len(events))


def test_the_steps_of_jobs_add_no_downtime_to_them(tmp_path: Path) -> None:
    for name in ("lab_job_table", "lab_step_table", "tres_table"):
        (tmp_path / f"{name}.tsv").write_text(tabs(name))
    report = ingest([tmp_path], tmp_path / "s.duckdb")
    (passed,) = [found for found in report.not_read if "step" in found.shown]
    assert passed.why == "slurmdbd's step_table: gpuctl reads it in one SQL dump with job_table, not alone"
    assert count(tmp_path / "s.duckdb", "machine_events") == 0
    with pytest.raises(InputError, match="step_table: gpuctl reads it in one SQL dump with job_table, not alone"):
        ingest([tmp_path / "lab_step_table.tsv"], tmp_path / "alone.duckdb")


def test_steps_of_a_dump_are_those_of_its_jobs(tmp_path: Path) -> None:
    """CPU time and memory as the rows have them; a step of a job that is not there is rejected."""
    table = TABLES["lab_step_table"]
    steps = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    ids = {row[0]: row[TABLES["lab_job_table"]["columns"].index("id_job")] for row in TABLES["lab_job_table"]["rows"]}
    assert TABLES["lab_job_table"]["columns"][0] == "job_db_inx"
    wanted: dict[str, Any] = {}
    for step in steps:
        used = sum(int(step[f"{who}_sec"]) * 10**6 + int(step[f"{who}_usec"]) for who in ("user", "sys")) / 1e6
        memory = dict(part.split("=") for part in (step["tres_usage_in_tot"] or "").split(",") if part).get("2")
        start, cpu, mib, batch = wanted.get(step["job_db_inx"], (2**40, 0.0, 0.0, False))
        wanted[step["job_db_inx"]] = (
            min(start, int(step["time_start"])), cpu + used, max(mib, int(memory or 0) / 2**20),
            batch or step["step_name"] == "batch",
        )  # fmt: skip
    dump = tmp_path / "dump.sql"
    dump.write_text("".join(sql(name) for name in ("lab_job_table", "lab_step_table", "tres_table")))
    assert not ingest([dump], tmp_path / "w.duckdb", cluster="lab").sources[0].rows_rejected
    read = "SELECT job, epoch(start_ts), cpu_s, coalesce(mem_total_mb, 0), batch FROM step_usage ORDER BY ALL"
    with Store(tmp_path / "w.duckdb") as opened:
        found = opened.frame(read).rows()
    every = sorted((str(ids[number]), *values) for number, values in wanted.items())
    assert [row[0] for row in found] == [row[0] for row in every]
    assert [row[1:] for row in found] == [pytest.approx(row[1:]) for row in every]
    (tmp_path / "other.sql").write_text("".join(sql(name) for name in ("lab_step_table", "lab_event_table")))
    [source] = ingest([tmp_path / "other.sql"], tmp_path / "o.duckdb", cluster="lab").sources
    assert source.rows_rejected == len(steps)


def test_a_published_scheduler_log_is_the_job_table(tmp_path: Path) -> None:
    """With the header of MIT SuperCloud's scheduler-log.csv and its list of TRES, on the rows of our own cluster."""
    gpus = {row[2]: row[4] for row in TABLES["tres_table"]["rows"] if row[4].startswith("gpu")}
    (tmp_path / "scheduler-log.csv").write_text(published({"NULL": ""}))
    mapping = "".join(f"{number},{name}\n" for number, name in gpus.items())
    (tmp_path / "tres-mapping.txt").write_text(f"tres_id,resource\n1,cpu\n2,mem\n4,node\n{mapping}")
    report = ingest([tmp_path], tmp_path / "s.duckdb", cluster="lab")
    assert {source.format for source in report.sources} == {"slurm-dbd", "slurm-dbd-names"}
    whole = tmp_path / "dump.sql"
    whole.write_text("".join(sql(name) for name in ("lab_job_table", "tres_table")))
    ingest([whole], tmp_path / "w.duckdb", cluster="lab")
    sql_text = "SELECT job, state, submit_ts, start_ts, end_ts, gpus, nodes FROM jobs ORDER BY ALL"
    with Store(tmp_path / "s.duckdb") as one, Store(tmp_path / "w.duckdb") as other:
        assert one.frame(sql_text).rows() == other.frame(sql_text).rows()
        assert one.frame("SELECT job, attempt, machine FROM placements ORDER BY ALL").rows() == (
            other.frame("SELECT job, attempt, machine FROM placements ORDER BY ALL").rows()
        )
