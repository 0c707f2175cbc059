"""What a real Slurm printed, against what was asked of it and what it was seen to do; public accounting files."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats import slurm_sacct
from gpuctl.ingest.formats.slurm_sacct import FORMAT, with_columns
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.ingest.slurm.layout import FIELDS
from gpuctl.slurm.states import state_of
from gpuctl.store.database import Store
from tests.philly_log import new_store
from tests.slurm_loading import SHARED, OneSource, load, rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAB = SHARED / "22.05.8"
pytestmark = pytest.mark.skipif(not LAB.is_dir(), reason="the real files are not on this machine")

SONAR = (
    "JobIDRaw,JobID,User,Account,State,Start,End,AveCPU,AveDiskRead,AveDiskWrite,AveRSS,AveVMSize,ElapsedRaw,ExitCode,"
    "Layout,MaxRSS,MaxVMSize,MinCPU,ReqCPUS,ReqMem,ReqNodes,Reservation,Submit,Suspended,SystemCPU,TimelimitRaw,UserCPU,"
    "NodeList,Partition,AllocTRES,Priority,JobName"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """All attempts of the lab's cluster, from the form that loses nothing."""
    with new_store(tmp_path_factory.mktemp("lab")) as opened:
        sink = read(opened, "sacct_XD_P_delim.txt")
        assert (sink.rows_in, sink.rejects) == (469, [])
        yield opened


def read(store: Store, name: str, **how: Any) -> OneSource:
    return load(FORMAT, (LAB / name).read_bytes(), store, **how)


def manifest() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (LAB / "manifest.jsonl").read_text().splitlines()]


def test_every_job_is_accounted_for_with_its_state(lab: Store) -> None:
    jobs = {row["job"]: row for row in rows(lab, "jobs")}
    assert (len(jobs), lab.value("SELECT count(*) FROM attempts")) == (459, 469)
    tasks = defaultdict(list)
    for row in jobs.values():
        tasks[row["array_job"] or row["het_job"] or row["job"]].append(row)
    met, differ = set(), Counter[str]()
    for asked in manifest():
        ours = tasks.get(asked["jobid"]) or [row for row in [jobs.get(asked["jobid"])] if row]
        met.update(row["job"] for row in ours)
        if not ours:
            differ[asked["scenario"]] += 1
        for row in ours:
            if asked["expect"] != "mixed" and row["state"] != state_of(asked["expect"]):
                differ[f"{asked['scenario']}: {row['source_state']}"] += 1
    # three jobs were submitted again by the script of another one
    assert len(jobs) - len(met) == 3
    assert differ == {
        # never eligible, which sacct -S does not print; and refused by sbatch
        **{"dep-never": 1, "dep-never-kill": 1, "constraint-bad": 1, "gres-bad": 1},
        # still in the queue when the lab was stopped
        **{"part-timelimit: PENDING": 1, "part-nodelimit: PENDING": 1, "background: PENDING": 5},
        # a step ran out of memory, its script went on: DerivedExitCode tells
        "stepoom: COMPLETED": 2,
    }


def test_states_of_all_attempts(lab: Store) -> None:
    told = lab.frame("SELECT split_part(source_state, ' ', 1) AS s, count(*) AS n FROM attempts GROUP BY ALL").rows()
    assert dict(told) == {
        **{"COMPLETED": 377, "FAILED": 51, "PENDING": 7, "CANCELLED": 7, "TIMEOUT": 6, "NODE_FAIL": 6},
        **{"REQUEUED": 5, "PREEMPTED": 5, "OUT_OF_MEMORY": 4, "DEADLINE": 1},
    }


def test_trap_11_exit_codes_are_those_requested_less_128(lab: Store) -> None:
    jobs = {row["job"]: row for row in rows(lab, "jobs")}
    asked = [line for line in manifest() if line["mode"] == "exit" and line["expect"] == "FAILED"]
    assert len(asked) == 36
    for line in asked:
        code = int(line["arg"])
        row = jobs[line["jobid"]]
        assert row["exit_code"] == code - 128 * (code >= 128)
        assert (code >= 128) <= ("exit_code_may_be_folded" in row["quirks"])


