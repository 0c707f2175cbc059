"""Long answers are the rows that short ones are; their rows lie in a file without a name."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import StoreError
from gpuctl.store.database import Store
from gpuctl.store.reader_sql import BATCH_ROWS

if TYPE_CHECKING:
    from pathlib import Path

ROWS = (
    "SELECT 'job' || i AS job, i / 7 AS wait_s, [i, NULL] AS gpus, CASE WHEN i % 3 > 0 THEN i END AS priority, "
    "to_timestamp($first + i) AS start_ts FROM range($rows) AS r(i) ORDER BY i DESC"
)


@pytest.mark.parametrize("rows", [0, 1, BATCH_ROWS, 2 * BATCH_ROWS + 1])
def test_a_long_answer_has_the_rows_and_types_of_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with Store(tmp_path / "t.duckdb", write=True) as store:
        values = {"first": 0, "rows": rows}
        found, expected = store.frame(ROWS, values, long=True), store.frame(ROWS, values)
        assert found.schema == expected.schema
        assert found.equals(expected)
    assert not list(folder.iterdir())
    assert found.height == 0 or found["start_ts"][-1].astimezone(UTC).year == 1970


def test_a_long_answer_with_a_year_past_9999_is_refused(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "t.duckdb", write=True) as store,
        pytest.raises(StoreError, match="start_ts is not in the years 1 to 9999"),
    ):
        store.frame(ROWS, {"first": 253_402_300_800, "rows": 3}, long=True)
