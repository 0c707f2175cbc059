"""Every kind of input through every output: none of them may end in an internal error, whatever a log does not tell.

By default a file of each format of jobs is analysed, and the other formats together; all outputs are made where the
tables lead to code of them that no other file leads to. With GPUCTL_EVERY_FILE=1 every file of the
project by itself, and every file below GPUCTL_MORE_FILES (several folders, parted by colons): an hour and more.
"""

from __future__ import annotations

import io
import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest
from rich.cells import cell_len

from gpuctl.core.errors import ExitCode
from gpuctl.ingest.pipeline.detect import Finding, survey
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.ingest.read.codecs import Limits
from gpuctl.ingest.read.files import Opener
from gpuctl.reports.export.files import Format, write_tables
from gpuctl.reports.screens import analysis as screens
from gpuctl.reports.screens.draw import print_screen
from gpuctl.reports.terminal.pictures import of_analysis
from gpuctl.reports.terminal.printer import print_analysis
from gpuctl.services.report_inputs import read_result
from gpuctl.store.database import Store
from tests.cli_runner import run_command
from tests.example_files import example_files
from tests.trace_files import TRACES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import Analysis


ROOT = Path(__file__).resolve().parents[2]
BIGGEST = 6_000_000
ODD_TRACES = (
    *("openb-pods", "alibaba-dlrm", "gavel-jobs", "kube-objects", "torque-accounting", "pbs-qstat-json"),
    *("lsf-acct", "sge-accounting", "sge-accounting-json", "htcondor-history"),
    *("yarn-jhist", "yarn-sls", "spark-events"),
)
"""Pods, services, jobs without run times, of several attempts, records of events: of other traces less is odd."""
MADE = {
    "philly-jobs-csv": "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,2,132.0,11cb48\n",
    **{name: example_files()[name][1].decode() for name in ("swf", *ODD_TRACES)},
    "slurm-tacc": (
        "1\n       JobID    JobName    UID               Start              Submit                 End   Priority "
        "TimelimitR ExitCode   NNodes \n------------ ---------- ------ -------------------\n"
        "478729\tdimer.10\t00000\t2022-11-01T15:34:14\t2022-10-05T11:52:48\t2022-11-03T15:34:15\t1234\t2880\t0:0\t2\n"
    ),
    "yarn-app-summary": (
        "2018-11-14 12:39:12,329 INFO org.apache.hadoop.yarn.server.resourcemanager.RMAppManager$ApplicationSummary: "
        "appId=application_1542189090588_0002,name=wordcount,user=root,queue=default,state=FINISHED,"
        "trackingUrl=http://rm:8088/proxy/application_1542189090588_0002/,appMasterHost=n1,startTime=1542199139329,"
        "finishTime=1542199152329,finalStatus=SUCCEEDED,memorySeconds=100,vcoreSeconds=10,"
        "preemptedAMContainers=0,preemptedNonAMContainers=0,preemptedResources=<memory:0\\, vCores:0>,"
        "applicationType=MAPREDUCE\n"
    ),
}
"""Formats of jobs that no file of the project is in."""
JOBS = {
    "philly-jobs": "sample_data/philly/cluster_job_log",
    "slurm-sacct": "tests/fixtures/slurm/scheduling/backfill/sacct.txt",
    "slurm-sacct-json": "tests/fixtures/slurm/other/sacct.json",
    "slurm-dbd": "tests/fixtures/slurm/other/slurmdbd.sql",
    "slurm-jobcomp": "tests/fixtures/slurm/other/jobcomp.log",
    "yarn-rest-apps": "tests/fixtures/yarn/2.10.2/rest-30s.zip",
    # no source tells its machines: its page once ended in an internal error
    "yarn-ats": "tests/fixtures/yarn/2.10.2/rest-timeline.zip",
    "yarn-rm-log": "tests/fixtures/yarn/2.10.2/yarn-lab-resourcemanager-rm01.log.gz",
    "yarn-nm-log": "tests/fixtures/yarn/2.10.2/yarn-lab-nodemanager-node02.log.gz",
}
OTHERS = {
    "philly": [
        "sample_data/philly/cluster_machine_list",
        *(f"sample_data/philly/cluster_{k}_util.gz" for k in ("cpu", "gpu", "mem")),
    ],
    "slurm": [f"tests/fixtures/slurm/priority/classic/{n}.txt" for n in ("config", "nodes", "partitions")]
    + [f"tests/fixtures/slurm/scheduling/backfill_user1/{n}" for n in ("slurm.conf", "qos.txt", "dump.cfg")]
    + ["tests/fixtures/slurm/scheduling/backfill/slurmctld.log.gz", "sample_data/failures/topology.conf"],
    "traffic": [
        "sample_data/pickyman",
        *(f"tests/fixtures/traffic/{n}" for n in ("netdev.txt", "nfsiostat.txt", "prometheus.json")),
    ],
    "output": ["tests/fixtures/joboutput/2.10.2-gz", "tests/fixtures/joboutput/3.5.0-gz"],
}
"""What tells of no job."""
REAL = (
    "yarn/yarn_apps_real_samples.json",
    "yarn/real_appsummary_lines.txt",
    "yarn/hadoop-2.6.5_yarn-root-resourcemanager-master.log",
    "slurm/22.05.8/sacct_X_P_truncate.txt",
    "slurm/public/xdmod/unknown-job-state.log",
    "slurm/public/tdhock-slurm/sacct-multistep.txt",
)
"""Files of other people beside the checkout, where they are there."""
BESIDE = ROOT.parent / "shared" / "data"
WHOLE = {"philly-jobs", "slurm-dbd", "yarn-ats", "openb-pods", "philly", "output"}
"""What leads to branches of the outputs that no other leads to; of the rest, tables, screen and a job are made."""
BY_COMMANDS = {"json", "csv", "parquet", "tsv"}
MOST_LINES = 45


