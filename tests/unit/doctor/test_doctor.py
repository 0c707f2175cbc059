"""What ``gpuctl doctor`` prints of findings, and its exit code. GPUCTL_UPDATE_GOLDEN=1 writes the pages anew."""

from __future__ import annotations

import builtins
import io
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import typer

from gpuctl.cli import doctor
from gpuctl.core.errors import ExitCode
from gpuctl.doctor import installation, machine, models, run, store
from gpuctl.doctor.check import DoctorContext, Finding, Status
from gpuctl.reports.export.files import write_tables
from gpuctl.reports.terminal.printer import print_analysis
from gpuctl.store.database import StoreLockedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "doctor"
CONTEXT = DoctorContext(db=Path("/data/site.duckdb"), models=(Path("/data/run-times"),), root=Path("/nonexistent"))


def findings() -> list[Finding]:
    """Some of each status, by the checks themselves."""
    return [
        installation.compare_versions(
            {"duckdb": ">=2.0,<3", "polars": ">=2.0,<3", "lightgbm": ">=4.7,<5"},
            {"duckdb": "2.0.1", "polars": "2.1.0", "lightgbm": "4.7.0"},
            "pyproject.toml",
        ),
        machine.free_space("disk_store", Path("/data"), 700_000_000, 1_000_000_000, "DuckDB spills next to the store"),
        machine.unicode_support("ascii"),
        models.age(Path("/data/run-times"), 120, {"settings": {"submitted, fit": "2017-10-01 to 2017-11-30"}}),
        models.features(Path("/data/run-times"), {"features": {"size": "GPUs"}}, {"size": "GPUs"}),
        store.open_failure(StoreLockedError(Path("/data/site\x1b[31m.duckdb"), 4242), CONTEXT),
    ]


def ledger() -> pl.DataFrame:
    return pl.DataFrame(
        [
            ("west", "/logs/sacct-2024.txt", "sacct", 12_000, 0, 300, 2.5),
            ("west", "/logs/jobs", "philly-jobs", 9, 0, 0, 0.0),
        ],
        schema=["cluster", "path", "format", "rows_in", "rows_already_stored", "rows_rejected", "rejected_pct"],
        orient="row",
    )


@pytest.mark.parametrize("width", [80, 60])
def test_terminal(width: int) -> None:
    out = io.StringIO()
    result = run.analysis(CONTEXT, findings(), ledger(), "gpuctl doctor")
    print_analysis(result, console_width=width, color=False, file=out)
    place = GOLDEN / f"terminal-{width}.txt"
    if os.environ.get("GPUCTL_UPDATE_GOLDEN"):
        place.write_text(out.getvalue(), "utf-8")
    assert out.getvalue() == place.read_text("utf-8")
    assert max(map(len, out.getvalue().splitlines())) <= width
    assert "\x1b" not in out.getvalue()


def test_json_has_every_finding() -> None:
    out = io.BytesIO()
    found = findings()
    write_tables(run.analysis(CONTEXT, found, ledger(), "gpuctl doctor"), "json", out)
    document = json.loads(out.getvalue())
    assert list(document["tables"]) == list(doctor.TABLES)
    checks = document["tables"]["checks"]
    assert [column["name"] for column in checks["columns"]] == ["check", "status", "evidence", "fix"]
    assert all(column["description"] for column in checks["columns"])
    assert [row["status"] for row in checks["rows"]] == ["ok", "warn", "warn", "warn", "ok", "fail"]
    assert [row["evidence"] for row in checks["rows"]] == [one.evidence for one in found]
    assert [row["fix"] is None for row in checks["rows"]] == [one.status is Status.OK for one in found]
    assert checks["population"] == "2 ok, 3 warn, 1 fail."
    assert document["tables"]["ledger"]["rows"][0]["rejected_pct"] == 2.5


@pytest.mark.parametrize(
    ("given", "note"),
    [
        (DoctorContext(), "Not checked, as no option names them: a store (--db FILE) and saved models (--model DIR)."),
        (DoctorContext(db=Path("a")), "Not checked, as no option names them: saved models (--model DIR)."),
        (DoctorContext(models=(Path("a"),)), "Not checked, as no option names them: a store (--db FILE)."),
    ],
)
def test_skipped_directories_are_reported(given: DoctorContext, note: str) -> None:
    (table,) = run.analysis(given, [Finding("a", Status.OK, "fine")], None, "").tables
    assert table.notes == (note,)


