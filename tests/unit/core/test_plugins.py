"""What installed packages and files add, of all four kinds: found, named with where they are from, kept apart."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.pipeline import registry
from gpuctl.predictors import history
from gpuctl.predictors.conformance import random_log
from gpuctl.predictors.registry import find
from gpuctl.replay import policies
from gpuctl.replay.contract.policy import Policy
from gpuctl.reports.export.document import read_document
from gpuctl.reports.figures import in_terminal
from tests.cli_runner import run_command
from tests.installed_package import forget, install, on_path
from tests.synthetic_store import make_store

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUPS = ("gpuctl.policies", "gpuctl.formats", "gpuctl.analyses", "gpuctl.predictors")
ROOT = Path(__file__).resolve().parents[3]
FORMAT = (ROOT / "docs" / "examples" / "format" / "turnstile_jobs.py").read_text("utf-8")
POLICY = """
from gpuctl.replay.contract.python_policy import RankPolicy

class Last(RankPolicy):
    name = "last-first"
    title = "the last one first"

    def rank(self, jobs):
        return -jobs.submit
"""
HEADER = """-- title: Waits by user
-- section: queueing
-- question: Who waits?
-- population: {waits} waits.
-- column: user | - | who
-- column: wait_h | h | hours waited
-- chart: stacked x=user y=wait_h title="Who waits how long"
"""
SELECT = """SELECT coalesce("user", 'none') AS user,
    sum(epoch(start_ts - submit_ts)::DECIMAL(28, 9))::DOUBLE / 3600 AS wait_h
FROM base_jobs GROUP BY ALL ORDER BY ALL
"""
ANALYSIS = HEADER + SELECT
PREDICTOR = """
from gpuctl.predictors.contract import Predictor

class Last(Predictor):
    name = "last"
    title = "the last run time of the same user"

    def __init__(self):
        self.last = {}

    def ended(self, job, run_s):
        self.last[job.user] = run_s

    def predict(self, job):
        return self.last.get(job.user)
