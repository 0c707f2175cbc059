"""``--log-format``: what a file is, where the user knows better; and what every file at hand is taken for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline.detect import HEAD, detect
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.ingest.read.files import NotRead, Opener, walk
from gpuctl.store.database import Store
from tests.cli_runner import run_command
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., tuple[int, str, str]]

FIXTURES = ROOT / "tests" / "fixtures"
PUBLIC = ROOT.parent / "shared" / "data" / "slurm"
FOREIGN = (
    "joboutput/2.10.2-gz/aggregated/alice/logs/application_1795312977544_0001/node01_34679",
    "joboutput/2.10.2-gz/application_1795312977544_0001.log",
    *(f"slurm/limits/{name}" for name in ("assoc.txt", "nodes.txt", "slurm.conf")),
    *("slurm/other/jobcomp.log", "slurm/other/sacct.json"),
)
NO_LOGS = {
    "junk": b"\x00\xff\x00" * 500,
    "text": b"hello\nworld\n" * 20,
    "json": b'{"a": [1, 2, {"b": null}]}\n',
    "empty": b"",
}
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\nlab|n1|2026-11-20T21:04:24|Unknown|DOWN|x|root\n"


@pytest.fixture
def run() -> Run:
    """The command line within this process: exit code, standard output, standard error."""

    def ended(*arguments: object) -> tuple[int, str, str]:
        done = run_command(*arguments)
        return done.returncode, done.stdout, done.stderr

    return ended


def test_a_named_format_that_finds_nothing_is_an_error(tmp_path: Path, run: Run) -> None:
    """Every line of another daemon's log is a dated record, so all of them counted as loaded."""
    path = tmp_path / "namenode.log"
    record = "2026-11-20 21:04:24,250 INFO org.apache.hadoop.hdfs.server.namenode.FSNamesystem: Roll Edit Log\n"
    path.write_text(record * 20)
    for name in ("yarn-rm-log", "yarn-nm-log", "yarn-container-logs"):
        code, _, err = run("ingest", path, "--db", tmp_path / "a.duckdb", "--log-format", name)
        assert code == 3, err
        assert f"not read as {name}" in err
        assert "none of its 20 rows has anything for it" in err
    # a log that is what the user says may have nothing to tell
    path.write_text(record.replace("hdfs.server.namenode.FSNamesystem", "yarn.server.resourcemanager.ClientRMService"))
    assert run("ingest", path, "--db", tmp_path / "b.duckdb", "--log-format", "yarn-rm-log")[0] == 0


def test_the_named_format_has_a_file_that_nothing_shows_to_be_of_it(tmp_path: Path, run: Run) -> None:
    """A controller's log whose first 64 KiB are another program's."""
    path = tmp_path / "daemons.log"
    line = "[2026-11-20T21:04:24.250] sched/backfill: _start_job: Started JobId=7 in gpu on gpu001\n"
    path.write_text("node7 ntpd: clock is steady\n" * 3000 + line)
    assert run("ingest", path, "--db", tmp_path / "a.duckdb")[0] == 3
    code, out, _ = run("ingest", path, "--db", tmp_path / "a.duckdb", "--format", "slurm-ctld", "--json")
    (source,) = json.loads(out)["sources"]
    assert (code, source["format"], source["why"]) == (0, "slurm-ctld", "--log-format slurm-ctld")
    with Store(tmp_path / "a.duckdb") as store:
        assert store.frame("SELECT job FROM job_events").rows() == [("7",)]


def test_a_name_that_there_is_not_is_a_usage_error_with_the_nearest(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "events.txt"
    path.write_text(EVENTS)
    for words in (
        ("ingest",),
        ("analyze",),
        ("explain", "7"),
        ("replay", "--policy", "fifo"),
        ("train", "runtime", "-o", tmp_path / "m"),
    ):
        code, _, err = run(*words, path, "--log-format", "slurm-event")
        assert (code, "did you mean slurm-events" in err) == (2, True), (words, err)
    assert run("ingest", path, "--format", "slurm-event")[0] == 2


def test_a_format_that_cannot_read_the_file_states_where_and_what_was_found(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "events.txt"
    path.write_text(EVENTS)
    code, _, err = run("ingest", path, "--db", tmp_path / "a.duckdb", "--log-format", "slurm-jobcomp")
    assert code == 3
    for words in ("events.txt: line 1", "not read as slurm-jobcomp", "Cluster|NodeName", "looks like slurm-events"):
        assert words in err


def test_it_decides_in_directories_only_where_several_would_fit(tmp_path: Path, run: Run) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "events.txt").write_text(EVENTS)
    code, out, err = run(
        "ingest", tmp_path / "logs", "--db", tmp_path / "a.duckdb", "--log-format", "slurm-jobcomp", "--json"
    )
    assert (code, json.loads(out)["sources"][0]["format"]) == (0, "slurm-events")
    assert "--log-format slurm-jobcomp had no effect" in err


def test_it_is_for_files_not_for_stores_and_live_schedulers(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "events.txt"
    path.write_text(EVENTS)
    assert run("ingest", path, "--db", tmp_path / "a.duckdb", "--log-format", "slurm-events")[0] == 0
    assert run("analyze", tmp_path / "a.duckdb", "--log-format", "slurm-events")[0] == 2
    assert run("ingest", "--from", "sacct", "--db", tmp_path / "b.duckdb", "--log-format", "slurm-sacct")[0] == 2


def foreign_files(folder: Path) -> Iterator[Path]:
    """Small files of every kind: binary, lines, columns, words with values, JSON, and of no format at all."""
    for at, name in enumerate(FOREIGN):
        path = folder / str(at) / Path(name).name
        path.parent.mkdir(parents=True)
        path.write_bytes((FIXTURES / name).read_bytes()[:20_000])
        yield path
    for name, data in NO_LOGS.items():
        (folder / name).write_bytes(data)
        yield folder / name


def test_every_format_refuses_what_is_not_its_own_and_never_fails(tmp_path: Path) -> None:
    """`load` meets what `sniff` would never have let through: an input error or rejected rows, nothing else."""
    paths = list(foreign_files(tmp_path / "logs"))
    kinds = Counter[str]()
    for fmt in all_formats():
        # traces that are declared are read by four loaders: two of each will do
        kinds[fmt.load.__qualname__] += 1
        if fmt.load.__qualname__ != "load" and kinds[fmt.load.__qualname__] > 2:
            continue
        report = ingest(paths, tmp_path / f"{fmt.name}.duckdb", log_format=fmt.name)
        assert len(report.sources) == len(paths)
        for source in report.sources:
            if source.status == "failed":
                assert f"not read as {fmt.name}" in source.message, source
            else:
                assert source.rows_loaded, source


def claims(root: Path) -> Iterator[tuple[Path, str | None, str, bool]]:
    opener = Opener()
    for found in walk([root], opener):
        if isinstance(found, NotRead):
            continue
        try:
            with opener.open(found) as stream:
                head = stream.read(HEAD)
                fmt, why, ambiguous = detect(found.name, head, all_formats(), stream.place)
        except InputError:
            continue
        yield Path(found.shown), fmt.name if fmt else None, why, ambiguous
    opener.close()


@pytest.mark.parametrize("root", [FIXTURES, ROOT / "sample_data", PUBLIC], ids=["fixtures", "sample", "shared"])
def test_no_file_at_hand_is_taken_for_two_things(root: Path) -> None:
    if not root.exists():
        pytest.skip(f"{root.name} is not here")
    found = list(claims(root))
    assert len(found) > 20
    assert [(str(path), why) for path, _, why, ambiguous in found if ambiguous] == []
