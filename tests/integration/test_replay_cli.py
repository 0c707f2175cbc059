"""``gpuctl replay`` and ``gpuctl policies`` as a user calls them."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

CONTRACT = ["policy", "job", "submit_s", "start_s", "end_s", "gpus", "wait_s", "jct_s", "preemptions"]
TINY = """job_id,submit_time,duration,num_gpus
a,100.5,60,8
b,101,10,4
c,102,5,4
"""
MINE = """
import time
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.contract.python_policy import PythonPolicy


class Slow(PythonPolicy):
    title = "sleeps, then starts what fits"
    source = "made for a test"
    always = True
    parameters = (Parameter("pause", 0.0, "seconds that it sleeps at every instant"),)

    def decide(self, view):
        time.sleep(self.params["pause"])
        for job in view.waiting:
            view.start(job)
"""


@pytest.fixture
def jobs(sample_data: Path) -> Path:
    return sample_data / "jobs.csv"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.csv"
    path.write_text(TINY)
    return path


def test_names_that_stay(gpuctl: Gpuctl, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = gpuctl("replay", tiny, "--cluster", "1x8", "--policy", "fifo,sjf", "--parquet", out)
    rows = pl.read_parquet(out / "jobs.parquet")
    assert rows.columns[: len(CONTRACT)] == CONTRACT
    assert rows.select(CONTRACT).rows() == [
        ("fifo", "a", 100.5, 100.5, 160.5, 8, 0.0, 60.0, 0),
        ("fifo", "b", 101.0, 160.5, 170.5, 4, 59.5, 69.5, 0),
        ("fifo", "c", 102.0, 160.5, 165.5, 4, 58.5, 63.5, 0),
        ("sjf", "a", 100.5, 100.5, 160.5, 8, 0.0, 60.0, 0),
        ("sjf", "b", 101.0, 160.5, 170.5, 4, 59.5, 69.5, 0),
        ("sjf", "c", 102.0, 160.5, 165.5, 4, 58.5, 63.5, 0),
    ]  # fmt: skip
    summary = pl.read_parquet(out / "summary.parquet")
    assert summary["policy"].to_list() == ["fifo", "sjf"]
    assert {p.name for p in out.iterdir()} >= {"replay_by_size.parquet", "replay_vs_baseline.parquet"}
    assert done.stdout.startswith("# replay_summary\npolicy\t")
    assert f"wrote {out}" in done.stderr


def test_help_imports_nothing_heavy(root: Path) -> None:
    from tests.integration.test_start_up import HEAVY, _modules

    for command in ("replay", "policies"):
        assert not HEAVY & _modules(root, command, "--help")


def test_names_offered_are_those_there_are() -> None:
    from gpuctl.cli.replay import SECTIONS, TABLES
    from gpuctl.replay.results import columns, tables

    assert tuple(key for key, _ in tables.SECTIONS) == SECTIONS
    assert set(TABLES) == set(columns._TABLES)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["--policy", "fifo"], 2, "without nodes"),
        (["--cluster", "4x8"], 2, "no policy to replay"),
        (["--cluster", "4x8", "--policy", "fifi"], 2, "did you mean fifo"),
        (["--cluster", "4by8", "--policy", "fifo"], 2, "no such file, and no short form"),
        (["--cluster", "4x8", "--policy", "fifo,fifo"], 2, "names fifo twice"),
        (["--cluster", "4x8", "--policy", "fifo=las,fifo"], 2, "names fifo twice"),
        (["--cluster", "4x8", "--policy", "a=fifi"], 2, "did you mean fifo"),
        (["--cluster", "4x8", "--policy", "a=las", "--param", "b.quantum=3"], 2, "there is a.quantum"),
        (["--cluster", "4x8", "--policy", "a=las,las", "--baseline", "b"], 2, "those are: a, las"),
        (["--cluster", "4x8", "--policy", "las", "--yarn-conf", "there"], 2, "no policy here reads it"),
        (["--cluster", "4x8", "--policy", "las", "--param", "quantom=3"], 2, "did you mean quantum?"),
        (["--cluster", "4x8", "--policy", "las", "--param", "srtf.ties=list"], 2, "no policy here has this"),
        (["--cluster", "4x8", "--policy", "las", "--param", "quantum"], 2, "expected NAME=VALUE"),
        (["--cluster", "4x8", "--policy", "las", "--param", "las.quantum=x"], 2, "expected a number"),
        (["--cluster", "4x8", "--policy", "fifo", "--baseline", "srtf"], 2, "--baseline srtf"),
        (["--cluster", "4x8", "--policy", "fifo", "--table", "replay_sumary"], 2, "did you mean replay_summary"),
        (["--cluster", "4x8", "--policy", "fifo", "--section", "jobs"], 2, "no section 'jobs'"),
        (["--cluster", "4x8", "--policy", "fifo", "--table", "replay_fidelity"], 2, "--against recorded"),
        (["--cluster", "4x8", "--policy", "fifo", "--window", "7"], 2, "expected FROM..TO"),
        (["--cluster", "4x8", "--policy", "fifo", "--window", "2026-01-01..2026-02-01"], 2, "have no calendar"),
        (["--cluster", "4x8", "--policy", "fifo", "--warmup", "1.5"], 2, "--warmup 1.5"),
        (["--cluster", "4x8", "--policy", "fifo", "--work", "sum"], 2, "--work is for traces"),
        (["--cluster", "4x8", "--policy", "fifo", "--db", "x.duckdb"], 2, "--db is for traces"),
        (["--cluster", "4x8", "--policy", "fifo", "--overhead", "const:x"], 2, "not understood"),
        (["--cluster", "4x8", "--policy", "fifo", "--scale-load", "0"], 2, "above 0"),
        (["--cluster", "pool:8", "--policy", "fifo", "--locality"], 2, "a pool of GPUs has no places"),
        (["--cluster", "4x8", "--policy", "fifo", "--parquet", "there"], 2, "expected a directory"),
        (["--cluster", "4x8", "--policy", "fifo", "--html", "no/where.html"], 2, "no directory no"),
        (["--cluster", "4x8", "--policy", "fifo", "--store", "there"], 4, "it is not replaced"),
        (["--cluster", "1x4", "--policy", "fifo"], 3, "'a' (8)"),
    ],
)  # fmt: skip
def test_errors_state_what_to_do(
    gpuctl: Gpuctl, tiny: Path, arguments: list[str], code: int, error: str, tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("mine")
    done = gpuctl("replay", tiny, *arguments, cwd=tmp_path, check=False)
    assert done.returncode == code, done.stderr
    assert error in done.stderr
    assert "replayed in" not in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("job_id,submit_time,num_gpus\na,1,1\n", "lacks the columns duration"),
        ("id,submit_time,duration,num_gpus\na,1,1,1\n", "lacks the columns job_id"),
        ("job_id,submit_time,duration,num_gpus\na,1,0,1\nb,1,-2,1\n", "job 'b', '-2'"),
        ("job_id,submit_time,duration,num_gpus\na,1,5,1\na,2,5,1\n", "job_id is not unique"),
    ],
)
def test_bad_jobs_are_named(gpuctl: Gpuctl, tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "bad.csv").write_text(text)
    done = gpuctl("replay", "bad.csv", "--cluster", "4x8", "--policy", "fifo", cwd=tmp_path, check=False)
    assert done.returncode == 3
    assert error in done.stderr


def test_a_packed_csv(gpuctl: Gpuctl, jobs: Path, tmp_path: Path) -> None:
    import gzip

    import zstandard

    (tmp_path / "j.csv.gz").write_bytes(gzip.compress(jobs.read_bytes()))
    (tmp_path / "j.csv.zst").write_bytes(zstandard.compress(jobs.read_bytes()))
    asked = ["--cluster", "4x8", "--policy", "fifo", "--table", "replay_jobs"]
    plain = gpuctl("replay", jobs, *asked).stdout
    for name in ("j.csv.gz", "j.csv.zst"):
        assert gpuctl("replay", tmp_path / name, *asked).stdout == plain


def test_missing_input(gpuctl: Gpuctl, tmp_path: Path) -> None:
    for arguments, code in ((["nowhere"], 3), ([], 2)):
        done = gpuctl("replay", *arguments, "--policy", "fifo", cwd=tmp_path, check=False)
        assert done.returncode == code, done.stderr


def test_jobs_that_never_fit_are_listed(gpuctl: Gpuctl, tiny: Path) -> None:
    done = gpuctl(
        "replay", tiny, "--cluster", "1x4", "--policy", "fifo", "--skip-unplaceable", "--table", "replay_unfinished"
    )
    header, row = done.stdout.splitlines()
    assert dict(zip(header.split("\t"), row.split("\t"), strict=True))["state"] == "unplaceable"
    assert "fifo: 1 of 3 jobs did not finish (1 unplaceable)" in done.stderr


def test_json_has_every_table_and_the_settings(gpuctl: Gpuctl, jobs: Path) -> None:
    done = gpuctl(
        "--json", "replay", jobs, "--cluster", "4x8", "--policy", "fifo,tiresias", "--param", "limits=600,3600",
        "--overhead", "const:30", "--placement", "consolidate", "--seed", "3", "--warmup", "0.1",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert set(found["tables"]) >= {"replay_summary", "replay_jobs", "replay_vs_baseline", "replay_timeline"}
    assert found["settings"]["policy tiresias"].startswith("limits=(600.0, 3600.0)")
    assert found["settings"]["locality"] == "off: a CSV does not record where jobs ran"
    assert found["settings"]["preemption overhead"].startswith("30 s a preemption")
    assert found["settings"]["placement"] == "consolidate"
    assert found["sources"][0]["format"] == "jobs-csv"
    assert found["tables"]["replay_summary"]["rows"][0]["jobs"] == 270


def test_parameters_of_one_policy_and_of_all(gpuctl: Gpuctl, jobs: Path) -> None:
    done = gpuctl(
        "--json", "replay", jobs, "--cluster", "4x8", "--policy", "las", "--policy", "tiresias",
        "--param", "las.service=time", "--param", "service=gpu-time",
    )  # fmt: skip
    told = json.loads(done.stdout)["settings"]
    assert "service=time" in told["policy las"]
    assert "service=gpu-time" in told["policy tiresias"]


def results(folder: Path) -> dict[str, bytes]:
    return {p.name: pl.read_parquet(p).serialize() for p in sorted(folder.iterdir())}


def test_one_policy_next_to_itself(gpuctl: Gpuctl, jobs: Path, tmp_path: Path) -> None:
    """What is said of a label goes before what is said of its policy, and that before what is said of all."""
    params = ("b.quantum=7200", "quantum=900", "las.quantum=60", "c.service=time")
    said = [word for param in params for word in ("--param", param)]
    out = gpuctl(
        "replay", jobs, "--cluster", "4x8", "--policy", "las,b=las,c=las,srtf", *said, "--baseline", "b",
        "--decisions", tmp_path / "log", "--json",
    ).stdout  # fmt: skip
    found = json.loads(out)
    tables = found["tables"]
    assert found["settings"]["policy b"].startswith("las: service=")
    assert [row["policy"] for row in tables["replay_summary"]["rows"]] == ["las", "b", "c", "srtf"]
    assert {row["baseline"] for row in tables["replay_vs_baseline"]["rows"]} == {"b"}
    assert {path.stem for path in (tmp_path / "log").iterdir()} == {"las", "b", "c", "srtf"}
    alone = [
        gpuctl("replay", jobs, "--cluster", "4x8", "--policy", "las", *params, "--table", "replay_summary").stdout
        for params in (
            ["--param", "quantum=60"],
            ["--param", "quantum=7200"],
            ["--param", "quantum=60", "--param", "service=time"],
        )
    ]
    together = gpuctl(
        "replay", jobs, "--cluster", "4x8", "--policy", "las,b=las,c=las", *said, "--table", "replay_summary"
    ).stdout
    rows = [line.partition("\t")[2] for line in together.splitlines()[1:]]
    assert rows == [text.splitlines()[1].partition("\t")[2] for text in alone]
    assert len(set(rows)) == 3


def test_hash_seeds_change_nothing(gpuctl: Gpuctl, jobs: Path, tmp_path: Path) -> None:
    asked = ["replay", jobs, "--cluster", "4x8", "--policy", "fifo,random,las,philly", "--seed", "5"]
    for number in ("1", "2"):
        written = ("--decisions", tmp_path / f"log{number}", "--parquet", tmp_path / f"out{number}")
        gpuctl(*asked, "--jobs", "1", *written, env={"PYTHONHASHSEED": number}, own_process=True)
    names = ["fifo.jsonl", "las.jsonl", "philly.jsonl", "random.jsonl"]
    assert sorted(p.name for p in (tmp_path / "log1").iterdir()) == names
    for name in names:
        log = (tmp_path / "log1" / name).read_bytes()
        assert log == (tmp_path / "log2" / name).read_bytes()
        first = json.loads(log.splitlines()[0])
        assert set(first) >= {"t_s", "decision", "job", "gpus", "nodes", "reason"}
    assert results(tmp_path / "out1") == results(tmp_path / "out2")


def test_what_if_scenarios(gpuctl: Gpuctl, jobs: Path, tmp_path: Path) -> None:
    def waits(*more: str) -> float:
        done = gpuctl(
            "replay", jobs, "--cluster", "4x8", "--policy", "fifo-skip", "--table", "replay_summary",
            "--format", "jsonl", *more,
        )  # fmt: skip
        return float(json.loads(done.stdout)["wait_mean_s"])

    usual = waits()
    assert waits("--scale-load", "1.5") > usual
    assert waits("--add-nodes", "2") < usual
    assert waits("--add-nodes", "2x8") == waits("--add-nodes", "2")
    half = json.loads(
        gpuctl("replay", jobs, "--cluster", "4x8", "--policy", "fifo", "--window", "..86400", "--json").stdout
    )
    assert all(row["submit_s"] < 86400 for row in half["tables"]["replay_jobs"]["rows"])
    (tmp_path / "q.csv").write_text("vc,quota_gpus\nresearch,8\nproduction,8\nnobody,1\n")
    done = gpuctl(
        "--json", "replay", jobs, "--cluster", "4x8", "--policy", "yarn-cs", "--quotas", tmp_path / "q.csv",
        "--param", "borrow=false", "--window", "0..40000", "--skip-unplaceable", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["quotas"] == "configured"
    assert "quotas for queues without jobs: nobody" in done.stderr


@pytest.fixture(scope="module")
def trace(thin_data: Path) -> list[Path]:
    return [thin_data / "philly" / name for name in ("cluster_job_log", "cluster_machine_list")]


def test_a_trace_on_its_own_nodes_against_what_was_recorded(gpuctl: Gpuctl, trace: list[Path], tmp_path: Path) -> None:
    store = tmp_path / "replay.duckdb"
    done = gpuctl(
        "replay", *trace, "--policy", "recorded,fifo-skip", "--against", "recorded", "--baseline", "recorded",
        "--store", store, "--html", tmp_path / "r.html", "--json",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert "note: 652 of 654 jobs are replayed; left out: 2 have no start in the log" in done.stderr
    assert found["settings"]["locality"].startswith("off: recorded run times")
    assert found["settings"]["baseline"] == "recorded"
    fidelity = [row for row in found["tables"]["replay_fidelity"]["rows"] if row["by"] == "all"]
    assert fidelity[0]["within_1s_pct"] == 100
    assert fidelity[1]["within_1s_pct"] < 100
    assert any("652 of 654" in note for note in found["tables"]["replay_summary"]["notes"])
    assert {s["format"] for s in found["sources"]} == {"philly-jobs", "philly-machines"}
    assert "<html" in (tmp_path / "r.html").read_text("utf-8")
    done = gpuctl("analyze", store, check=False)
    assert done.returncode == 2
    assert "@fifo-skip" in done.stderr
    [name] = re.findall(r"[\w.-]+@fifo-skip", done.stderr)
    asked = ("--cluster", name, "--table", "queue_delays", "--json")
    delays = json.loads(gpuctl("analyze", store, *asked).stdout)["tables"]["queue_delays"]["rows"]
    waited = sum(row["wait_s"] for row in delays)
    replayed = sum(
        row["start_s"] - row["submit_s"]
        for row in found["tables"]["replay_jobs"]["rows"]
        if row["policy"] == "fifo-skip"
    )
    retries = [row for row in delays if row["attempt"] > 0]
    assert waited - sum(row["wait_s"] for row in retries) == pytest.approx(replayed, abs=0.1)
    # a store that replays wrote can be replayed, and is not overwritten by anything but a replay
    again = gpuctl("replay", store, "--trace-cluster", name, "--policy", "recorded", "--table", "replay_summary")
    assert again.stdout.splitlines()[1].split("\t")[1] == "652"


def test_a_store_on_other_nodes(gpuctl: Gpuctl, trace: list[Path], tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    gpuctl("ingest", *trace, "--db", db)
    done = gpuctl("--json", "replay", "--db", db, "--policy", "fifo-skip", "--cluster", "16x8", "--work", "last")
    found = json.loads(done.stdout)
    assert found["settings"]["locality"].startswith("off: these are not the nodes")
    before = db.read_bytes()
    done = gpuctl("replay", db, "--policy", "fifo", "--store", db, check=False)
    assert done.returncode == 4
    assert "only a store that a replay wrote is replaced" in done.stderr
    assert db.read_bytes() == before
    done = gpuctl("replay", db, "--policy", "fifo", "--cluster", "8x8", "--racks", "r.csv", check=False)
    assert (done.returncode, "TOML" in done.stderr) == (2, True)
    done = gpuctl(
        "--json", "replay", db, "--policy", "fifo-skip", "--no-locality", "--window", "2017-10-03..2017-10-04"
    )
    found = json.loads(done.stdout)
    assert found["settings"]["locality"] == "off: --no-locality"


def test_ctrl_c_writes_what_is_done(jobs: Path, tmp_path: Path, root: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    command = [
        sys.executable, "-m", "gpuctl", "replay", str(jobs), "--cluster", "4x8", "--policy", "mine.py:Slow,fifo,srtf",
        "--param", "pause=1", "--jobs", "2", "--parquet", "out", "--baseline", "mine.py:Slow", "--store", "r.duckdb",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        told = ""
        while "srtf: 300 jobs" not in told:
            line = process.stderr.readline()
            assert line, told
            told += line
        time.sleep(0.2)
        # as a terminal does: to all processes of the group
        os.killpg(process.pid, signal.SIGINT)
        out, rest = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    assert "gpuctl: interrupted; not done: mine.py:Slow" in rest
    assert "Traceback" not in rest
    assert set(pl.read_parquet(tmp_path / "out" / "jobs.parquet")["policy"]) == {"fifo", "srtf"}
    assert (tmp_path / "r.duckdb").exists()
    assert out.startswith("# replay_summary")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and workers(process.pid):
        time.sleep(0.1)
    assert workers(process.pid) == []


def workers(group: int) -> list[bytes]:
    """Processes of a group that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[2]) == group:
                found.append(stat.with_name("cmdline").read_bytes())
        except (OSError, ValueError):
            continue
    # one that has ended and was not waited for has no command line any more
    return [line for line in found if line]


