"""Pieces of one cluster's story, in any order, overlapping, replaced: always the same jobs."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.yarn import merge
from gpuctl.store.database import Store
from tests.example_counts import SEARCHING
from tests.unit.ingest.yarn import cluster as y
from tests.unit.ingest.yarn.test_dumps import capacity_scheduler
from tests.unit.ingest.yarn.test_logs import JOB

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ("jobs", "attempts", "containers", "placements", "machines", "machine_events", "queues")


def pieces() -> dict[str, bytes]:
    """A ResourceManager's log in two files that overlap, a NodeManager's log, and an answer over REST."""
    apps = y.everything()
    lines = y.rm_log(apps, ahead_s=8 * 3600, modern=True, summaries=False).lines()
    middle = len(lines) // 2
    return {
        "rm.log.1": b"".join(lines[: middle + 6]),
        "rm.log": b"".join(lines[middle - 6 :]),
        "nm.log": y.nm_log(apps, "n2", ahead_s=8 * 3600).text(),
        "apps.json": y.rest_apps(apps),
        "scheduler.json": capacity_scheduler(),
    }


def story(db: Path) -> dict[str, list[Any]]:
    """All that the store tells, without the numbers of its sources.

    What two overlapping logs tell alike may be put down to either.
    """
    tables = {}
    with Store(db) as store:
        found = {table: store.frame(f"SELECT * FROM {table}").drop("source", strict=False) for table in TABLES}
    for table, rows in found.items():
        tables[table] = sorted(repr([sorted(v) if isinstance(v, list) else v for v in r]) for r in rows.rows())
    sql = """
        SELECT DISTINCT job, field, replace(parse_filename(path), '.log.1', '.log')
        FROM field_sources JOIN sources USING (source)
    """
    tables["field_sources"] = sorted(map(repr, y.frame(db, sql).rows()))
    return tables


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of all pieces."""
    return y.load(tmp_path_factory.mktemp("all"), pieces())[0]


ORDERS = list(permutations(pieces()))
"""With all tests the last one, the reverse: of any two files each comes first once."""


@pytest.mark.parametrize(
    "order", [ORDERS[k] for k in ((1, 30, 45, 71, 90, 119) if SEARCHING else (119,))], ids="-".join
)
def test_any_order_gives_the_same(tmp_path: Path, order: tuple[str, ...], whole: Path) -> None:
    files = pieces()
    db, _ = y.load(tmp_path, {name: files[name] for name in order})
    found = story(db)
    for table, rows in story(whole).items():
        assert found[table] == rows, table


def test_what_the_whole_story_is(whole: Path) -> None:
    job = y.row(whole, JOB.format(1))
    assert (job["start_ts"], job["end_ts"], job["gpus"], job["queue"]) == (y.at(40), y.at(130), 4, "root.prod.gpu")
    assert (job["source_state"], job["quirks"]) == ("FINISHED/SUCCEEDED", ["zone_derived"])
    assert y.row(whole, JOB.format(3))["state"] == "pending"
    tables = dict(
        y.frame(
            whole,
            "SELECT field, min(parse_filename(path)) AS file FROM field_sources JOIN sources USING (source) "
            "WHERE job LIKE '%_0001' GROUP BY field",
        ).rows()
    )
    assert (tables["submit_ts"], tables["final_status"], tables["start_ts"]) == ("apps.json", "apps.json", "rm.log.1")


def test_one_source_needs_no_field_sources(tmp_path: Path) -> None:
    db, _ = y.load(tmp_path, {"rm.log": y.rm_log([y.gang()]).text()})
    assert y.frame(db, "SELECT * FROM field_sources").height == 0