def test_trap_13_steps_that_fail_in_jobs_that_do_not(lab: Store) -> None:
    hidden = lab.frame(
        "SELECT derived_exit_code, derived_exit_signal, count(*) FROM jobs WHERE state = 'completed' "
        "AND (derived_exit_code, derived_exit_signal) <> (0, 0) GROUP BY ALL ORDER BY ALL"
    ).rows()
    assert (0, 125, 2) in hidden


def test_trap_8_requeues(lab: Store) -> None:
    held = lab.frame("SELECT epoch(eligible_ts) - epoch(queued_ts) AS s FROM attempts WHERE attempt > 0")["s"]
    # cred_expire + 1; job 111 was requeued, held and cancelled before it would have become eligible
    assert sorted(held) == [0, *[121] * 9]
    assert lab.value("SELECT max(attempts) FROM jobs") == 3
    assert lab.value("SELECT count(*) FROM attempts WHERE wait_s < 0 OR run_s < 0") == 0


def view(store: Store) -> list[dict[str, Any]]:
    """All jobs, without how they were read, and what follows from Constraints, which one form has."""
    read_as = "list_filter(quirks, lambda q: q <> 'mended') AS quirks"
    columns = f"* EXCLUDE (source, gpu_type_request) REPLACE ({read_as})"
    return store.frame(f"SELECT {columns} FROM jobs ORDER BY job").to_dicts()


@pytest.mark.parametrize("name", ["sacct_X_P.txt", "sacct_X_P_epoch.txt", "sacct_P_steps.txt", "sacct_ALL_P.txt"])
def test_other_forms_give_the_same_jobs(store: Store, tmp_path: Path, name: str) -> None:
    """Jobs of plain ``|`` files, 7 of them shifted and 1 on four lines, are those of the form that loses nothing."""
    folder = tmp_path / "other"
    folder.mkdir()
    with new_store(folder) as other:
        sink = read(store, name)
        assert sink.rejects == []
        assert sum("mended" in row["quirks"] for row in rows(store, "jobs")) == 8
        read(other, "sacct_XD_P_delim.txt")
        other.execute("DELETE FROM job_rows WHERE attempts > 1")
        once = {row["job"]: row for row in view(other)}
        ours = {row["job"]: row for row in view(store)}
        assert len(ours) == 459
        assert {job: row for job, row in ours.items() if job in once} == once


def test_plain_and_robust_export_with_all_attempts_are_the_same(store: Store, lab: Store) -> None:
    sink = read(store, "sacct_XD_P.txt")
    assert (sink.rows_in, sink.rejects) == (469, [])
    assert view(store) == view(lab)
    for table in ("attempts", "placements"):
        assert rows(store, table) == rows(lab, table)


@pytest.mark.parametrize(
    ("name", "timezone"), [("sacct_X_P_tzfmt.txt", "UTC"), ("sacct_X_P_tz_newyork.txt", "America/New_York")]
)
def test_trap_5_other_clocks_give_the_same_instants(store: Store, tmp_path: Path, name: str, timezone: str) -> None:
    # these have no JobIDRaw, and an array's last task has the id of the array, so jobs are compared by what is in them
    wanted = "submit_ts, eligible_ts, start_ts, end_ts"
    folder = tmp_path / "other"
    folder.mkdir()
    with new_store(folder) as other:
        read(other, "sacct_X_P.txt")
        read(store, name, timezone=timezone)
        # two jobs got no nodes, which only NodeList tells: their Start is their End
        query = f"SELECT {wanted} FROM jobs WHERE end_ts > start_ts ORDER BY ALL"
        assert store.frame(query).height == 443
        assert store.frame(query).rows() == other.frame(query).rows()


def test_trap_9_jobs_that_were_never_eligible_come_with_a_second_export(store: Store) -> None:
    read(store, "sacct_XD_P_delim.txt")
    sink = read(store, "sacct_state_CA.txt", source=2)
    assert (sink.rows_in, sink.rejects) == (85, [])
    fresh = store.frame("SELECT job, state, eligible_ts, reason FROM jobs WHERE source = 2").rows()
    assert ("63", "killed", None) in [row[:3] for row in fresh]
    assert store.value("SELECT count(*) FROM jobs") == 459 + len(fresh)