def test_a_policy_of_ones_own(gpuctl: Gpuctl, jobs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    done = gpuctl(
        "replay", jobs, "--cluster", "4x8", "--policy", "mine.py:Slow,fifo-skip", "--param", "Slow.pause=0",
        "--parquet", "out", cwd=tmp_path,
    )  # fmt: skip
    assert "Slow: 300 jobs" in done.stderr
    rows = pl.read_parquet(tmp_path / "out" / "jobs.parquet")
    mine, skip = (rows.filter(policy=name).drop("policy") for name in ("Slow", "fifo-skip"))
    assert mine.select("job", "start_s", "end_s").equals(skip.select("job", "start_s", "end_s"))
    shown = gpuctl("policies", "mine.py:Slow", cwd=tmp_path).stdout
    assert "sleeps, then starts what fits" in shown
    assert "--param pause=0" in shown


def test_the_list_of_policies(gpuctl: Gpuctl) -> None:
    from gpuctl.replay.policies import BUILT_IN

    header, *rows = gpuctl("policies").stdout.splitlines()
    assert header == "name\tpreempts\ttrue run times\tfrom\ttitle"
    assert [row.split("\t")[0] for row in rows] == list(BUILT_IN)
    found: list[dict[str, Any]] = json.loads(gpuctl("policies", "--json").stdout)
    assert {each["name"]: each["oracle"] for each in found}["srtf"] is True
    one = json.loads(gpuctl("--json", "policies", "las").stdout)
    assert {p["name"]: p["default"] for p in one["parameters"]} == {
        "service": "gpu-time",
        "quantum": 360.0,
        "patience": 30.0,
    }
    done = gpuctl("policies", "lass", check=False)
    assert (done.returncode, "did you mean las" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments", [("policies", "tiresias"), ("replay", "JOBS", "--cluster", "4x8", "--policy", "fifo,srtf", "--all")]
)
def test_a_narrow_terminal_cuts_nothing_off(root: Path, jobs: Path, arguments: tuple[str, ...]) -> None:
    main, other = pty.openpty()
    command = [sys.executable, "-m", "gpuctl", "--no-color", *(str(jobs) if a == "JOBS" else a for a in arguments)]
    env = {**os.environ, "PYTHONPATH": str(root), "COLUMNS": "50", "PAGER": "cat"}
    with subprocess.Popen(
        command, env=env, stdout=other, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as process:
        os.close(other)
        shown = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
    os.close(main)
    assert process.returncode == 0
    text = shown.decode()
    assert max(map(len, text.splitlines())) <= 50
    # columns that are left out are counted, and no cell is cut off
    assert "\u2026" not in text.replace("\u2026 and ", "")


def test_models_for_policies_of_ones_own_are_read_and_told(gpuctl: Gpuctl, root: Path, tmp_path: Path) -> None:
    examples = root / "docs" / "examples"
    asked = ("replay", examples / "typed_jobs.csv", "--policy", f"{examples / 'timeslice.py'}:PackOrTurn", "--json")
    models = ("--pair-speeds", examples / "pairs.csv", "--time-slice", "30:2", "--overhead", "none+resize:3")
    told = json.loads(gpuctl(*asked, "--cluster", "2x4", *models).stdout)["settings"]
    assert told["packed jobs"] == "by class of both as in pairs.csv; with several jobs these are multiplied"
    assert told["time slices"] == "30 s, and 2 s to switch"
    assert told["preemption overhead"] == "none: preemption is free; 3 s for a resize or migration"
    nodes = ("--cluster", examples / "typed_nodes.toml")
    told = json.loads(gpuctl(*asked, *nodes, "--speeds", examples / "speeds.csv").stdout)["settings"]
    assert told["speed"].startswith("by class of jobs and GPU type as in speeds.csv")
    assert "time slices" not in told
    wrong = gpuctl(*asked, "--cluster", "2x4", "--time-slice", "0", check=False)
    assert (wrong.returncode, "expected seconds of a turn" in wrong.stderr) == (2, True)
    header = gpuctl(*asked, "--cluster", "2x4", "--pair-speeds", examples / "speeds.csv", check=False)
    assert (header.returncode, "expected a header line job_class,beside,speed" in header.stderr) == (3, True)
