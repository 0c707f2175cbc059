"""A real Slurm, started for these tests: every job that ran on it, as `gpuctl ingest` finds it in the accounting.

What is wanted comes from who submitted the jobs and from the jobs themselves, not from Slurm (labs/slurm).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from gpuctl.store.database import Store
from labs.slurm import lab as slurm
from labs.slurm import workload
from tests import lab_requirements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(600)]

CLOSE_S = 2.0
"""Slurm keeps whole seconds, and looks at its queue once a second."""
LAUNCH_S = 6.0
"""From when Slurm starts a job to when its script looks at the clock, where both cores are busy: 2.4 s were seen."""
STATES = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "killed",
    "TIMEOUT": "timeout",
    "NODE_FAIL": "node_fail",
    "PREEMPTED": "preempted",
    "REQUEUED": "killed",
    "RUNNING": "running",
    "PENDING": "pending",
}
LACKS: dict[str, frozenset[str]] = {
    "text": frozenset(),
    "json": frozenset({"cpu_s", "started_as"}),  # of 22.05 alone: no SubmitLine, and a TotalCPU of 0
    "dump": frozenset({"elapsed_s", "cpu_s", "stated_gpu_s"}),  # job_table has neither Elapsed nor TotalCPU
}
"""Columns of attempts that a form of the accounting cannot fill."""
ODD_COLUMNS = "End,State,JobName,AllocTRES,ReqTRES,JobIDRaw,Submit,Start"
ALL_STATES = "CA,CD,F,TO,NF,PR,OOM,BF,DL,RQ,RV,RS,PD,R,S"


@dataclass(frozen=True)
class Found:
    """What came of one run of the lab.

    Attributes:
        wanted: by the id that Slurm shows.
        runs: by number and restarts.
        down: when gpu004 went down and came back, seconds since the epoch.
        version: of Slurm.
        halfway: report of the ingest while jobs were running.
        final: report of the ingest after all had ended.
        again: report of the same once more.
        stores: one for each form that the accounting was had in.
        cluster: Slurm itself, still there.
    """

    wanted: dict[str, workload.Wanted]
    runs: dict[tuple[str, int], workload.Run]
    down: list[float]
    version: tuple[int, ...]
    halfway: dict[str, Any]
    final: dict[str, Any]
    again: dict[str, Any]
    stores: dict[str, Path]
    cluster: slurm.Lab


@pytest.fixture(scope="session")
def lab(gpuctl: Gpuctl, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    """Run the whole lab once; a minute."""
    lab_requirements.skip_or_fail(slurm.missing())
    folder = tmp_path_factory.mktemp("slurm")
    with slurm.Lab() as cluster:
        yield _drive(cluster, gpuctl, root, folder)


def _drive(cluster: slurm.Lab, gpuctl: Gpuctl, root: Path, folder: Path) -> Found:
    live = folder / "live.duckdb"
    yesterday = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%d")
    reports: list[dict[str, Any]] = []

    def ingest() -> None:
        done = gpuctl("ingest", "--from", "sacct", "--since", yesterday, "--db", live, "--json", env=cluster.env)
        reports.append(json.loads(done.stdout))

    samples = folder / "samples"
    with _sampling(cluster, root, samples):
        driver = workload.drive(cluster, ingest)
    ingest()
    ingest()
    gpuctl("ingest", samples, "--db", live, "--cluster", "lab")
    stores = {"live": live}
    for form, file in _exports(cluster, folder).items():
        stores[form] = folder / f"{form}.duckdb"
        gpuctl("ingest", file, "--db", stores[form], "--cluster", "lab", "--timezone", "UTC")
    version = tuple(int(number) for number in re.findall(r"\d+", cluster.run("sacct", "--version")))
    return Found(driver.wanted, workload.runs(cluster), driver.down, version, *reports, stores, cluster)


@contextmanager
def _sampling(cluster: slurm.Lab, root: Path, folder: Path) -> Iterator[None]:
    """Run `gpuctl sample` meanwhile."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuctl", "sample", "--output", str(folder), "--interval", "1"],
        env={**cluster.env, "PYTHONPATH": str(root)}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
        assert process.poll() is None, "gpuctl sample has ended by itself"
    finally:
        process.terminate()
        assert process.wait(30) == 0


