"""Every analysis table of four small logs, cell by cell; GPUCTL_UPDATE_GOLDEN=1 writes them anew: read the diff.

The first log's figures were worked out by hand (tests/hand_worked_logs.py); the truth about the others' waits and
failures is checked elsewhere. These files say what else changes if a query does.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hand_worked_logs import write_mixed_log, write_worked_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Gpuctl = Callable[..., CompletedProcess[str]]

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tables"
MOST_ROWS = 12
"""Rows of a table that are kept; what a query does wrong shows in them."""
JOBS = (
    ("worked", "2"),
    ("worked", "9"),
    ("mixed", "1"),
    ("mixed", "10_1"),
    ("mixed", "25"),
    ("philly", "application_1506638472019_00186"),
    ("failures", "4047"),
)
"""Jobs that are explained: behind a quota, for want of a node, held, retried, pending, one of the documents, failed."""
LEFT_OUT = {"sources"}
"""Tables that name files and moments of loading."""


def _text(answer: dict[str, Any]) -> str:
    lines = []
    for name, table in answer["tables"].items():
        if name in LEFT_OUT or not table["rows"]:
            continue
        columns = [column["name"] for column in table["columns"]]
        lines += ["", f"# {name}: {len(table['rows'])} rows", "\t".join(columns)]
        lines += ["\t".join(_cell(row[column]) for column in columns) for row in table["rows"][:MOST_ROWS]]
    return "\n".join(lines).lstrip() + "\n"


def _rounded(value: Any) -> Any:
    """The same value with floats of six digits."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, thin_data: Path, gpuctl: Gpuctl) -> Path:
    """The logs in one store, so that no figure of one cluster counts another's jobs."""
    folder = tmp_path_factory.mktemp("values")
    logs = {
        "worked": write_worked_log(folder),
        "mixed": write_mixed_log(folder),
        "philly": thin_data / "philly",
        "failures": thin_data / "failures",
    }
    for name, path in logs.items():
        gpuctl("ingest", path, "--db", folder / "store.duckdb", "--cluster", name)
    return folder / "store.duckdb"


def _check(name: str, text: str) -> None:
    place = GOLDEN / name
    if os.environ.get("GPUCTL_UPDATE_GOLDEN"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, "utf-8")
    assert text == place.read_text("utf-8")


def _options(cluster: str, store: Path) -> tuple[str | Path, ...]:
    quotas = ("--quotas", store.parent / "quotas.csv", "--borrow-below", "0") if cluster == "worked" else ()
    return ("--cluster", cluster, *quotas, "--json")


@pytest.mark.parametrize("name", ["worked", "mixed", "philly", "failures"])
def test_tables_have_the_values_they_had(name: str, store: Path, gpuctl: Gpuctl) -> None:
    done = gpuctl("analyze", store, *_options(name, store), "--all")
    _check(f"{name}.tsv", _text(json.loads(done.stdout)))


@pytest.mark.parametrize(("cluster", "job"), JOBS)
def test_explanations_have_the_values_they_had(cluster: str, job: str, store: Path, gpuctl: Gpuctl) -> None:
    done = gpuctl("explain", job, store, *_options(cluster, store))
    text = json.dumps(_rounded(json.loads(done.stdout)), indent=1) + "\n"
    _check(f"{cluster}-{job}.json", text.replace(str(store.parent), "FOLDER"))


def test_a_period_holds_its_first_instant_and_not_its_last(store: Path, gpuctl: Gpuctl) -> None:
    period = ("--since", "2026-03-02T06:00Z", "--until", "2026-03-02T07:00Z")
    done = gpuctl("analyze", store, *_options("worked", store), *period, "--table", "job_times")
    rows = json.loads(done.stdout)["tables"]["job_times"]["rows"]
    assert {row["job"] for row in rows} == {"3", "4"}