def test_a_file_that_grew_replaces_itself(tmp_path: Path) -> None:
    lines = y.rm_log([y.gang(), y.retried()]).lines()
    log, db = tmp_path / "rm.log", tmp_path / "store.duckdb"
    node = tmp_path / "nm.log"
    node.write_bytes(y.nm_log([y.gang()], "n1").text())
    for part in (lines[: len(lines) // 2], lines):
        log.write_bytes(b"".join(part))
        assert not ingest([log, node], db, cluster="c").failed
    (tmp_path / "fresh").mkdir()
    fresh, _ = y.load(tmp_path / "fresh", {"rm.log": log.read_bytes(), "nm.log": node.read_bytes()})
    assert story(db) == story(fresh)


def test_facts_of_a_replaced_file_alone_are_forgotten(tmp_path: Path) -> None:
    log, db = tmp_path / "rm.log", tmp_path / "store.duckdb"
    rest = tmp_path / "apps.json"
    rest.write_bytes(y.rest_apps([y.gang()]))
    log.write_bytes(y.rm_log([y.gang(), y.running()]).text())
    ingest([rest, log], db, cluster="c")
    assert y.row(db, JOB.format(1))["gpus"] == 4
    log.write_bytes(y.rm_log([y.running()]).text())
    ingest([rest, log], db, cluster="c")
    job = y.row(db, JOB.format(1))
    assert (job["start_ts"], job["state"]) == (y.at(12.3), "completed")
    assert y.row(db, JOB.format(4))["state"] == "running"


def test_rows_of_small_answers_are_made_once_for_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, gather = [], merge._gather
    monkeypatch.setattr(merge, "_gather", lambda *args: (made.append(1), gather(*args)))
    gang, retried, *others = y.everything()
    files = {"apps.json": y.ats_apps([gang]), "more.json": y.ats_apps(others), "held.json": y.ats_containers(gang)}
    (tmp_path / "alone").mkdir()
    alone, _ = y.load(tmp_path / "alone", files)
    assert len(made) == len(files)
    made.clear()
    logs = tmp_path / "alone" / "logs"
    assert [one.status for one in ingest([logs], tmp_path / "a.duckdb", cluster="c").sources] == ["loaded"] * 3
    assert len(made) == 1
    assert story(tmp_path / "a.duckdb") == story(alone)
    # what takes the place of a source is loaded by itself, and so are those beside it
    made.clear()
    (logs / "apps.json").write_bytes(y.ats_apps([gang, retried]))
    (logs / "new.json").write_bytes(y.ats_containers(retried))
    again = ingest([logs], tmp_path / "a.duckdb", cluster="c")
    assert sorted(one.status for one in again.sources) == ["loaded", "replaced", "unchanged", "unchanged"]
    assert len(made) == 2
    ingest([logs], tmp_path / "fresh.duckdb", cluster="c")
    assert story(tmp_path / "a.duckdb") == story(tmp_path / "fresh.duckdb")


def test_clusters_do_not_mix(tmp_path: Path) -> None:
    log = tmp_path / "rm.log"
    log.write_bytes(y.rm_log([y.gang()]).text())
    db = tmp_path / "store.duckdb"
    ingest([log], db, cluster="a")
    log.write_bytes(y.rm_log([y.gang()], summaries=False).text())
    ingest([log], db, cluster="b")
    states = y.frame(db, "SELECT cluster, state FROM jobs ORDER BY 1").rows()
    assert states == [("a", "completed"), ("b", "unknown")]


def test_a_file_whose_place_a_copy_of_another_one_took_is_forgotten(tmp_path: Path) -> None:
    one, two, db = tmp_path / "one.json", tmp_path / "two.json", tmp_path / "store.duckdb"
    one.write_bytes(y.rest_apps([y.gang()]))
    two.write_bytes(y.rest_apps([y.running()]))
    ingest([one, two], db, cluster="c")
    assert y.frame(db, "SELECT count(*) FROM jobs").item() == 2
    two.write_bytes(one.read_bytes())
    report = ingest([one, two], db, cluster="c")
    assert [source.status for source in report.sources] == ["unchanged", "replaced"]
    assert y.frame(db, "SELECT job FROM jobs").item().endswith("_0001")


def test_a_queue_that_a_log_names_in_part_is_the_one_that_another_job_names_in_full(tmp_path: Path) -> None:
    in_full = y.rm_log([y.gang()], modern=True).text().replace(b"queue=gpu,", b"queue=root.prod.gpu,")
    in_part = y.rm_log([y.running()], modern=True, summaries=False).text()
    db, _ = y.load(tmp_path, {"one.log": in_part, "two.log": in_full})
    assert y.frame(db, "SELECT DISTINCT queue FROM jobs").rows() == [("root.prod.gpu",)]
    assert y.frame(db, "SELECT queue FROM queues").rows() == [("root.prod.gpu",)]
