"""A queue's list of jobs: which cells are numbers of any sense, and what is said of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.predictors.queued_jobs import read_listed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    return tmp_path / "queue.csv"


def test_a_number_is_finite_and_not_below_0_or_not_known(listed: Path) -> None:
    cells = ("0", "-1", "2.5", "inf", "nan", "-0.001", "many", "", " 8 ")
    listed.write_text("job_id,num_gpus\n" + "".join(f"j{k},{cell}\n" for k, cell in enumerate(cells)))
    jobs, source = read_listed(listed)
    assert jobs.rows() == [("j0", 0.0), ("j2", 2.5), ("j7", None), ("j8", 8.0)]
    assert (source.rows_in, source.rows_loaded, source.rows_rejected) == (9, 4, 5)


def test_a_row_is_left_out_for_any_wrong_number_and_a_job_is_read_once(listed: Path) -> None:
    listed.write_text("job_id,num_gpus,nodes\na,1,-1\nb,-1,1\nc,1,1\nc,2,2\n,1,1\n")
    jobs, source = read_listed(listed)
    assert jobs.rows() == [("c", 1.0, 1.0)]
    assert source.rows_rejected == 4


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("job_id,num_gpus\na,1e999\n", "num_gpus is '1e999', expected a number not below 0"),
        ("job_id,nodes\na,-1\n", "nodes is '-1', expected a number not below 0"),
        ("job_id,num_gpus,gpus\na,1,1\n", "has several columns of one meaning: num_gpus, gpus"),
    ],
)
def test_a_list_without_a_job_names_which_cell_is_wrong(listed: Path, text: str, told: str) -> None:
    listed.write_text(text)
    with pytest.raises(InputError, match=told):
        read_listed(listed)


@pytest.mark.parametrize(("more", "ends"), [(8, "'c7'"), (9, "'c7' …")])
def test_eight_columns_that_are_not_read_are_named(
    listed: Path, caplog: pytest.LogCaptureFixture, more: int, ends: str
) -> None:
    names = [f"c{k}" for k in range(more)]
    listed.write_text(",".join(["job_id", *names]) + "\n" + ",".join(["a", *names]) + "\n")
    read_listed(listed)
    assert caplog.messages == [f"queue.csv: columns that are not read: {', '.join(map(repr, names[:7]))}, {ends}"]
    caplog.clear()
    # what reads the file besides may know them
    read_listed(listed, alone=False)
    assert not caplog.messages