def _exports(cluster: slurm.Lab, folder: Path) -> dict[str, Path]:
    """The same accounting in the other forms that administrators have it in."""
    every = ("--allusers", "--duplicates", "--starttime=2020-01-01", "--endtime=2038-01-01", f"--state={ALL_STATES}")
    made = {
        "text": cluster.run("sacct", *every, "--parsable2", "--format=ALL"),
        "odd": cluster.run("sacct", *every, "--parsable", f"--format={ODD_COLUMNS}"),
        "json": cluster.run("sacct", *every, "--json"),
        "dump": cluster.dump(
            "lab_job_table", "lab_step_table", "lab_assoc_table", "lab_event_table", "qos_table", "tres_table"
        ),
    }
    places = {}
    for form, text in made.items():
        places[form] = folder / form / {"json": "sacct.json", "dump": "slurmdbd.sql"}.get(form, "sacct.txt")
        places[form].parent.mkdir()
        places[form].write_text(text, "utf-8")
    return places


def rows(store: Path, sql: str) -> list[dict[str, Any]]:
    with Store(store) as opened:
        return opened.frame(sql).to_dicts()


KEY = """CASE WHEN array_job IS NOT NULL THEN array_job || '_' || array_task
              WHEN het_job IS NOT NULL THEN het_job || '+' || het_offset ELSE job END"""
TIMES = (
    "epoch(queued_ts) AS queued, epoch(a.eligible_ts) AS eligible, epoch(a.start_ts) AS start, epoch(a.end_ts) AS ended"
)


@pytest.fixture(scope="session")
def jobs(lab: Found) -> dict[str, dict[str, Any]]:
    """The jobs of the live store, by the id that Slurm shows."""
    found = rows(lab.stores["live"], f"SELECT {KEY} AS key, * FROM jobs")
    assert len({job["key"] for job in found}) == len(found)
    return {job["key"]: job for job in found}


@pytest.fixture(scope="session")
def attempts(lab: Found) -> dict[str, list[dict[str, Any]]]:
    """The attempts of each job of the live store, in order."""
    found = rows(
        lab.stores["live"],
        f"SELECT {KEY} AS key, a.*, {TIMES} FROM attempts a JOIN jobs USING (cluster, job) ORDER BY attempt",
    )
    by_job: dict[str, list[dict[str, Any]]] = {}
    for attempt in found:
        by_job.setdefault(attempt["key"], []).append(attempt)
    return by_job


def all_close(pairs: dict[str, tuple[float | None, float | None]], within: float = CLOSE_S) -> None:
    """Fail with every pair of times that are further apart."""
    far = {
        name: (found, wanted)
        for name, (found, wanted) in pairs.items()
        if found is None or wanted is None or abs(found - wanted) > within
    }
    assert not far


def test_every_job_is_there_and_no_other(lab: Found, jobs: dict[str, dict[str, Any]]) -> None:
    assert set(jobs) == set(lab.wanted)
    assert len(jobs) >= 50


def test_who_where_and_what(lab: Found, jobs: dict[str, dict[str, Any]]) -> None:
    accounts = {"games": "vision", "mail": "vision", "news": "nlp", "uucp": "nlp"}
    for key, wanted in lab.wanted.items():
        job = jobs[key]
        assert (job["user"], job["account"]) == (wanted.user, accounts[wanted.user]), key
        assert (job["queue"], job["partition"]) == (wanted.partition, wanted.partition), key
        assert job["nodes"] == wanted.nodes, (key, wanted.kind)
        assert job["qos"] == ("high" if wanted.kind == "preemptor" else job["qos"]), key
        if wanted.raw_id:
            assert job["job"] == wanted.raw_id


