"""Every file in queries/ is documented, binds on an empty store, and returns the columns it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuctl.analyze import registry
from gpuctl.analyze.run import Options, analyze
from gpuctl.core.errors import UsageError
from gpuctl.core.results import Analysis
from gpuctl.store.database import Store

NAMES = (*registry.TABLES, *registry.REFERENCE_TABLES)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    path = tmp_path_factory.mktemp("empty") / "empty.duckdb"
    with Store(path, write=True) as store:
        store.execute("INSERT INTO clusters VALUES ('c', 'philly-jobs', 'America/Los_Angeles', 'wall', NULL, NULL)")
    with Store(path) as store:
        return analyze(store, Options(reference="atc19"))


def test_every_file_is_registered(root: Path) -> None:
    assert sorted(NAMES) == sorted(path.stem for path in (root / "queries").glob("*.sql"))


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_those_documented(empty: Analysis, name: str) -> None:
    table = empty.table(name)
    assert table is not None
    assert table.frame.columns == [column.name for column in table.columns]
    assert all(column.description and column.unit for column in table.columns)
    assert "{" not in table.population
    assert table.section in dict(registry.SECTIONS)


def test_an_empty_cluster_says_what_is_missing(empty: Analysis) -> None:
    table = empty.table("gpu_util_by_servers")
    assert table is not None
    assert table.notes == ("no rows: this source has no telemetry",)


@pytest.mark.parametrize(
    "names", [{"sections": ["delay"]}, {"tables": ["queue_delay"]}, {"reference": "atc2019"}, {"tables": ["zzz"]}]
)
def test_unknown_names_are_refused_with_the_nearest(names: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        registry.check_names(**names)
    assert refused.value.hint
    assert ("did you mean" in refused.value.hint) == ("zzz" not in str(refused.value))