@pytest.mark.parametrize("name", ["sacct_default.txt", "sacct_wide.txt", "sacct_X_P_relative.txt"])
def test_traps_3_and_5_tables_and_relative_times_are_refused(store: Store, name: str) -> None:
    assert FORMAT.sniff(name, (LAB / name).read_bytes()[: 64 << 10])
    with pytest.raises(InputError) as error:
        read(store, name)
    assert "--delimiter=$'\\x1f'" in str(error.value.hint)


def test_units_and_truncated_times(store: Store) -> None:
    assert read(store, "sacct_X_P_units_G.txt").rejects == []
    assert store.value("SELECT max(mem_mb) FROM jobs WHERE gpus = 1") >= 1000
    assert read(store, "sacct_X_P_truncate.txt", source=2, cluster="cut").rejects == []


def test_occupancy_rebuilt_from_accounting_is_what_slurm_itself_said(lab: Store) -> None:
    """At least 95 % of the samples (node, instant) that ``sinfo`` gave of GPUs in use.

    Slurm's times are whole seconds, so a sample may be of a second before or after. A job of several nodes is known by
    its sum only: where the split is an estimate, its nodes are compared together. 663 of 696 samples (95.3 %) agree.
    Of the other 33 most are GPUs of jobs whose nodes were powered up: Slurm held them, but then put the job's Start
    forward, so accounting says the job still waited (gpu007 and one GPU of gpu003, 21:05:40 to 21:06:52). The rest are
    nodes that were completing, whose GPUs are held a while after End, and starts and ends within a scheduling cycle.
    """
    placed = lab.frame(
        "SELECT p.machine, p.gpus, p.estimated, a.job, epoch(a.start_ts) AS start, "
        "coalesce(epoch(a.released_ts), 1e12) AS released "
        "FROM placements AS p JOIN attempts AS a USING (cluster, job, attempt)"
    ).rows()
    samples: dict[float, dict[str, float]] = defaultdict(dict)
    for line in (LAB / "sinfo_samples.txt").read_text().splitlines():
        at, node, _, _, used, *_ = line.split("|")
        if node.startswith("gpu"):
            number = re.search(r":(\d+)\(", used)
            assert number
            samples[float(at)][node] = float(number[1])
    agree = sum(_agreeing(at, used, placed) for at, used in samples.items())
    total = sum(map(len, samples.values()))
    assert total == 696
    assert agree / total >= 0.95


def _agreeing(at: float, used: dict[str, float], placed: list[tuple[Any, ...]]) -> int:
    """How many nodes of one sample hold what accounting says, a second more or less."""
    agreeing: set[str] = set()
    for moment in (at, at - 1, at + 1):
        ours: dict[str, float] = defaultdict(float)
        together: dict[str, set[str]] = defaultdict(set)
        for machine, gpus, estimated, job, start, released in placed:
            if start <= moment < released:
                ours[machine] += gpus
                if estimated:
                    together[job].add(machine)
        agreeing.update(node for node in used if ours[node] == used[node])
        for nodes in together.values():
            if sum(ours[node] for node in nodes) == sum(used[node] for node in nodes):
                agreeing.update(nodes)
    return len(agreeing)


@pytest.mark.parametrize("release", ["22.05.8", "24.11.5"])
def test_the_small_lab_on_two_releases(store: Store, release: str) -> None:
    folder = SHARED / f"ci-smoke-{release}"
    sink = load(FORMAT, (folder / "sacct_XD.us.txt").read_bytes(), store)
    assert (sink.rows_in, sink.rejects) == (24, [])
    plain = load(FORMAT, (folder / "sacct_ALL.txt").read_bytes(), store, cluster="plain", source=2)
    assert (plain.rows_in, plain.rejects) == (47, [])
    fields = "job, array_job, array_task, het_job, het_offset, source_state, gpus"
    ids = f"SELECT {fields} FROM jobs WHERE cluster = $c ORDER BY ALL"
    assert store.frame(ids, {"c": "lab"}).rows() == store.frame(ids, {"c": "plain"}).rows()
    assert store.value("SELECT count(*) FROM jobs WHERE cluster = 'lab' AND array_job IS NOT NULL") >= 3
    assert store.value("SELECT count(*) FROM jobs WHERE cluster = 'lab' AND het_job IS NOT NULL") == 2
    missing = store.frame("SELECT job FROM jobs WHERE cluster = 'plain' AND list_contains(quirks, 'attempts_missing')")
    # Restarts came with 24.11
    assert missing.height == (2 if release == "24.11.5" else 0)