def test_names_of_any_kind_stay_whole(lab: Found, jobs: dict[str, dict[str, Any]]) -> None:
    """Debian 12's Slurm itself turns what Latin-1 lacks into question marks, and quotes into back-ticks."""
    for key, wanted in lab.wanted.items():
        stored = wanted.name.encode("latin-1", "replace").decode("latin-1").replace('"', "`")
        assert jobs[key]["name"] in {wanted.name, stored}, key


def test_states_of_jobs_and_attempts(
    lab: Found, jobs: dict[str, dict[str, Any]], attempts: dict[str, list[dict[str, Any]]]
) -> None:
    found = {key: [a["source_state"].split()[0] for a in attempts[key]] for key in jobs}
    assert found == {key: wanted.attempts for key, wanted in lab.wanted.items()}
    for key, wanted in lab.wanted.items():
        assert [a["state"] for a in attempts[key]] == [STATES[state] for state in wanted.attempts]
        assert [a["attempt"] for a in attempts[key]] == list(range(len(wanted.attempts)))
        assert jobs[key]["state"] == STATES[wanted.attempts[-1]]
        assert jobs[key]["attempts"] == len(wanted.attempts)


def test_exit_codes_and_signals(
    lab: Found, jobs: dict[str, dict[str, Any]], attempts: dict[str, list[dict[str, Any]]]
) -> None:
    folds = lab.version < (25, 11)  # sacct's text took 128 off codes of 128 and more until then
    for key, wanted in lab.wanted.items():
        for attempt, exits in zip(attempts[key], wanted.exits, strict=True):
            if exits is None or attempt["state"] in {"pending", "running"}:
                continue
            code = exits[0] - 128 if folds and exits[0] >= 128 else exits[0]
            assert (attempt["exit_code"], attempt["exit_signal"]) == (code, exits[1]), (key, wanted.kind)
        assert (jobs[key]["derived_exit_code"] or 0) == wanted.derived, (key, wanted.kind)


def test_gpus_are_those_requested(lab: Found, jobs: dict[str, dict[str, Any]]) -> None:
    assert {key: job["gpus"] for key, job in jobs.items()} == {key: w.asked for key, w in lab.wanted.items()}


def test_each_attempt_stands_on_the_machines_it_ran_on(lab: Found, attempts: dict[str, list[dict[str, Any]]]) -> None:
    placed: dict[tuple[str, int], dict[str, tuple[float, bool | None]]] = {}
    for row in rows(lab.stores["live"], "SELECT * FROM placements"):
        placed.setdefault((row["job"], row["attempt"]), {})[row["machine"]] = row["gpus"], row["estimated"]
    for key, wanted in lab.wanted.items():
        for attempt in attempts[key]:
            found = placed.get((attempt["job"], attempt["attempt"]), {})
            run = lab.runs.get((attempt["job"], attempt["attempt"]))
            if run is None:
                # no script ran: it never started, or it is the second part of a heterogeneous job
                assert not found or key.endswith("+1"), (key, wanted.kind)
                continue
            assert set(found) == run.machines, (key, wanted.kind)
            assert sum(gpus for gpus, _ in found.values()) == wanted.asked, (key, wanted.kind)
            assert attempt["servers"] == len(run.machines)
            if len(found) == 1:
                assert found[run.machine] == (len(run.gpus), found[run.machine][1]), (key, wanted.kind)
                assert not found[run.machine][1]
            elif wanted.kind == "uneven":
                assert all(estimated for _, estimated in found.values()), "4 + 2 is not in the accounting"


def _launched(start: float | None, begun: float | None) -> bool:
    """Whether a script began right after the start, which Slurm keeps in whole seconds."""
    return start is not None and begun is not None and -1 <= begun - start <= LAUNCH_S


