"""``gpuctl report`` and ``--keep`` as a user runs them, on results of the sample data."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.example_counts import SEARCHING

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow

_PROGRAM = "import os; from gpuctl.cli.main import main; open(os.environ['BEGUN'], 'x').close(); main()"
PRESSES = 10 if SEARCHING else 3
JOBS = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,vc1
2017-10-09 07:13:03,2951.0,4,11804.0,vc1
2017-10-10 23:59:59,86400.0,16,1382400.0,vc2
"""
QUEUED = "queueing.p95_wait_h{queue=gpu}"


@pytest.fixture(scope="module")
def folder(gpuctl: Run, sample_data: Path, thin_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two clusters that keeps three results, and a result as JSON."""
    made = tmp_path_factory.mktemp("report")
    (made / "small.csv").write_text(JOBS)
    gpuctl("--quiet", "ingest", thin_data / "failures", "--db", "s.duckdb", cwd=made)
    gpuctl("--quiet", "ingest", "small.csv", "--cluster", "small", "--db", "s.duckdb", cwd=made)
    gpuctl(
        "--quiet", "analyze", "s.duckdb", "--cluster", "failures", "--keep", "whole", "--json", "--all", "--output",
        "a.json",
        cwd=made,
    )  # fmt: skip
    gpuctl(
        "--quiet", "replay", sample_data / "jobs.csv", "--cluster", "8x8", "--policy", "fifo,sjf", "--db", "s.duckdb",
        "--keep", "two policies", cwd=made,
    )  # fmt: skip
    gpuctl("--quiet", "predict", "overhead", "--gpus", "4", "--db", "s.duckdb", "--keep", "cost", cwd=made)
    return made


def rows(text: str, table: str) -> list[dict[str, str]]:
    """The rows of one table of several in TSV."""
    part = text.partition(f"# {table}\n")[2].partition("\n\n")[0]
    return list(csv.DictReader(io.StringIO(part or text), delimiter="\t"))


def table_of(path: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["tables"][table]["rows"]
    return found


def test_a_store_tells_what_it_has_to_report(gpuctl: Run, folder: Path) -> None:
    found = rows(gpuctl("report", "s.duckdb", "--list", cwd=folder).stdout, "kept")
    assert [(row["name"], row["kind"]) for row in found] == [
        ("failures", "cluster"), ("small", "cluster"),
        ("cost", "predict overhead"), ("two policies", "replay"), ("whole", "analyze"),
    ]  # fmt: skip
    assert found[3]["command"].startswith("gpuctl --quiet replay")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+Z", found[4]["made_at"])
    assert int(found[4]["bytes"]) == (folder / "a.json").stat().st_size


def test_a_report_has_every_cluster_and_every_kept_result(gpuctl: Run, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    page = tmp_path / "r.html"
    done = gpuctl("report", "s.duckdb", "--html", page, "--json", "--output", out, cwd=folder)
    assert f"wrote {page}" in done.stderr
    labels = list(dict.fromkeys(row["result"] for row in table_of(out, "metrics")))
    assert labels == ["failures", "small", "cost", "two policies", "whole"]
    text = page.read_text()
    assert text.endswith("</html>\n")
    assert all(name in text for name in labels)
    mine, kept = (
        [(r["metric"], r["value"]) for r in table_of(out, "metrics") if r["result"] == name]
        for name in ("failures", "whole")
    )
    assert mine == kept


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        (["--only", "whole"], ["whole"]),
        (["--only", "two policies", "--only", "whole"], ["two policies", "whole"]),
        (["--cluster", "small"], ["small"]),
        (["--cluster", "small", "--only", "whole"], ["small", "whole"]),
    ],
)
def test_options_choose_from_a_store(options: list[str], labels: list[str], gpuctl: Run, folder: Path) -> None:
    done = gpuctl("--quiet", "report", "s.duckdb", *options, "--table", "metrics", cwd=folder)
    assert list(dict.fromkeys(row["result"] for row in rows(done.stdout, "metrics"))) == labels


def test_a_result_is_replaced_by_name(gpuctl: Run, folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "own.duckdb"
    for gpus in ("1", "8"):
        gpuctl("predict", "overhead", "--gpus", gpus, "--db", store, "--keep", "cost", cwd=folder)
    [row] = rows(gpuctl("report", store, "--list", cwd=folder).stdout, "kept")
    assert row["command"].startswith("gpuctl predict overhead --gpus 8")


def test_every_command_keeps_its_result(gpuctl: Run, sample_data: Path, tmp_path: Path) -> None:
    lab, store = sample_data / "pickyman", tmp_path / "s.duckdb"
    keep = ("--db", store, "--keep")
    gpuctl("train", "overhead", "-o", tmp_path / "m", lab / "suspensions.csv", *keep, "costs")
    gpuctl("predict", "runtime", lab / "traffic.csv", *keep, "run times", "--epochs", "9")
    gpuctl("predict", "runtime", store, "--keep", "again", "--epochs", "9")
    gpuctl("train", "runtime", "-o", tmp_path / "n", sample_data / "jobs.csv", *keep, "history")
    found = rows(gpuctl("report", store, "--list").stdout, "kept")
    assert [(row["name"], row["kind"]) for row in found] == [
        ("again", "predict runtime"), ("costs", "train overhead"), ("history", "train runtime"),
        ("run times", "predict runtime"),
    ]  # fmt: skip
    gpuctl("--quiet", "report", store, "--html", tmp_path / "r.html", "--json", "--output", tmp_path / "r.json")
    assert {"predictions", "overhead_errors", "runtime_jobs"} <= set(
        re.findall(r"predictions|overhead_errors|runtime_jobs", (tmp_path / "r.html").read_text())
    )


def test_checks_passed_and_failed(gpuctl: Run, folder: Path, tmp_path: Path) -> None:
    files = {kind: tmp_path / f"r.{kind}" for kind in ("md", "xml")}
    words = [
        "report",
        "a.json",
        "s.duckdb",
        "--only",
        "two policies",
        "--markdown",
        files["md"],
        "--junit",
        files["xml"],
    ]
    passing = ["--fail-if", f"{QUEUED} > 1000", "--fail-if", "replay.mean_wait_h{policy=*} > 1000"]
    assert gpuctl(*words, *passing, cwd=folder).returncode == 0
    assert ET.parse(files["xml"]).getroot().get("failures") == "0"
    assert "All 3 checks passed." in files["md"].read_text()
    done = gpuctl(*words, *passing, "--fail-if", f"{QUEUED} >= 0", cwd=folder, check=False)
    assert done.returncode == 1
    assert re.search(rf"gpuctl: failures: {re.escape(QUEUED)} is [\d.]+ h; checked: ", done.stderr)
    cases = ET.parse(files["xml"]).getroot().findall(".//testcase")
    assert [case.find("failure") is not None for case in cases] == [False, False, False, True]
    assert "**1 of 4 checks failed.**" in files["md"].read_text()
    assert len(rows(done.stdout, "checks")) == 4


def test_a_report_is_the_baseline_of_the_next_one(gpuctl: Run, folder: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    gpuctl("--quiet", "report", "s.duckdb", "--json", "--output", old, cwd=folder)
    grown = ["--fail-if", "queueing.p95_wait_h{queue=*,result=failures} > baseline * 1.1",
             "--fail-if", "replay.mean_jct_h{policy=*,result=two policies} > baseline"]  # fmt: skip
    words = ["report", "s.duckdb", "--baseline", old, "--json", "--output", tmp_path / "new.json"]
    gpuctl("--quiet", *words, *grown, cwd=folder)
    assert {row["change_pct"] for row in table_of(tmp_path / "new.json", "metrics")} <= {0.0, None}
    assert table_of(tmp_path / "new.json", "checks")
    document = json.loads(old.read_text())
    for row in document["tables"]["metrics"]["rows"]:
        row["value"] = None if row["value"] is None else row["value"] / 2
    old.write_text(json.dumps(document))
    done = gpuctl(*words, *grown, cwd=folder, check=False)
    assert done.returncode == 1
    changes = [row["change_pct"] for row in table_of(tmp_path / "new.json", "metrics")]
    known = [abs(change) for change in changes if change is not None]
    assert len(known) > 30
    assert known == pytest.approx([100.0] * len(known))


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["report"], 2, "nothing to report"),
        (["report", "a.json", "--fail-if", "queueing.p96_wait_h > 2"], 2, "did you mean queueing.p95_wait_h"),
        (["report", "a.json", "--fail-if", "queueing.p95_wait_h"], 2, "not a condition"),
        (["report", "a.json", "--fail-if", "queueing.p95_wait_h > baseline"], 2, "there is no baseline"),
        (["report", "a.json", "--fail-if", "queueing.p95_wait_h{result=b} > 2"], 2, "there is no result 'b'"),
        (["report", "a.json", "--only", "whole"], 2, "--only chooses from a trace store"),
        (["report", "a.json", "--list"], 2, "a.json is not a trace store"),
        (["report", "s.duckdb", "--only", "half"], 2, "it has: cost, two policies, whole"),
        (["report", "s.duckdb", "--cluster", "large"], 2, "it has: failures, small"),
        (["report", "s.duckdb", "--list", "--anonymise"], 2, "--list shows names"),
        (["report", "a.json", "--anonymise-queues"], 2, "--anonymise-queues goes with"),
        (["report", "a.json", "--html", "."], 2, "is a directory, expected a file"),
        (["report", "absent.json"], 3, "no such file"),
        (["report", "broken.json"], 3, "is not valid JSON"),
        (["report", "other.json"], 3, "is not a gpuctl result: it has schema 99"),
        (["report", "a.json", "--baseline", "broken.json"], 3, "is not valid JSON"),
        (["report", "a.json", "--anonymise-key", "short"], 3, "has 5 bytes, expected a secret"),
        (["predict", "overhead", "--keep", "x"], 2, "hint: add --db FILE"),
        (["predict", "overhead", "--db", "s.duckdb"], 2, "add --keep NAME"),
        (["predict", "overhead", "--keep", "", "--db", "s.duckdb"], 2, "expected a name of 1 to 100"),
        (["predict", "overhead", "--keep", "a\nb", "--db", "s.duckdb"], 2, "printable characters"),
        (["predict", "overhead", "--keep", "x", "--db", "a.json"], 2, "a.json is not a trace store"),
        (["predict", "overhead", "--keep", "x", "--db", "nowhere/s.duckdb"], 2, "--keep nowhere/s.duckdb"),
    ],
)
def test_errors_are_reported(words: list[str], code: int, told: str, gpuctl: Run, folder: Path) -> None:
    (folder / "broken.json").write_text('{"schema": 1, ')
    (folder / "other.json").write_text('{"schema": 99}')
    (folder / "short").write_text("short")
    done = gpuctl(*words, cwd=folder, check=False)
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_report_is_no_result(gpuctl: Run, folder: Path, tmp_path: Path) -> None:
    gpuctl("--quiet", "report", "a.json", "--json", "--output", tmp_path / "r.json", cwd=folder)
    done = gpuctl("report", tmp_path / "r.json", cwd=folder, check=False)
    assert (done.returncode, "name it with --baseline" in done.stderr) == (2, True)


def test_a_damaged_kept_result_is_reported(gpuctl: Run, folder: Path, tmp_path: Path) -> None:
    from gpuctl.store.database import Store

    shutil.copy(folder / "s.duckdb", tmp_path / "d.duckdb")
    with Store(tmp_path / "d.duckdb", write=True) as store:
        store.execute("UPDATE results SET document = 'no frame'::BLOB WHERE name = 'whole'")
    done = gpuctl("report", tmp_path / "d.duckdb", "--only", "whole", cwd=folder, check=False)
    assert done.returncode == 3
    assert "result 'whole': is damaged" in done.stderr
    assert "run its command with --keep" in done.stderr


def test_a_report_without_names(gpuctl: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "key").write_text("0123456789abcdef0123456789abcdef\n")
    names = {row["user"] for row in table_of(folder / "a.json", "job_times")}
    names |= {row["job"] for row in table_of(folder / "a.json", "job_times")}
    names |= {row["machine"] for row in table_of(folder / "a.json", "failure_nodes")}
    names |= {row["evidence"] for row in table_of(folder / "a.json", "failures")} - {None}
    names |= {"sacct.txt", "job-logs.tar.gz", "s.duckdb", "small.csv", str(folder)}
    assert len(names) > 500
    files = {kind: tmp_path / f"r.{kind}" for kind in ("html", "md", "xml", "json")}
    options = ["--html", files["html"], "--markdown", files["md"], "--junit", files["xml"], "--json", "--output",
               files["json"], "--fail-if", "overview.jobs{result=small} > 1000"]  # fmt: skip

    words = ["report", "s.duckdb", "--cluster", "small", "--only", "whole"]

    def found() -> dict[str, set[str]]:
        texts = {kind: path.read_text() for kind, path in files.items()}
        texts["html"] = re.sub(r"<script.*?</script>|<style.*?</style>", "", texts["html"], flags=re.DOTALL)
        return {kind: names & set(re.findall(r"[\w.@/+-]+", text)) for kind, text in texts.items()}

    gpuctl("--quiet", *words, *options, cwd=folder)
    assert len(found()["html"]) > 10
    gpuctl("--quiet", *words, "--anonymise-key", "key", *options, cwd=folder)
    left = {name for kind in found().values() for name in kind}
    # figures are no names: a job is called 4001, and so many rows there may be
    assert {name for name in left if not name.isdigit()} == set()
    data = "".join(path.read_text() for path in files.values())
    assert not [name for name in names if not name.isdigit() and len(name) > 3 and name in data]
    assert not [name for name in names if not name.isdigit() and f'"{name}"' in data]
    first = table_of(files["json"], "metrics")
    gpuctl("--quiet", *words, "--anonymise-key", "key", *options, cwd=folder)
    assert table_of(files["json"], "metrics") == first
    gpuctl("--quiet", *words, "--anonymise", *options, cwd=folder)
    assert table_of(files["json"], "metrics") != first


def test_messages_while_reading_logs_have_no_names(gpuctl: Run, tmp_path: Path) -> None:
    logs = tmp_path / "secretproject" / "alice"
    logs.mkdir(parents=True)
    (logs / "sacct.txt").write_text(
        "JobIDRaw|JobID|JobName|User|State|Submit|Start|End|NNodes|AllocTRES|NodeList|ExitCode\n"
        "1|1|train|bob|ZORGED|2026-03-01T00:00:00|2026-03-01T00:01:00|2026-03-01T01:00:00|1|gres/gpu=1|gpu1|0:0\n"
        "2|2|train|bob|COMPLETED|2026-03-01T00:00:00|2026-03-01T00:01:00|2026-03-01T01:00:00|1|gres/gpu=1|gpu1|0:0\n"
        "x|2|train\n"
    )
    (logs / "notes of carol.zzz").write_text("no log\n")
    (logs / "ruined.tar").write_bytes(b"PK\3\4no zip")
    (tmp_path / "pages").mkdir()
    files = [tmp_path / "pages" / name for name in ("r.html", "r.md", "r.json")]
    words = ["report", tmp_path / "secretproject", "--html", files[0], "--markdown", files[1], "--json", "--output"]
    open_, hidden = (gpuctl(*words, files[2], *more, cwd=tmp_path, check=False) for more in ((), ("--anonymise",)))
    names = ("secretproject", "alice", "carol", "bob", "ZORGED", "sacct.txt", "ruined")
    assert [name for name in names if name in open_.stderr] == [
        "secretproject",
        "alice",
        "carol",
        "sacct.txt",
        "ruined",
    ]
    assert hidden.stderr.count("\n") == open_.stderr.count("\n"), "as much is told"
    assert "wrote r.json" in hidden.stderr
    texts = [hidden.stderr, *(path.read_text() for path in files)]
    assert [name for name in names for text in texts if name in text] == []


def test_ctrl_c_leaves_nothing_half_written(gpuctl: Run, root: Path, folder: Path, tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("r.html", "r.md", "r.xml", "r.json")]
    # while a store is asked, nothing is written yet
    source = folder / ("s.duckdb" if SEARCHING else "few.json")
    gpuctl("-q", "analyze", "s.duckdb", "--cluster", "small", "--table", "overview", "--json",
           "--output", "few.json", cwd=folder)  # fmt: skip
    words = ["report", source, "--html", places[0], "--markdown", places[1], "--junit", places[2],
             "--json", "--output", places[3], "--fail-if", "overview.jobs < 0"]  # fmt: skip
    took, stopped, chance = 8.0, 0, random.Random(20261122)
    for number in range(PRESSES * 4):
        for place in places:
            place.write_text("old")
        begun = tmp_path / f"begun{number}"
        with subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *map(str, words)],
            env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "BEGUN": str(begun)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        ) as process:  # fmt: skip
            try:
                while not begun.exists():
                    assert process.poll() is None, process.communicate()[1]
                    time.sleep(0.002)
                start = time.monotonic()
                if number:
                    time.sleep(took * chance.random())
                    process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=120)
                # the first one may also have filled caches
                took = time.monotonic() - start if process.returncode == 0 else took
            finally:
                process.kill()
        begun.unlink()
        assert process.returncode in ({0, 130} if number else {0}), err
        assert "Traceback" not in err
        stopped += process.returncode == 130
        ends = ("</html>\n", "</sub>\n", "</testsuites>", "}\n")
        assert {place.name for place in tmp_path.iterdir()} == {place.name for place in places}
        for place, end in zip(places, ends, strict=True):
            text = place.read_text()
            assert text == "old" or text.endswith(end), place
        if stopped == PRESSES:
            break
    assert stopped == PRESSES


@pytest.mark.parametrize("reader", ["true", "head -c 1 >/dev/null"])
def test_the_verdict_does_not_depend_on_how_much_is_read(gpuctl: Run, root: Path, folder: Path, reader: str) -> None:
    line = f"{sys.executable} -m gpuctl report a.json --fail-if 'overview.jobs > 0' | {reader}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "checked: overview.jobs > 0" in done.stderr
    assert "Traceback" not in done.stderr


def test_pipes_and_links_are_written_to(gpuctl: Run, folder: Path, tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.md", tmp_path / "target.md"
    os.mkfifo(pipe)
    link.symlink_to(target)
    copy = tmp_path / "copy.html"
    with copy.open("wb") as file, subprocess.Popen(["cat", pipe], stdout=file):
        gpuctl("report", "a.json", "--html", pipe, "--markdown", link, cwd=folder)
    assert copy.read_bytes().endswith(b"</html>\n")
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert target.read_text().startswith("## gpuctl")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d["tables"].update({"../../evil": d["tables"].pop("status")}), "a table is called '../../evil'"),
        (lambda d: d["tables"]["status"].update(columns=[]), "tables.status has no columns"),
        (lambda d: d["sources"][0].update(rows_in=10**30), "sources[0].rows_in is a number, expected a whole number"),
        (
            lambda d: (
                [c.update(type="string") for c in d["tables"]["delay_by_size"]["columns"]]
                and [r.update(dict.fromkeys(r, "x")) for r in d["tables"]["delay_by_size"]["rows"]]
            ),
            "a result that was read cannot be reported",
        ),
    ],
)
def test_results_of_strangers_are_refused(
    gpuctl: Run, folder: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], told: str
) -> None:
    found = json.loads((folder / "a.json").read_text())
    change(found)
    (tmp_path / "b.json").write_text(json.dumps(found))
    done = gpuctl("report", tmp_path / "b.json", "--html", tmp_path / "b.html", check=False)
    assert done.returncode == 3, done.stderr
    assert told in done.stderr


def test_halves_of_surrogates_are_shown(gpuctl: Run, folder: Path, tmp_path: Path) -> None:
    found = json.loads((folder / "a.json").read_text())
    found["cluster"] = found["sources"][0]["path"] = "a\udcffb"
    (tmp_path / "b.json").write_text(json.dumps(found))
    gpuctl("report", tmp_path / "b.json", "--html", tmp_path / "b.html", "--markdown", tmp_path / "b.md")
    assert "a\\udcffb" in (tmp_path / "b.html").read_text()


@pytest.mark.parametrize("line", ["--metrics --fail-if 'overview.jobs>0'", "a.json --list --html r.html"])
def test_a_list_checks_nothing_and_reports_it(gpuctl: Run, folder: Path, line: str) -> None:
    done = gpuctl("report", *shlex.split(line), cwd=folder, check=False)
    assert done.returncode == 2
    assert "makes no report" in done.stderr
