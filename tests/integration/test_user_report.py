"""``gpuctl report --user``: a page that a person can act on, as text for a mail and as tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.sacct_records import text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    Gpuctl = Callable[..., CompletedProcess[str]]


@pytest.fixture
def store(tmp_path: Path, gpuctl: Gpuctl) -> Path:
    records = [
        record
        for k in range(1, 25)
        for record in (
            {"JobIDRaw": str(k), "User": "alice" if k < 24 else "bob", "TotalCPU": "00:08:00"},
            {"JobIDRaw": f"{k}.batch", "User": "", "TotalCPU": "00:08:00", "MaxRSS": f"{k / 10:.1f}G", "NTasks": "1"},
        )
    ]
    (tmp_path / "sacct.txt").write_text(text(*records))
    gpuctl("ingest", tmp_path / "sacct.txt", "--db", tmp_path / "t.duckdb", "--cluster", "c")
    return tmp_path / "t.duckdb"


def test_a_pipe_gets_the_page_of_one_user(store: Path, gpuctl: Gpuctl) -> None:
    page = " ".join(gpuctl("report", store, "--user", "alice").stdout.split())
    assert page.startswith("GPU use of alice on c")
    assert "jobs 23 " in page
    # 23 jobs used 1/6 of an hour's limit and 0.1 to 2.3 of 16 GiB; of 24 jobs alike, one has the largest share
    assert "- Request 16.7 % of today's time limits (median " in page
    assert "a job needs more with a probability of 4.2 % (23 jobs)." in page
    assert "- Request 14.4 % of today's memory" in page
    assert "bob" not in page


def test_json_has_its_tables(store: Path, gpuctl: Gpuctl) -> None:
    found = json.loads(gpuctl("report", store, "--user", "bob", "--json").stdout)
    assert [row["user"] for row in found["tables"]["users"]["rows"]] == ["bob"]
    [memory] = [row for row in found["tables"]["smaller_requests"]["rows"] if row["resource"] == "memory"]
    assert memory["could_ask_pct"] == pytest.approx(15)
    assert memory["risk_pct"] == 50, "one job says little of the next"


def test_a_page_in_html(store: Path, tmp_path: Path, gpuctl: Gpuctl) -> None:
    gpuctl("report", store, "--user", "alice", "--html", tmp_path / "alice.html")
    assert "smaller_requests" in (tmp_path / "alice.html").read_text()


def test_an_unknown_user_is_refused(store: Path, gpuctl: Gpuctl) -> None:
    failed = gpuctl("report", store, "--user", "carol", check=False)
    assert failed.returncode == 2
    assert "carol" in failed.stderr