def test_starts_and_ends_are_those_of_the_scripts(lab: Found, attempts: dict[str, list[dict[str, Any]]]) -> None:
    starts: dict[str, tuple[float | None, float | None]] = {}
    ends: dict[str, tuple[float | None, float | None]] = {}
    for key, wanted in lab.wanted.items():
        for attempt in attempts[key]:
            name = f"{key} {attempt['attempt']} {wanted.kind}"
            run = lab.runs.get((attempt["job"], attempt["attempt"]))
            if run is not None:
                starts[name] = attempt["start"], run.start
                if run.end is not None:
                    ends[name] = attempt["ended"], run.end
            elif not key.endswith("+1"):
                assert attempt["start"] is None, name
        if wanted.ended_at is not None:
            ends[f"{key} {wanted.kind}"] = attempts[key][-1]["ended"], wanted.ended_at
    assert len(starts) >= 45
    assert len(ends) >= 40
    late = {name: (found, begun) for name, (found, begun) in starts.items() if not _launched(found, begun)}
    assert not late
    all_close(ends, within=CLOSE_S + 1)  # KillWait


def test_submissions_are_those_of_the_driver(lab: Found, attempts: dict[str, list[dict[str, Any]]]) -> None:
    for key, wanted in lab.wanted.items():
        before, after = wanted.submitted
        assert int(before) <= attempts[key][0]["queued"] <= after, (key, wanted.kind)
        for first, second in zip(attempts[key], attempts[key][1:], strict=False):
            assert abs(second["queued"] - first["ended"]) <= 1, (key, wanted.kind)
        for attempt in attempts[key]:
            waited = None if attempt["start"] is None else attempt["start"] - attempt["queued"]
            assert attempt["wait_s"] == waited, (key, wanted.kind)
            lasted = None if None in {attempt["start"], attempt["ended"]} else attempt["ended"] - attempt["start"]
            assert attempt["run_s"] == lasted, (key, wanted.kind)


def test_a_hold_of_a_job_delays_its_eligibility(lab: Found, attempts: dict[str, list[dict[str, Any]]]) -> None:
    """Holds, begin times, dependencies, array throttles, and the pause after a requeue."""
    pairs: dict[str, tuple[float | None, float | None]] = {}
    for key, wanted in lab.wanted.items():
        first, last = attempts[key][0], attempts[key][-1]
        until = wanted.held_until
        if wanted.after:
            until = lab.runs[wanted.after, 0].end
        elif wanted.kind == "requeued, exit 99":
            until = (lab.runs[key, 0].end or 0) + workload.BACKOFF_S
        elif wanted.kind == "array" and int(key.rpartition("_")[2]) >= 2:
            until = _freed(lab, attempts, key)
        elif wanted.kind in {"cancelled, held", "dependency, never", "pending, held"}:
            assert last["eligible"] is None, (key, wanted.kind)
            continue
        pairs[f"{key} {wanted.kind}"] = last["eligible"], until or wanted.submitted[1]
        if len(attempts[key]) > 1:
            pairs[f"{key} {wanted.kind}, first"] = first["eligible"], wanted.submitted[1]
    assert sum(1 for w in lab.wanted.values() if w.held_until or w.after) >= 6
    all_close(pairs)


def _freed(lab: Found, attempts: dict[str, list[dict[str, Any]]], key: str) -> float:
    """When one of the two places of the array became free for this task: its tasks start in their order."""
    array, _, task = key.partition("_")
    ends = sorted(lab.runs[attempts[f"{array}_{other}"][0]["job"], 0].end or 0 for other in range(6))
    return ends[int(task) - 2]


def test_half_way_it_was_all_there_too_and_nothing_is_there_twice(lab: Found) -> None:
    def loaded(report: dict[str, Any]) -> dict[str, tuple[int, int]]:
        return {
            s["path"].rpartition("/")[2]: (s["rows_loaded"], s["rows_rejected"])
            for s in report["sources"]
            if s["format"] == "slurm-sacct"
        }

    today = max(loaded(lab.final))
    assert 0 < loaded(lab.halfway)[today][0] < loaded(lab.final)[today][0]
    assert {s["status"] for s in lab.final["sources"] if s["path"].endswith(today)} == {"replaced"}
    assert {s["status"] for s in lab.again["sources"] if s["path"].endswith(today)} <= {"replaced", "unchanged"}
    assert not any(rejected for report in (lab.halfway, lab.final) for _, rejected in loaded(report).values())
    assert not lab.final["failed"]
    twice = "SELECT job, attempt FROM attempts GROUP BY ALL HAVING count(*) > 1"
    assert rows(lab.stores["live"], twice) == []