def below(*folders: Path) -> dict[Path, str]:
    """The files and archives below some folders that can be read, and (the last) format that is in each."""
    opener = Opener(Limits())
    try:
        found = [one for one in survey(folders, all_formats(), opener, sizes=set()) if isinstance(one, Finding)]
        small = [one for one in found if one.candidate.file.stat().st_size <= BIGGEST]
        return {one.candidate.file: one.format.name for one in small}
    finally:
        opener.close()


def every_file() -> list[Path]:
    """All there is, where that is asked for."""
    if not os.environ.get("GPUCTL_EVERY_FILE"):
        return []
    more = [Path(text) for text in os.environ.get("GPUCTL_MORE_FILES", "").split(":") if text]
    return sorted(below(ROOT / "sample_data", ROOT / "tests" / "fixtures", *more))


def ends(arguments: list[str]) -> tuple[int, str]:
    """How a command ends in this process, and what it says on stderr."""
    done = run_command("--debug", *arguments)
    return done.returncode, done.stderr


def through_everything(paths: Sequence[Path], folder: Path, *, whole: bool = True) -> set[str]:
    """Put some files through every output, or through analyses alone; their formats, none where none was found."""
    store, document, page = folder / "trace.duckdb", folder / "result.json", folder / "page.html"
    command = ["analyze", *map(str, paths), "--db", str(store), "--all", "--json", "--output", str(document)]
    kinds = ("csv", "parquet") if whole else ()
    outputs = ["--html", str(page), *(word for kind in kinds for word in (f"--{kind}", str(folder / kind)))]
    code, said = ends([*command, *(outputs if whole else ())])
    assert code in {ExitCode.OK, ExitCode.BAD_INPUT}, said
    assert code == ExitCode.OK or said.strip(), "refused without a word"
    if not document.exists():
        assert code == ExitCode.BAD_INPUT
        return set()
    json.loads(document.read_bytes(), parse_constant=pytest.fail)
    analysis = read_result(document)
    for kind in kinds:
        assert {each.name for each in analysis.tables} == {each.stem for each in (folder / kind).iterdir()}
    screen_fits(analysis)
    for job in some_jobs(store):
        code, said = ends(["explain", "--db", str(store), "--html", str(folder / "job.html"), "--", job])
        assert code == ExitCode.OK, said
    if whole:
        assert page.read_bytes().rstrip().endswith(b"</html>")
        written(analysis)
        report = ["report", str(document), "--html", str(folder / "report.html"), "--anonymise"]
        more = ["--markdown", str(folder / "summary.md"), "--output", str(folder / "report.tsv")]
        code, said = ends([*report, *more])
        assert code == ExitCode.OK, said
    return {source.format for source in analysis.sources}