def test_checks_that_were_not_done_are_reported() -> None:
    (table,) = run.analysis(CONTEXT, findings(), None, "").tables
    assert "after the failed one were skipped" in table.notes[0]


def test_the_ledger_is_reported() -> None:
    table, _ = run.analysis(CONTEXT, [Finding("a", Status.OK, "fine")], ledger(), "").tables
    assert table.notes == ("The store's files with their share of rejected rows: --table ledger.",)


def test_a_check_without_its_package_fails_and_the_others_are_done() -> None:
    def broken(_context: DoctorContext) -> Iterable[Finding]:
        raise ImportError("numba needs NumPy 2.4 or less\nand more")

    def fine(_context: DoctorContext) -> Iterable[Finding]:
        yield Finding("fine", Status.OK, "yes")

    def lost(_context: DoctorContext) -> Iterable[Finding]:
        yield Finding("first", Status.OK, "yes")
        raise OSError("Could not find/load shared object file")

    found, rows = run.run(DoctorContext(), (broken, fine, lost))
    assert rows is None
    assert [one.check for one in found] == ["broken", "fine", "first", "lost"]
    assert [one.status for one in found] == [Status.FAIL, Status.OK, Status.OK, Status.FAIL]
    assert found[0].evidence.endswith("numba needs NumPy 2.4 or less")
    assert found[3].evidence.endswith("Could not find/load shared object file")


def test_a_path_that_no_system_takes() -> None:
    """`gpuctl doctor` of a name that is too long is no bug, whatever it is given for."""
    name = Path("x" * 5000)
    found, rows = run.run(DoctorContext(db=name, models=(name,), reports=name))
    assert rows is None
    failed = {one.check for one in found if one.status is Status.FAIL}
    assert {"store_file", "model_folder", "reports"} <= failed


def call(**options: Any) -> int:
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    given: dict[str, Any] = {"db": None, "model": None, "reports": None, "output_format": None, "as_json": False}
    try:
        doctor.doctor(context=context, **{**given, "output": None, **options})
    except typer.Exit as end:
        return end.exit_code
    return 0


@pytest.mark.parametrize(
    ("statuses", "code"),
    [([Status.OK], 0), ([Status.OK, Status.WARN], 0), ([Status.WARN, Status.FAIL, Status.OK], ExitCode.CHECK_FAILED)],
)
def test_only_a_check_that_fails_changes_the_exit_code(
    statuses: Sequence[Status], code: int, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    found = [Finding(f"check{n}", status, "x", "" if status is Status.OK else "y") for n, status in enumerate(statuses)]
    monkeypatch.setattr(run, "run", lambda _: (found, None))
    assert call() == code
    out, err = capfdbinary.readouterr()
    assert len(out.splitlines()) == len(found) + 1
    assert (b"1 of 3 checks failed: check1" in err) == (code == 1)


def test_without_polars_the_findings_are_still_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def none(name: str, *rest: Any) -> Any:
        if name == "polars":
            raise ImportError("No module named 'polars'")
        return real(name, *rest)

    found = [Finding("dependencies", Status.FAIL, "polars is missing", "install it"), Finding("python", Status.OK, "x")]
    monkeypatch.setattr(run, "run", lambda _: (found, None))
    monkeypatch.setattr(builtins, "__import__", none)
    assert call() == ExitCode.CHECK_FAILED
    told = capsys.readouterr()
    assert told.out == ""
    assert "dependencies: fail: polars is missing; install it\n" in told.err
    assert "python" not in told.err


def test_every_check_is_in_the_document(root: Path) -> None:

    page = (root / "docs" / "reference" / "cli.md").read_text("utf-8")
    document = page.partition("## Check the installation")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", document, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    modules = (installation, machine, models, store)
    source = "".join(Path(module.__file__).read_text("utf-8") for module in modules)
    ids = set(re.findall(r'(?:finding|free_space|_known)\(\s*"(\w+)"', source))
    ids |= {"store_file", "store_lock", "store_schema"}
    assert len(ids) > 20
    assert told == ids