def test_the_machines_and_when_one_was_down(lab: Found) -> None:
    machines = {m["machine"]: (m["gpus"], m["rack"]) for m in rows(lab.stores["live"], "SELECT * FROM machines")}
    assert machines == {
        "gpu001": (8, "leaf1"), "gpu002": (8, "leaf1"), "gpu003": (4, "leaf2"), "gpu004": (4, "leaf3"),
        "c1-1": (0, "leaf3"),
    }  # fmt: skip
    events = rows(
        lab.stores["live"],
        "SELECT epoch(from_ts) AS down, epoch(to_ts) AS up, reason FROM machine_events WHERE state LIKE 'DOWN%'",
    )
    assert len(events) == 1
    assert events[0]["reason"] == "XID 79: fallen | off the bus"
    all_close({"down": (events[0]["down"], lab.down[0]), "up": (events[0]["up"], lab.down[1])})


def test_samples_name_the_reasons(lab: Found, jobs: dict[str, dict[str, Any]]) -> None:
    """Every sample of a job's reason falls into the time that the driver kept it waiting for that reason."""
    reasons = {
        "held, released": "JobHeldUser",
        "cancelled, held": "JobHeldUser",
        "begin": "BeginTime",
        "dependency": "Dependency",
        "cancelled, pending": "Resources",
    }
    found: dict[str, set[str]] = {}
    for row in rows(lab.stores["live"], "SELECT job, reason FROM queue_samples"):
        found.setdefault(row["job"], set()).add(row["reason"])
    for key, wanted in lab.wanted.items():
        if wanted.kind in reasons:
            seen = " ".join(found.get(jobs[key]["job"], set()))
            assert reasons[wanted.kind] in seen or (wanted.kind == "cancelled, pending" and "Priority" in seen), (
                wanted.kind, seen,
            )  # fmt: skip


def test_occupancy_from_accounting_is_what_sinfo_saw(lab: Found) -> None:
    """To the second that both know: at least 95 of 100 samples; the uneven job's split is an estimate."""
    uneven = next(w for w in lab.wanted.values() if w.kind == "uneven")
    run = lab.runs[uneven.job, 0]
    spans = rows(
        lab.stores["live"],
        "SELECT machine, p.gpus, epoch(start_ts) AS start, coalesce(epoch(end_ts), 1e99) AS ended "
        "FROM placements p JOIN attempts a USING (cluster, job, attempt) WHERE start_ts IS NOT NULL",
    )
    good = bad = 0
    for sample in rows(lab.stores["live"], "SELECT machine, epoch(ts) AS at, gpus_used FROM machine_samples"):
        if sample["gpus_used"] is None or run.start - 2 <= sample["at"] <= (run.end or 0) + 2:
            continue
        here = [s for s in spans if s["machine"] == sample["machine"]]
        moments = (sample["at"] + shift for shift in (-1, 0, 1))
        rebuilt = {sum(s["gpus"] for s in here if s["start"] <= at < s["ended"]) for at in moments}
        good += sample["gpus_used"] in rebuilt
        bad += sample["gpus_used"] not in rebuilt
    assert good + bad >= 100
    assert good >= 0.95 * (good + bad), (good, bad)