def screen_fits(analysis: Analysis) -> None:
    screen = screens.screen(analysis)
    for width in (80, 120):
        text = io.StringIO()
        print_screen(screen, width=width, color=False, file=text)
        lines = text.getvalue().splitlines()
        assert 1 < len(lines) <= MOST_LINES
        assert max(map(cell_len, lines)) <= width


def written(analysis: Analysis) -> None:
    """Write the tables in the ways that no command above does, and with pictures."""
    names = [table.name for table in analysis.tables]
    for kind in {*get_args(Format)} - BY_COMMANDS - {"table"}:
        file = io.BytesIO()
        write_tables(analysis, kind, file, names=names)
        assert file.getvalue()
    screen = io.StringIO()
    print_analysis(analysis, console_width=100, color=True, file=screen, painter=partial(of_analysis, analysis))
    assert screen.getvalue()


def some_jobs(path: Path) -> list[str]:
    with Store(path) as store:
        rows = store.execute("SELECT job FROM jobs ORDER BY end_ts NULLS FIRST, job LIMIT 1").fetchall()
    return [row[0] for row in rows]


@pytest.mark.parametrize(("path", "name"), [*((ROOT / JOBS[n], n) for n in JOBS), *((p, None) for p in every_file())])
def test_every_output_of_files(path: Path, name: str | None, thin_data: Path, tmp_path: Path) -> None:
    if name == "philly-jobs":
        path = thin_data / "philly" / path.name
    found = through_everything([path], tmp_path, whole=name is None or name in WHOLE)
    assert name is None or name in found


@pytest.mark.parametrize("name", MADE)
def test_every_output_of_made_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "file").write_text(MADE[name])
    assert through_everything([tmp_path / "logs"], tmp_path, whole=name in WHOLE) == {name}


@pytest.mark.parametrize("name", OTHERS)
def test_every_output_where_there_is_no_job(name: str, tmp_path: Path) -> None:
    found = through_everything([ROOT / path for path in OTHERS[name]], tmp_path, whole=name in WHOLE)
    assert len(found) >= len(OTHERS[name])


def test_every_format_of_jobs_is_tested() -> None:
    # the other traces are read by a declaration, into the same rows
    declared = {name for name, (_, text) in TRACES.items() if name.startswith(("pai-", "batsim-")) or "," in text[:200]}
    declared |= {"acme-kalos", "acme-seren", "helios-jobs"}
    assert {each.name for each in all_formats() if "jobs" in each.fills} == {*JOBS, *MADE} | {
        each.name for each in all_formats() if "jobs" in each.fills and each.name in declared
    }


@pytest.mark.parametrize("name", REAL)
def test_every_output_of_real_files(name: str, tmp_path: Path) -> None:
    path = BESIDE / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside this checkout")
    assert through_everything([path], tmp_path)


def test_a_file_that_is_not_a_log_is_rejected(tmp_path: Path) -> None:
    odd = tmp_path / "notes.txt"
    odd.write_text("nothing in particular\n")
    assert not through_everything([odd], tmp_path)
