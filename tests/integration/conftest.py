"""What tests of the whole program share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.dask_cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Dask cluster for the tests of one file."""
    made = Cluster(tmp_path_factory.mktemp("dask"))
    yield made
    made.end()