@pytest.mark.parametrize("order", ["in order", "backwards", "half first"])
def test_attempts_of_several_days_make_one_job(lab: Found, gpuctl: Gpuctl, tmp_path: Path, order: str) -> None:
    """First attempts in the file of one day, later ones in that of the next, which may be read half-way."""
    head, *records = _records(max(lab.stores["live"].with_suffix(".sacct").glob("lab/sacct-*")))
    state = head.split("\x1f").index("State")
    early = [r for r in records if r.split("\x1f")[state] in {"REQUEUED", "PREEMPTED", "NODE_FAIL"}]
    late = [r for r in records if r not in early]
    assert len(early) >= 5
    days = {"sacct-2026-01-01.txt": early, "sacct-2026-01-02.txt": late}
    for name, some in days.items():
        (tmp_path / name).write_text(head + "".join(some))
    store = tmp_path / "days.duckdb"
    files = [tmp_path / name for name in days]
    if order == "half first":
        files[1].write_text(head + "".join(late[len(late) // 2 :]))
        gpuctl("ingest", *files, "--db", store, "--cluster", "lab")
        files[1].write_text(head + "".join(late))
    for file in reversed(files) if order == "backwards" else files:
        gpuctl("ingest", file, "--db", store, "--cluster", "lab")
    for table in ("jobs", "attempts", "placements"):
        sql = f"SELECT * EXCLUDE (source) FROM {table} ORDER BY ALL"
        assert rows(store, sql) == rows(lab.stores["live"], sql)


def _records(file: Path) -> list[str]:
    """The header and the records of a file that `gpuctl ingest --from sacct` wrote, line ends kept."""
    with zstandard.open(file, "rt", encoding="utf-8", newline="\n") as text:
        lines = list(text)
    records = [""]
    for line in lines:
        if records[-1].count("\x1f") >= lines[0].count("\x1f"):
            records.append("")
        records[-1] += line
    return records


@pytest.mark.parametrize("form", ["text", "json", "dump"])
def test_every_form_has_the_steps(lab: Found, form: str) -> None:
    """CPU time, memory and kind of all steps of each attempt: ms in text, microseconds elsewhere."""
    sql = "SELECT * EXCLUDE (source) FROM step_usage ORDER BY job, start_ts"
    live, other = rows(lab.stores["live"], sql), rows(lab.stores[form], sql)
    assert len(live) >= 45
    assert sum(row["cpu_s"] > 0 for row in live) >= 40
    assert [row["job"] for row in other] == [row["job"] for row in live]
    for ours, theirs in zip(live, other, strict=True):
        assert abs(ours.pop("cpu_s") - theirs.pop("cpu_s")) <= 0.001 * ours["steps"]
        assert ours == theirs


@pytest.mark.parametrize("form", ["text", "json", "dump"])
@pytest.mark.parametrize("table", ["jobs", "attempts", "placements"])
def test_every_form_gives_the_same(lab: Found, form: str, table: str) -> None:
    """All columns of all rows, but for what `same` says that a form cannot tell."""
    order = {"jobs": "job", "attempts": "job, attempt", "placements": "job, attempt, machine"}[table]
    held = next(key for key, wanted in lab.wanted.items() if wanted.kind == "pending, held")
    sql = f"SELECT * EXCLUDE (source) FROM {table} WHERE job <> '{held}' ORDER BY {order}"
    live, other = rows(lab.stores["live"], sql), rows(lab.stores[form], sql)
    assert [row["job"] for row in other] == [row["job"] for row in live]
    differ: dict[str, list[tuple[str, Any, Any]]] = {}
    for ours, theirs in zip(live, other, strict=True):
        # how long what still runs has run depends on when it is asked for
        skipped = {"elapsed_s", "stated_gpu_s"} if theirs.get("end_ts") is None else set()
        for column in ours.keys() - skipped:
            if not same(lab.version, form, column, ours[column], theirs[column]):
                differ.setdefault(column, []).append((ours["job"], ours[column], theirs[column]))
    assert not differ


def same(version: tuple[int, ...], form: str, column: str, live: Any, other: Any) -> bool:
    """Whether a value of another form is the live one, as far as the form can carry it."""
    if live == other:
        return True
    if column == "quirks":
        # of the text of a form, not of the job: mended rows, and what is known of exit codes
        return not ({*live} ^ {*other}) - {"mended", "exit_code_may_be_folded", "exit_code_not_told"}
    if column in LACKS[form] and (form != "json" or version < (23, 2)):
        return other is None
    if column == "cpu_s":
        return abs(live - other) < 0.001  # text has milliseconds
    if form == "json" and column == "source_state":
        return bool(live.split()[0] == other.split()[0])  # who cancelled it is a name there, a number in text
    if form == "json" and "exit" in column and version < (23, 2):
        return other is None  # 22.05 writes 0 for any exit code
    if form in {"json", "dump"} and column == "exit_code":
        return version < (25, 11) and bool(other == live + 128)  # text is less 128 there
    return False


def test_columns_in_any_order_with_a_trailing_bar(lab: Found) -> None:
    """`sacct -p` with eight columns, and bars and newlines in the third: nothing is lost and nothing is wrong."""
    assert rows(lab.stores["odd"], "SELECT * FROM rejects") == []
    held = next(key for key, wanted in lab.wanted.items() if wanted.kind == "pending, held")
    columns = "job, attempt, a.state, a.start_ts, a.end_ts, a.gpus, name"
    sql = f"SELECT {columns} FROM attempts a JOIN jobs USING (cluster, job) WHERE job <> '{held}' ORDER BY 1, 2"
    assert rows(lab.stores["odd"], sql) == rows(lab.stores["live"], sql)


def test_it_can_be_analyzed(lab: Found, gpuctl: Gpuctl, tmp_path: Path) -> None:
    store = tmp_path / "copy.duckdb"
    shutil.copy(lab.stores["live"], store)
    done = gpuctl("analyze", store, "--json")
    results = json.loads(done.stdout)
    assert results


def test_an_experiment_in_jobs_of_slurm(lab: Found, gpuctl: Gpuctl, root: Path, tmp_path: Path) -> None:
    """The same as on one core, though a job with a worker in it is cancelled in the middle."""
    if find_spec("dask_jobqueue") is None:  # importing it would take Ctrl-C from the tests
        pytest.skip("no dask-jobqueue: pip install -e '.[dask]'")
    cluster = lab.cluster
    cluster.run("sacctmgr", "--immediate", "add", "user", "root", "account=vision")
    (tmp_path / "pids").mkdir()
    shutil.copy(root / "tests/slow_policy.py", tmp_path)
    command = [
        "replay", str(root / "sample_data/jobs.csv"), "--cluster", "2x8", "--json",
        "--policy", f"srtf,{tmp_path / 'slow_policy.py'}:Slow", "--scale-load", "0.8:1.4:0.1", "--seed", "1..2",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuctl", *command, "--engine", "slurm", "--jobs", "2", "--parquet", str(tmp_path)],
        env={**cluster.env, "DASK_JOBQUEUE__SLURM__QUEUE": "cpu", "PYTHONPATH": str(root)},
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 200
        while not list(tmp_path.glob("cells/*.json")) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        jobs = cluster.run("squeue", "--noheader", "--name=gpuctl", "--states=R", "--format=%A").split()
        cluster.run("scancel", jobs[0])
        there, told = process.communicate(timeout=200)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, told
    assert "submitted 2 jobs to Slurm" in told
    assert json.loads(there)["tables"] == json.loads(gpuctl(*command, "--jobs", "1").stdout)["tables"]
    assert "CANCELLED" in (tmp_path / "slurm" / f"gpuctl-{jobs[0]}.err").read_text()
    left = cluster.run("squeue", "--noheader", "--name=gpuctl", "--states=R,PD")
    assert not left, "none is left behind"
    # in a process of its own: Dask reads its variables when it is imported, which the tests have done already
    nowhere = gpuctl(
        *command, "--engine", "slurm",
        env={**cluster.env, "DASK_JOBQUEUE__SLURM__QUEUE": "nowhere"}, check=False, own_process=True,
    )  # fmt: skip
    assert nowhere.returncode == 2
    assert "Slurm rejects the job: invalid partition" in nowhere.stderr
