"""Uses a store's summary of its GPU telemetry, so that an analysis of all jobs need not read it again.

Reading ten million rows of telemetry takes longer than everything else on a first screen. The summary is used only if
sources, cluster and SQL are still the same.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import gpuctl
from gpuctl.analyze import shared_sql, telemetry_once
from gpuctl.store.sources import LAST_SAMPLES, SOURCE_ENDS

if TYPE_CHECKING:
    from gpuctl.store.database import Store

COLUMNS = "gpus, servers, state, colocated, tenth, samples, total"
_OF_STEPS = {"source_ends": SOURCE_ENDS, "last_samples": LAST_SAMPLES, "gpu_samples": telemetry_once.SQL}
"""The SQL of shared tables that have no file in ``queries/base``."""


def use(store: Store, cluster: str) -> bool:
    """Create ``base_util_histogram`` from the store's summary; return False if there is none that is up to date."""
    own = {"cluster": cluster}
    known = store.value("SELECT min(made_of) FROM util_histograms WHERE cluster = $cluster", own)
    if known is None or known != input_digest(store, cluster):
        return False
    store.execute(
        f"CREATE OR REPLACE TEMP TABLE base_util_histogram AS SELECT {COLUMNS} FROM util_histograms "  # noqa: S608 - names of ours
        "WHERE cluster = $cluster",
        own,
    )
    return True


def input_digest(store: Store, cluster: str) -> str:
    """Return a digest of the inputs of a summary: the cluster's sources and clock, and the SQL."""
    own = {"cluster": cluster}
    sources = "SELECT source, sha256, rows_loaded, parser_version FROM sources WHERE cluster = $cluster ORDER BY source"
    rows = [
        store.execute(sources, own).fetchall(),
        store.execute("SELECT timezone, clock FROM clusters WHERE cluster = $cluster", own).fetchall(),
        gpuctl.__version__,
        sorted(_texts("util_histogram").items()),
    ]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _texts(name: str) -> dict[str, str]:
    """Return the SQL of a shared table and of all its dependencies, by name."""
    found: dict[str, str] = {}
    left = [name]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = text = _OF_STEPS.get(name) or shared_sql.base_sql(name)
            left += {*shared_sql.uses(text, "base"), *shared_sql.uses(text, "unfiltered")}
    return found
