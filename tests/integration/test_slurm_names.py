"""The same jobs under two names: sacct's JobID (12_3, 12+1) in one file, JobIDRaw (15) in another one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.slurm.job_id_forms import DOUBTFUL, UNJOINED
from gpuctl.store.database import Store
from tests.slurm_loading import SHARED

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMS = Path(__file__).resolve().parents[1] / "fixtures" / "slurm" / "other"
LINES = (FORMS / "sacct_XD_P_delim.txt").read_text().split("\n")
# without the jobs whose names hold line ends
TABLE = [cells for cells in (line.split("\x1f") for line in LINES) if len(cells) == LINES[0].count("\x1f") + 1]
FACTS = "State|Submit|Start|End|AllocTRES|NodeList"
BOTH, RAW, NAMED, DATELESS = f"JobIDRaw|JobID|{FACTS}", f"JobIDRaw|{FACTS}", f"JobID|{FACTS}", "JobID|AllocTRES"
ORDERS = (
    *("both-raw", "both-named", "both-dateless", "dateless-both", "named-dateless-both"),
    *("raw-both-named", "raw-named-both", "named-both-raw", "named-raw-both"),
)
JOBS = "SELECT job, state, submit_ts, start_ts, end_ts, attempts, gpus FROM jobs ORDER BY ALL"


def text(columns: str, rows: Sequence[Sequence[str]] = TABLE[1:]) -> str:
    """The recorded jobs with some of their columns, as ``sacct -P`` prints them."""
    at = [TABLE[0].index(name) for name in columns.split("|")]
    return "\n".join([columns, *("|".join(row[i] for i in at) for row in rows)]) + "\n"


def loaded(folder: Path, *texts: str, before: Path | None = None) -> tuple[list[tuple[object, ...]], int, list[str]]:
    """The jobs in the store, the rows of attempts, and why records were rejected, after loading texts one by one.

    They come after what is in the store ``before``.
    """
    folder.mkdir()
    if before is not None:
        shutil.copyfile(before, folder / "x.duckdb")
    reasons: list[str] = []
    for number, content in enumerate(texts):
        path = folder / f"{number}.txt"
        path.write_text(content)
        (report,) = ingest([path], folder / "x.duckdb", cluster="lab").sources
        counted = report.rows_loaded + report.rows_already_stored + report.rows_rejected
        assert report.rows_in == counted == content.count("\n") - 1
        reasons += [reason for reason, _ in report.reasons]
    with Store(folder / "x.duckdb") as store:
        rows = store.frame(JOBS).rows()
        attempts = int(store.value("SELECT count(*) FROM attempts"))
        lost = store.value(
            "SELECT count(*) FROM placements AS p WHERE NOT EXISTS "
            "(FROM attempts AS a WHERE a.job = p.job AND a.attempt = p.attempt)"
        )
        assert lost == 0
    return rows, attempts, reasons


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[object, ...]], int]:
    return loaded(tmp_path_factory.mktemp("alone") / "x", text(BOTH))[:2]


def test_two_forms_of_the_same_jobs_are_the_same_jobs(
    tmp_path: Path, alone: tuple[list[tuple[object, ...]], int]
) -> None:
    """In any order, and after two files as after three; orders that begin alike go on from one store."""
    columns = {"both": BOTH, "raw": RAW, "named": NAMED, "dateless": DATELESS}
    for order in ORDERS:
        names = order.split("-")
        for size in range(1, len(names) + 1):
            folder, before = tmp_path / "-".join(names[:size]), tmp_path / "-".join(names[: size - 1]) / "x.duckdb"
            if folder.exists():
                continue
            rows, attempts, _ = loaded(folder, text(columns[names[size - 1]]), before=before if size > 1 else None)
            if "both" in names[:size]:
                assert (rows, attempts) == alone, folder.name


@pytest.mark.parametrize("names", [(RAW, NAMED), (NAMED, RAW)])
def test_names_that_nothing_joins_are_kept_once_and_that_is_reported(
    tmp_path: Path, alone: tuple[list[tuple[object, ...]], int], names: tuple[str, ...]
) -> None:
    rows, attempts, reasons = loaded(tmp_path / "x", *map(text, names))
    assert (rows, attempts) == alone
    if names[0] == RAW:
        assert UNJOINED in reasons


def test_an_array_that_only_one_file_has_stays_whole(tmp_path: Path) -> None:
    """Neither joined nor dropped: the other file tells of other jobs."""
    array = [row for row in TABLE[1:] if "_" in row[TABLE[0].index("JobID")]]
    other = [row for row in TABLE[1:] if not set("_+") & set(row[TABLE[0].index("JobID")])]
    assert array
    rows, _, reasons = loaded(tmp_path / "x", text(NAMED, array), text(RAW, other))
    apart = loaded(tmp_path / "y", text(NAMED, array))[0] + loaded(tmp_path / "z", text(RAW, other))[0]
    assert rows == sorted(apart, key=lambda row: str(row[0]))
    assert UNJOINED not in reasons


@pytest.mark.parametrize("dateless_first", [False, True])
def test_possible_duplicates_of_undated_tasks_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, dateless_first: bool
) -> None:
    """The same text is right for two clusters: tasks that are the numbered jobs, and tasks that are others."""
    tasks = "JobID|User|AllocTRES\n70_1|ann|gres/gpu=1\n70_2|ann|gres/gpu=1\n"
    numbers = (
        "JobIDRaw|User|State|Submit|Start|End|AllocTRES\n"
        "71|ann|COMPLETED|2026-11-20T10:00:00|2026-11-20T10:01:00|2026-11-20T10:02:00|gres/gpu=1\n"
        "72|ann|COMPLETED|2026-11-20T10:00:00|2026-11-20T10:01:00|2026-11-20T10:03:00|gres/gpu=1\n"
    )
    rows, _, reasons = loaded(tmp_path / "x", *((tasks, numbers) if dateless_first else (numbers, tasks)))
    assert ([row[0] for row in rows], reasons) == (["70_1", "70_2", "71", "72"], [])
    (said,) = [record for record in caplog.records if record.msg == DOUBTFUL]
    assert said.getMessage().startswith("2 array tasks")
    assert "JobIDRaw" in said.getMessage()
    assert "0.txt" in said.getMessage()
    assert "this file" in said.getMessage()
    caplog.clear()
    # of somebody else; of earlier numbers
    other = numbers.replace("\n7", "\n6") if dateless_first else numbers.replace("|ann|", "|bob|")
    loaded(tmp_path / "y", tasks, other)
    assert not [record for record in caplog.records if record.msg == DOUBTFUL]


def test_the_labs_exports_without_raw_ids_add_no_jobs(tmp_path: Path) -> None:
    lab = SHARED / "22.05.8"
    if not lab.is_dir():
        pytest.skip("the real files are not on this machine")
    names = ["sacct_XD_P_delim.txt", "sacct_X_P_units_G.txt", "sacct_X_P_tzfmt.txt"]
    for order in (names, names[::-1]):
        db = tmp_path / f"{order[0]}.duckdb"
        for name in order:
            assert not ingest([lab / name], db, cluster="lab").failed
        with Store(db) as store:
            assert store.value("SELECT count(*) FROM jobs") == 459
            assert store.value("SELECT count(*) FROM jobs WHERE state = 'unknown'") == 0
            assert store.value("SELECT count(*) FROM attempts") == 469