def test_every_field_of_every_release_is_known() -> None:
    lines = (SHARED / "sacct_fields_by_version.csv").read_text().splitlines()[1:]
    assert {line.split(",")[0] for line in lines} == set(FIELDS)


@pytest.mark.parametrize(
    ("name", "records", "jobs", "states"),
    [
        ("xdmod/phillips.log", 4285, 4285, {"COMPLETED": 2324, "FAILED": 1717, "CANCELLED": 243, "TIMEOUT": 1}),
        ("xdmod/pozidriv.log", 11704, 11704, {"PREEMPTED": 86}),
        ("tdhock-slurm/sacct-allcols.txt", 3, 1, {}),
        ("tdhock-slurm/sacct-manyfields.txt", 3, 1, {"TIMEOUT": 1}),
        ("tdhock-slurm/sacct-multistep.txt", 226, 76, {}),
        ("tdhock-slurm/sacct-multiuser.txt", 572, 448, {}),
        ("tdhock-slurm/sacct-unrecognized-unit.txt", 983, 396, {}),
        ("tdhock-slurm/slurm-dcast-agg.txt", 20830, 6944, {}),
    ],
)
def test_public_files(store: Store, name: str, records: int, jobs: int, states: dict[str, int]) -> None:
    data = (SHARED / "public" / name).read_bytes()
    assert [fmt.name for fmt in all_formats() if fmt.sniff(name, data[: 64 << 10])] == ["slurm-sacct"]
    sink = load(FORMAT, data, store)
    assert (sink.rows_in, sink.rejects) == (records, [])
    assert store.value("SELECT count(*) FROM jobs") == jobs
    told = dict(store.frame("SELECT split_part(source_state, ' ', 1), count(*) FROM jobs GROUP BY ALL").rows())
    assert {state: told[state] for state in states} == states


def test_public_waits_are_those_published(store: Store) -> None:
    load(FORMAT, (SHARED / "public" / "xdmod" / "phillips.log").read_bytes(), store)
    # published as Start - Submit of all jobs; of the 239 cancelled before they started Slurm wrote End as Start
    hours = "coalesce(wait_s, epoch(end_ts) - epoch(queued_ts)) / 3600"
    told = store.frame(f"SELECT median({hours}) AS m, quantile_cont({hours}, 0.95) AS p FROM attempts").row(0)
    assert told == (pytest.approx(5.1, abs=0.1), pytest.approx(9.6, abs=0.1))
    assert store.value("SELECT count(*) FROM jobs WHERE gpus > 0") > 0
    assert store.value("SELECT count(*) FROM attempts WHERE start_ts IS NULL") == 239


def test_public_rows_without_a_header(store: Store) -> None:
    data = (SHARED / "public" / "sonar" / "sacct_output.txt").read_bytes()
    with pytest.raises(InputError, match="without a header"):
        load(FORMAT, data, store)
    sink = load(with_columns(SONAR), data, store)
    assert (sink.rows_in, sink.rejects) == (301, [])
    assert store.value("SELECT count(*) FROM jobs WHERE gpu_type = 'a100'") > 0


def test_generated_accounting_through_the_ordinary_ingest(tmp_path: Path, root: Path) -> None:
    """A file of the generator's kind, ingested, ingested again, and grown by a day."""
    given = tmp_path / "logs"
    given.mkdir()
    shutil.copy(LAB / "sacct_XD_P_delim.txt", given / "sacct-1.txt")
    shutil.copy(LAB / "sacct_state_CA.txt", given / "sacct-2.txt")
    report = ingest([given], tmp_path / "x.duckdb")
    assert [(s.format, s.status, s.rows_in) for s in report.sources] == [
        ("slurm-sacct", "loaded", 469),
        ("slurm-sacct", "loaded", 85),
    ]
    assert [s.status for s in ingest([given], tmp_path / "x.duckdb").sources] == ["unchanged"] * 2
    with Store(tmp_path / "x.duckdb") as opened:
        assert opened.value("SELECT count(*) FROM jobs") == opened.value("SELECT count(DISTINCT job) FROM attempts")
        assert opened.value("SELECT source_format FROM clusters") == slurm_sacct.FORMAT.name
    assert root.is_dir()
