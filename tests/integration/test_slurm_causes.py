"""Why jobs of Slurm waited: a few jobs worked out by hand, and a real cluster whose every job's purpose is known."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.slurm_loading import SHARED

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import Analysis

LAB = SHARED / "22.05.8"
HEADER = "JobIDRaw|Partition|State|Submit|Eligible|Start|End|Priority|Reason|AllocTRES|NNodes|NodeList"
# submitted, eligible, started, ended, priority, reason, GPUs, nodes; two machines of which no file says how many GPUs
JOBS = {
    "1": (0, 0, 0, 100, 10, "None", 4, "n1"),
    "2": (0, 0, 0, 38, 10, "None", 4, "n2"),
    # n2 has 4 free from 38 on, but for 5 s of job 5 and 5 s of job 6: 28 + 10 s capacity, 52 s behind job 4
    "3": (10, 10, 100, 150, 100, "None", 4, "n1"),
    "4": (30, 30, 150, 180, 200, "None", 8, "n[1-2]"),
    "5": (40, 40, 60, 65, 5, "None", 1, "n2"),
    "6": (40, 40, 70, 75, 5, "QOSMaxGRESPerUser", 1, "n2"),
    "7": (200, 200, 207, 210, 5, "None", 1, "n2"),
    "8": (300, 345, 345, 350, 5, "BeginTime", 1, "n2"),
    "9": (300, 310, 320, 330, 5, "Resources", 1, "n2"),
}
REQUEUED = (("REQUEUED", 300, 300, 300, 310, 5, "None", 1, "n1"), ("COMPLETED", 310, 431, 431, 440, 5, "None", 1, "n1"))
BEGIN = 1_790_000_000


def record(job: str, state: str, *fields: Any) -> str:
    *times, priority, reason, gpus, nodes = fields
    stamps = "|".join(str(BEGIN + second) for second in times)
    return f"{job}|gpu|{state}|{stamps}|{priority}|{reason}|gres/gpu={gpus}|{2 if '[' in nodes else 1}|{nodes}"


def rows(result: Analysis, table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    found = result.table(table).frame.to_dicts()
    return {(*(v for v in row.values() if isinstance(v, str)),): row for row in found}


def store_of(tmp_path: Path) -> Path:
    lines = [HEADER, *(record(job, "COMPLETED", *fields) for job, fields in JOBS.items())]
    lines += [record("10", *fields) for fields in REQUEUED]
    (tmp_path / "sacct.txt").write_text("\n".join(lines) + "\n")
    db = tmp_path / "x.duckdb"
    assert not ingest([tmp_path / "sacct.txt"], db).failed
    return db


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    with Store(store_of(tmp_path_factory.mktemp("by-hand"))) as store:
        return analyze(store, Options(sections=("overview", "delays")))


def test_waits_worked_out_by_hand(by_hand: Analysis) -> None:
    found = {(row["job"], row["attempt"]): row for row in by_hand.table("queue_delays").frame.to_dicts()}
    causes = ("ineligible_s", "fair_share_s", "capacity_s", "fragmentation_s", "scheduler_s")
    assert {key: [row[cause] for cause in causes] for key, row in found.items() if row["wait_s"]} == {
        ("3", 0): [0, 0, 38, 0, 52],
        ("4", 0): [0, 0, 120, 0, 0],
        ("5", 0): [0, 0, 0, 0, 20],
        ("6", 0): [0, 0, 0, 0, 30],
        ("7", 0): [0, 0, 0, 0, 7],
        ("8", 0): [45, 0, 0, 0, 0],
        ("9", 0): [10, 0, 0, 0, 10],
        ("10", 1): [121, 0, 0, 0, 0],
    }
    free = rows(by_hand, "delay_while_free")
    assert {key: (row["attempts"], round(row["hours"] * 3600)) for key, row in free.items()} == {
        ("priority", "replay"): (2, 72),
        ("quota or priority", "reason"): (1, 30),
        ("not stated", "neither"): (2, 17),
    }
    before = rows(by_hand, "delay_before_eligible")
    assert {key: (row["attempts"], round(row["hours"] * 3600)) for key, row in before.items()} == {
        ("requeue_backoff", "attempt number"): (1, 121),
        ("begin_time", "accounting", "BeginTime"): (1, 45),
        ("not stated", "Resources"): (1, 10),
    }


def seconds(result: Analysis, *names: str) -> dict[str, list[float]]:
    found = result.table("queue_delays").frame.to_dicts()
    return {row["job"]: [row[name] for name in names] for row in found if row["wait_s"]}


def stamp(second: int) -> str:
    return datetime.fromtimestamp(BEGIN + second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def test_gpus_are_held_from_their_allocation_on_not_only_from_the_start(tmp_path: Path) -> None:
    """n2 boots for job 2 from 20 to 60: until then accounting says that it waits, and sinfo that it has its GPUs."""
    jobs = {
        "1": (0, 0, 0, 100, 10, "None", 4, "n1"),
        "2": (10, 10, 60, 100, 10, "None", 4, "n2"),
        "3": (30, 30, 100, 120, 10, "None", 4, "n2"),
    }
    lines = [HEADER, *(record(job, "COMPLETED", *fields) for job, fields in jobs.items())]
    (tmp_path / "sacct.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "slurmctld.log").write_text(
        f"[{stamp(20)}.000] sched/backfill: _start_job: Started JobId=2 in gpu on n2\n"
        f"[{stamp(60)}.000] job_time_limit: Configuration for JobId=2 complete\n"
        f"[{stamp(60)}.000] Resetting JobId=2 start time for node power up\n"
    )
    said = {0: (4, 0), 15: (4, 0), 25: (4, 4), 45: (4, 4), 80: (4, 4), 110: (0, 4)}
    samples = "".join(
        f"{BEGIN + at}.0|{name}|mixed|gpu:4 |gpu:{used} |0/4/0/4|0|none\n"
        for at, both in said.items()
        for name, used in zip(("n1", "n2"), both, strict=True)
    )
    (tmp_path / "sinfo_samples.txt").write_text(samples)
    assert not ingest([tmp_path], tmp_path / "x.duckdb").failed
    with Store(tmp_path / "x.duckdb") as store:
        result = analyze(store, Options(tables=("sampled_occupancy", "queue_delays", "overview")))
    whole = result.table("sampled_occupancy").frame.row(0, named=True)
    assert (whole["samples"], whole["agree_pct"]) == (12, 100)
    # job 2 waits 10 s for the scheduler and 40 for its machine; job 3 for GPUs all the time
    assert seconds(result, "capacity_s", "fragmentation_s", "scheduler_s") == {"2": [0, 0, 50], "3": [70, 0, 0]}
    hours = result.table("overview").frame.row(0, named=True)["gpu_hours"]
    assert hours == pytest.approx(4 * (100 + 80 + 20) / 3600)


ASSOC = """Cluster|Account|User|Partition|Share|ParentName|GrpTRES|MaxTRES|QOS
lab|root|||1|||||normal
lab|nlp|||1|root|gres/gpu=4||normal
lab|speech|||1|nlp|||normal
lab|speech|carol||1||gres/gpu=2||normal
lab|vision|||1|root|||normal
"""
QOS = "Name|Priority|GrpTRES|MaxTRESPU\nnormal|1||\ncapped|1||gres/gpu=4\n"


def test_limits_of_accounts_users_and_qos_are_fair_share(tmp_path: Path) -> None:
    """n1 and n2 have 8 GPUs each; four of them are never in use, so that nothing but limits keeps anybody waiting."""
    owned = {
        # account, user, QOS and the limit that keeps it waiting while the first job of the pair runs
        "1": ("nlp", "alice", "normal", (0, 0, 100, 4)),
        "2": ("speech", "bob", "normal", (10, 100, 110, 1)),  # nlp's 4, which its child's jobs count to
        "3": ("vision", "dave", "capped", (0, 0, 50, 3)),
        "4": ("vision", "dave", "capped", (5, 50, 60, 2)),  # 4 of dave's in this QOS
        "5": ("vision", "erin", "capped", (5, 20, 60, 2)),  # nobody's limit: the scheduler's own 15 s
        "6": ("vision", "dave", "normal", (5, 20, 60, 2)),  # another QOS: likewise
    }
    lines = [f"Account|User|QOS|{HEADER}"]
    for job, (account, user, qos, (queued, start, end, gpus)) in owned.items():
        row = record(job, "COMPLETED", queued, queued, start, end, 10, "None", gpus, "n1" if job in "12" else "n2")
        lines.append(f"{account}|{user}|{qos}|{row}")
    (tmp_path / "sacct.txt").write_text("\n".join(lines) + "\n")
    nodes = "".join(f"NodeName=n{n} CPUTot=64 Gres=gpu:8 State=IDLE Partitions=gpu\n" for n in (1, 2))
    (tmp_path / "nodes.txt").write_text(nodes)
    (tmp_path / "sacctmgr_assoc.txt").write_text(ASSOC)
    (tmp_path / "sacctmgr_qos.txt").write_text(QOS)
    assert not ingest([tmp_path], tmp_path / "x.duckdb").failed
    with Store(tmp_path / "x.duckdb") as store:
        result = analyze(store, Options(tables=("queue_delays",)))
    assert seconds(result, "fair_share_s", "capacity_s", "fragmentation_s", "scheduler_s") == {
        "2": [90, 0, 0, 0],
        "4": [45, 0, 0, 0],
        "5": [0, 0, 0, 15],
        "6": [0, 0, 0, 15],
    }


def test_without_reasons_and_limits_waits_may_have_been_for_a_limit(tmp_path: Path) -> None:
    """The same jobs without the column Reason: fair share may be the time in which one more would be more than ever.

    The partition never ran three jobs at once, and ran two until 38, from 60 to 65 and from 70 to 75; its 8 GPUs were
    all in use once, so that they had no limit.
    """
    lines = [HEADER, *(record(job, "COMPLETED", *fields) for job, fields in JOBS.items())]
    cells = [line.split("|") for line in lines]
    at = cells[0].index("Reason")
    (tmp_path / "sacct.txt").write_text("".join("|".join([*row[:at], *row[at + 1 :]]) + "\n" for row in cells))
    assert not ingest([tmp_path], tmp_path / "x.duckdb").failed
    with Store(tmp_path / "x.duckdb") as store:
        result = analyze(store, Options(tables=("queue_delays",)))
        given = analyze(store, Options(tables=("queue_delays",), quotas={"gpu": 16}))
    names = ("fair_share_low_s", "fair_share_high_s", "capacity_low_s", "scheduler_low_s")
    found = seconds(result, *names)
    assert {job: found[job] for job in "345"} == {"3": [0, 38, 0, 14], "4": [0, 18, 102, 0], "5": [0, 0, 0, 20]}
    assert any("have no reasons for waits" in str(warning) for warning in result.warnings)
    assert seconds(given, *names[:2])["4"] == [0, 0]


def test_limits_that_are_named_and_not_loaded_are_requested(by_hand: Analysis) -> None:
    assert any("1 attempt waited for a limit" in warning and "sacctmgr" in warning for warning in by_hand.warnings)


def test_samples_split_what_accounting_and_the_replay_take_as_a_whole(tmp_path: Path) -> None:
    db = store_of(tmp_path)
    reasons = {42: "Priority", 50: "Priority", 55: "Priority", 66: "QOSMaxGRESPerUser"}
    with Store(db, write=True) as store:
        for second, reason in reasons.items():
            store.execute(
                "INSERT INTO queue_samples (cluster, ts, job, reason, source) "
                "SELECT cluster, to_timestamp(?), '6', ?, 9 FROM clusters",
                [BEGIN + second, reason],
            ).fetchall()
    with Store(db) as store:
        found = analyze(store, Options(tables=("delay_while_free", "delay_by_size")))
    free = rows(found, "delay_while_free")
    assert {key: (row["attempts"], round(row["hours"] * 3600, 3), row["samples"]) for key, row in free.items()} == {
        ("priority", "samples"): (1, 22.5, 3),
        ("quota", "samples"): (1, 7.5, 1),
        ("quota or priority", "reason"): (0, 0, 4),
        ("priority", "replay"): (2, 72, 0),
        ("not stated", "neither"): (2, 17, 0),
    }
    assert free["quota or priority", "reason"]["agree_pct"] == 100
    whole = rows(found, "delay_by_size")["all",]["scheduler_h"]
    assert sum(row["hours"] for row in free.values()) == pytest.approx(whole)


def test_nodes_and_partitions_that_no_file_tells_are_inferred_and_said_to_be(by_hand: Analysis) -> None:
    overview = by_hand.table("overview").frame.to_dicts()[0]
    assert (overview["machines"], overview["gpus"], overview["gpus_labelled"]) == (2, 8, None)
    assert any("the GPUs of 2 nodes are inferred" in warning for warning in by_hand.warnings)
    assert any("the nodes of 1 partition are inferred" in warning for warning in by_hand.warnings)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Analysis]:
    """The real cluster with samples of its queue, and without."""
    if not LAB.is_dir():
        pytest.skip("the real files are not on this machine")
    site = [LAB / name for name in ("sacct_XD_P_delim.txt", "scontrol_node.txt", "slurm.conf", "topology.conf")]
    samples = [
        *(LAB / "squeue_samples.txt.gz", LAB / "sinfo_samples.txt", LAB / "sacctmgr_event.txt"),
        *(LAB / "scontrol_job_detail.txt.gz", LAB / "slurmctld.log", LAB / "sacctmgr_assoc.txt"),
        LAB / "sacctmgr_qos.txt",
    ]
    found = {}
    for name, files in (("sampled", site + samples), ("alone", site)):
        db = tmp_path_factory.mktemp(name) / "x.duckdb"
        assert not ingest(files, db).failed
        with Store(db) as store:
            found[name] = analyze(store, Options(sections=("delays", "locality", "quality")))
    return found


# what each scenario of the lab is about (manifest.jsonl); preempted, failed and requeued jobs wait for a back-off
_KINDS = {
    **{"hold": 2, "begin_time": 1, "dependency": 7, "array_throttle": 19, "requeue_backoff": 9},
    # tasks of arrays without a throttle, which become eligible when the scheduler next looks, a second later
    "not stated": 17,
}


@pytest.mark.parametrize("name", ["sampled", "alone"])
def test_what_kept_the_labs_jobs_from_being_eligible(lab: dict[str, Analysis], name: str) -> None:
    scenarios = {
        line["jobid"]: line["scenario"] for line in map(json.loads, (LAB / "manifest.jsonl").read_text().splitlines())
    }
    assert {"begin", "array-throttle", "held-by-user", "held-by-admin"} <= set(scenarios.values())
    frame = lab[name].table("delay_before_eligible").frame
    totals: dict[str, int] = {}
    for row in frame.to_dicts():
        totals[row["category"]] = totals.get(row["category"], 0) + row["attempts"]
    assert totals == _KINDS


def test_what_the_replay_calls_priority_slurm_called_so_too(lab: dict[str, Analysis]) -> None:
    """Of the samples that the replay puts behind a higher priority, Slurm gave that reason for 94.8 %."""
    priority = rows(lab["sampled"], "delay_while_free")["priority", "replay"]
    assert priority["samples"] > 5000
    assert priority["agree_pct"] > 90


def test_what_the_replay_puts_down_to_a_limit_slurm_did_too(lab: dict[str, Analysis]) -> None:
    """Of the samples at which a limit on GPUs is replayed as reached, Slurm named one for 89 %.

    It names limits in many more, since the reason stays until the job is looked at again; and only in 34 % of the
    samples in waits whose last reason is a limit, so that this reason alone is no measure of time.
    """
    said = rows(lab["sampled"], "sampled_reasons")
    over = {reason: row["samples"] * row["fair_share_pct"] / 100 for (reason,), row in said.items()}
    limits = over["AssocGrpGRES"] + over["QOSMaxGRESPerUser"]
    assert limits > 700
    assert limits > 0.85 * sum(over.values())
    free = rows(lab["sampled"], "delay_while_free")
    assert free["quota or priority", "reason"]["agree_pct"] > 75


def test_locality_in_leaf_switches(lab: dict[str, Analysis]) -> None:
    whole = rows(lab["alone"], "locality_by_size")["all",]
    assert whole["racks_known"] == whole["attempts"] == 186
    assert whole["racks_mean"] == pytest.approx(1.06, abs=0.01)
    assert "5 from the logs" in lab["alone"].table("locality_by_size").population


def test_the_replay_holds_what_sinfo_saw(lab: dict[str, Analysis]) -> None:
    """With exact splits of gangs; tests/integration/test_slurm_files.py says what the other samples are."""
    machines = {row["machine"]: row for row in lab["sampled"].table("sampled_occupancy").frame.to_dicts()}
    gpus = [row for name, row in machines.items() if name.startswith("gpu")]
    agree = sum(row["agree_pct"] * row["samples"] for row in gpus) / sum(row["samples"] for row in gpus)
    assert sum(row["samples"] for row in gpus) > 600
    # 95.3 % where GPUs are counted from the start on only, gpu007 then 87 %
    assert agree >= 97, agree
    assert machines["gpu007"]["agree_pct"] == machines["gpu008"]["agree_pct"] == 100
    assert lab["alone"].table("sampled_occupancy").frame.is_empty()
    assert "no rows" in lab["alone"].table("sampled_occupancy").notes[0]