"""
GOOD = {
    "gpuctl.policies": {"last-first": "good:Last"},
    "gpuctl.formats": {"turnstile-jobs": "turnstile:FORMAT"},
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    on_path(folder, monkeypatch)
    yield folder
    monkeypatch.undo()
    forget()


def test_a_package_s_policy_and_format_are_listed_with_where_they_are_from(site: Path) -> None:
    install(site, "good", GOOD, good=POLICY, turnstile=FORMAT)
    forget()
    listed = {one["name"]: one["from"] for one in json.loads(run_command("policies", "--json").stdout)}
    assert (listed["last-first"], listed["fifo"]) == ("package good 1.2", "built in")
    listed = {one["name"]: one["from"] for one in json.loads(run_command("formats", "--json").stdout)}
    assert (listed["turnstile-jobs"], listed["slurm-sacct"]) == ("package good 1.2", "built in")
    assert policies.find("x=last-first").name == "last-first"
    found = run_command("ingest", ROOT / "docs/examples/format/jobs.turnstile", "--db", site / "t.duckdb", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["sources"][0]["format"] == "turnstile-jobs"
    # the package is gone, what it loaded is not
    (site / "good-1.2.dist-info" / "entry_points.txt").unlink()
    forget()
    assert "turnstile-jobs" not in run_command("formats").stdout
    again = run_command("analyze", site / "t.duckdb", "--table", "overview")
    assert again.returncode == 0, again.stderr


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("stores") / "t.duckdb")


def test_a_package_s_analysis_is_there_as_ours_are(site: Path, store: Path, caplog: pytest.LogCaptureFixture) -> None:
    points = {
        "gpuctl.analyses": {"any": "good_sql", "one": "good_sql:no_such"},
        "gpuctl.predictors": {"last": "good:Last"},
    }
    install(site, "good", points, good=PREDICTOR)
    (site / "good_sql").mkdir()
    (site / "good_sql" / "__init__.py").touch()
    (site / "good_sql" / "waits_by_user.sql").write_text(ANALYSIS)
    forget()
    ended = run_command("analyses", "--json")
    listed = {one["name"]: one["from"] for one in json.loads(ended.stdout)}
    assert (listed["waits_by_user"], listed["overview"]) == ("package good 1.2", "built in")
    assert "analysis 'one' of package good 1.2: there is no file of SQL" in caplog.text
    page = site / "page.html"
    ended = run_command("analyze", store, "--section", "queueing", "--json", "--html", page)
    assert ended.returncode == 0, ended.stderr
    tables = json.loads(ended.stdout)["tables"]
    assert tables["waits_by_user"]["rows"] == [{"user": "none", "wait_h": pytest.approx(200 * 60 / 3600)}]
    assert list(tables).index("waits_by_user") == list(tables).index("waits") + 1, "last of its section"
    assert "Who waits how long" in page.read_text()
    # a document carries its chart to where the package is not
    (site / "kept.json").write_text(ended.stdout)
    (site / "good-1.2.dist-info" / "entry_points.txt").unlink()
    forget()
    [drawn] = [chart for chart in in_terminal(read_document(site / "kept.json")) if chart.table == "waits_by_user"]
    assert drawn.title == "Who waits how long"


def test_a_package_s_predictor_is_scored_next_to_the_rules(site: Path) -> None:
    install(site, "good", {"gpuctl.predictors": {"last": "good:Last"}}, good=PREDICTOR)
    forget()
    assert json.loads(run_command("predictors", "last", "--json").stdout)[0]["from"] == "package good 1.2"
    assert run_command("predictors", "last", "--check", "3").returncode == 0
    jobs = random_log(0, jobs=500)
    scores = history.train(jobs, others=[find("last")]).scores
    assert {"history", "last", "mean"} <= set(scores["predictor"])
    with pytest.raises(UsageError, match="gpuctl's own"):
        find("mean")
    with pytest.raises(UsageError, match="no predictor 'lasst'"):
        find("lasst")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return -1", "expected seconds, at least 0, or None"),
        ("return job.age", "AttributeError"),
        ("SEEN.append(1); return len(SEEN)", "a second call gives other predictions"),
    ],
)
def test_what_no_predictor_may_do_is_found(tmp_path: Path, body: str, told: str) -> None:
    own = tmp_path / "own.py"
    head = "from gpuctl.predictors.contract import Predictor\nSEEN = []\nclass Bad(Predictor):\n"
    own.write_text(f"{head}    def predict(self, job):\n        {body}\n")
    ended = run_command("predictors", f"{own}:Bad", "--check", "2")
    assert ended.returncode == 1
    assert told in ended.stdout


def test_a_file_of_sql_is_an_analysis_that_reads_the_store_alone(tmp_path: Path, store: Path) -> None:
    own = tmp_path / "waits_by_user.sql"
    own.write_text(ANALYSIS)
    ended = run_command("analyze", store, "--table", own, "--format", "csv")
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "user,wait_h"), ended.stderr
    assert run_command("analyses", own, "--check", store).returncode == 0
    secret = tmp_path / "secret.csv"
    secret.write_text("a,wait_h\n1,2\n")
    before = store.read_bytes()
    for select, told in {
        f"SELECT 'a' AS user, 1.0 AS wait_h FROM read_csv('{secret}')": "more than the store",
        f"SELECT content AS user, 1.0 AS wait_h FROM read_text('{secret}')": "more than the store",
        "SELECT 'a' AS user, 1.0 AS wait_h FROM 'https://example.org/x.parquet'": "",
        "SELECT 'a' AS user, 1.0 AS wait_h; DELETE FROM jobs": "holds 2 statements",
        "DELETE FROM jobs": "does more than read: DELETE",
        f"COPY jobs TO '{tmp_path / 'out.csv'}'": "does more than read: COPY",
        "SET enable_external_access = true": "does more than read: SET",
        "SELECT 1.0 AS wait_h": "its rows have wait_h",
        "SELECT 'a' AS user, gpus AS wait_h FROM base_explain_job": "base_explain_job",
        "SELECT 'a' AS user, x AS wait_h FROM jobs": "x",
    }.items():
        own.write_text(HEADER + select)
        ended = run_command("analyze", store, "--table", own)
        assert ended.returncode == 3, (select, ended)
        assert "analysis 'waits_by_user' of file" in ended.stderr
        assert told in ended.stderr
    for old, new, told in (
        ("{waits}", "{waits.__class__}", "the number does not exist: {waits.__class__}"),
        ("-- title: Waits by user\n", "", "needs a '-- title:' line"),
        ("by user\n", "by user\n-- needs: magic\n", "'magic' is not a kind of data that gpuctl knows"),
        ("by user\n", "by user\n-- reference: atc19\n", "only gpuctl's own"),
        ("SELECT", "SELECT $job,", "there is no parameter $job"),
    ):
        own.write_text(ANALYSIS.replace(old, new, 1))
        ended = run_command("analyze", store, "--table", own)
        assert (ended.returncode, told in ended.stderr) == (3, True), ended
    ours = tmp_path / "overview.sql"
    ours.write_text(ANALYSIS)
    assert "more than once: built in; file" in run_command("analyze", store, "--table", ours).stderr
    assert run_command("analyze", store, "--table", tmp_path / "none.sql").returncode == 2
    assert store.read_bytes() == before
    assert not (tmp_path / "out.csv").exists()


def test_an_analysis_that_fails_leaves_the_others_their_tables(
    site: Path, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, "bad", {"gpuctl.analyses": {"x": "bad_sql", "y": "torn_sql", "z": "ours_sql"}})
    texts = {"bad_sql/waits_by_user": ANALYSIS.replace("base_jobs", "nothing"), "ours_sql/overview": ANALYSIS}
    for name, text in texts.items():
        (site / name).parent.mkdir()
        (site / f"{name}.sql").write_text(text)
    forget()
    ended = run_command("analyze", store, "--section", "queueing", "--json")
    assert ended.returncode == 0, ended.stderr
    assert "waits" in json.loads(ended.stdout)["tables"]
    assert "analysis 'waits_by_user' of package bad 1.2" in " ".join(json.loads(ended.stdout)["warnings"])
    assert "analysis 'y' of package bad 1.2: it cannot be loaded: ModuleNotFoundError" in caplog.text
    assert "analysis 'overview' exists more than once: built in; package bad 1.2" in caplog.text
    assert run_command("analyze", store, "--table", "waits_by_user").returncode == 3


def test_a_broken_one_is_named_and_stops_no_other(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    points = {
        "gpuctl.policies": {"torn": "torn:Last", "other": "good:Last", "list": "good:NAMES", "quits": "quits:X"},
        "gpuctl.formats": {"torn-log": "torn:FORMAT", "gone-log": "absent:FORMAT"},
    }
    install(site, "bad", points, torn="import no_such_module_of_anybody", good=POLICY + "NAMES = []", quits="exit(3)")
    forget()
    shown = run_command("policies")
    assert shown.returncode == 0
    assert "fifo\t" in shown.stdout
    for text in (
        "policy 'torn' of package bad 1.2: it cannot be loaded: ModuleNotFoundError",
        "policy 'other' of package bad 1.2: its class calls itself 'last-first'",
        "policy 'list' of package bad 1.2: it is not a subclass",
        "policy 'quits' of package bad 1.2: it cannot be loaded: SystemExit: 3",
    ):
        assert text in shown.stderr
    with pytest.raises(InputError, match="'torn' of package bad"):
        policies.find("torn")
    assert issubclass(policies.find("fifo"), Policy)
    caplog.set_level(logging.WARNING)
    assert {fmt.name for fmt in registry.all_formats()} == {fmt.name for fmt in registry.built_in()}
    assert "format 'torn-log' of package bad 1.2" in caplog.text
    assert "format 'gone-log' of package bad 1.2" in caplog.text
    with pytest.raises(InputError, match="'gone-log'"):
        registry.named("gone-log", registry.all_formats())


def test_one_name_for_two_is_refused_with_both_origins(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    clash = {"gpuctl.policies": {"fifo": "good:Last", "last-first": "good:Last"}, "gpuctl.formats": {"slurm-conf": "x"}}
    install(site, "one", clash, good=POLICY)
    install(site, "two", {"gpuctl.policies": {"last-first": "good:Last"}})
    forget()
    for name, one, other in (("fifo", "built in", "package one 1.2"), ("last-first", "package one", "package two")):
        with pytest.raises(UsageError, match=f"'{name}' exists more than once") as refused:
            policies.find(name)
        assert one in refused.value.message
        assert other in refused.value.message
    assert policies.find("srtf").name == "srtf"
    assert "fifo\t" in run_command("policies").stdout
    assert {fmt.name for fmt in registry.all_formats()} == {fmt.name for fmt in registry.built_in()}
    assert "format 'slurm-conf' exists more than once: built in; package one 1.2" in caplog.text
    with pytest.raises(UsageError, match="more than once"):
        registry.named("slurm-conf", registry.all_formats())


def test_a_format_that_fails_keeps_no_other_from_its_files(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = FORMAT.replace('    """Recognise the first line."""', '    if b"JobID" in head: raise KeyError(name)')
    assert text != FORMAT
    text = text.replace("def load(", "def load(stream, sink):\n    return 1 / 0\n\n\ndef unused(")
    install(site, "good", {"gpuctl.formats": {"turnstile-jobs": "turnstile:FORMAT"}}, turnstile=text)
    forget()
    sacct = site / "sacct.txt"
    sacct.write_text(
        "JobID|State|Submit|Start|End\n1|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00\n"
    )
    ended = run_command("ingest", sacct, "--db", site / "s.duckdb", "--json")
    assert ended.returncode == 0, ended.stderr
    assert "format 'turnstile-jobs' of package good 1.2: sniff() failed: KeyError: 'sacct.txt'" in caplog.text
    ended = run_command(
        "ingest", ROOT / "docs/examples/format/jobs.turnstile", "--db", site / "s.duckdb", "--cluster", "c"
    )
    assert ended.returncode == 3
    assert "format 'turnstile-jobs' of package good 1.2: " in ended.stderr
    assert "load() failed: ZeroDivisionError" in ended.stderr


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("FORMAT = 1", "FORMAT", "has no format 'FORMAT'"),
        ("import absent_module_of_anybody", "FORMAT", r"own\.py:1: it cannot be loaded: ModuleNotFoundError"),
        ("x = (", "FORMAT", r"own\.py:1: not Python"),
        ("raise SystemExit(0)", "FORMAT", r"own\.py:1: it cannot be loaded: SystemExit"),
        (
            FORMAT.replace('name="turnstile-jobs"', 'name="slurm-conf"'),
            "FORMAT",
            "there is more than once|more than once",
        ),
    ],
)
def test_a_file_that_has_no_such_format_is_refused(tmp_path: Path, text: str, name: str, message: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(text)
    with pytest.raises((UsageError, InputError), match=message):
        registry.with_named(f"{own}:{name}", registry.all_formats())


def test_nothing_of_a_package_is_imported_before_it_is_needed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    points = {group: {"noisy": "noisy:X"} for group in GROUPS}
    install(site, "noisy", points, noisy="open(__file__ + '.ran', 'w')")
    for arguments in (["--help"], ["policies", "--help"], ["analyze", "--help"], ["policies", "fifo"], ["--version"]):
        ended = subprocess.run(
            [sys.executable, "-m", "gpuctl", *arguments], env={"PYTHONPATH": f"{site}:{ROOT}", "PATH": ""}, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        assert ended.stdout
    assert not (site / "noisy.py.ran").exists()


def test_every_policy_that_a_module_has_is_found_without_importing_it() -> None:
    found: dict[str, type[Policy]] = {name: policies.built_in_policy(name) for name in policies.BUILT_IN}
    assert list(found) == sorted(found)
    assert {name: kind.name for name, kind in found.items()} == {name: name for name in found}
    names = [
        m.name for m in walk_packages(policies.__path__, f"{policies.__name__}.") if not m.name.endswith("_kernel")
    ]
    modules = [import_module(name) for name in names]
    named = {k for m in modules for k in vars(m).values() if isinstance(k, type) and issubclass(k, Policy) and k.name}
    assert named == set(found.values())
