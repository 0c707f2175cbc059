"""Keeps in a store what its GPU telemetry comes to, so that an analysis of all jobs need not read all of it again.

Ten million rows of telemetry take longer to read than everything else of a first screen. `renew` is called when an
ingest has loaded something; `use` takes what it kept only if sources, cluster and SQL are still the same.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import gpuctl
from gpuctl.analyze import query, telemetry_once
from gpuctl.store.sources import LAST_SAMPLES, SOURCE_ENDS

if TYPE_CHECKING:
    from gpuctl.store.database import Store

LEAST_ROWS = 1_000_000
"""Of fewer rows of telemetry nothing is kept: they are read in less than a tenth of a second."""
_COLUMNS = "gpus, servers, state, colocated, tenth, samples, total"
_OF_STEPS = {"source_ends": SOURCE_ENDS, "last_samples": LAST_SAMPLES, "gpu_samples": telemetry_once.SQL}
"""The SQL of shared tables that have no file in ``queries/base``."""


def renew(store: Store, cluster: str) -> None:
    """Keep the summary of a cluster's telemetry in a store that is open for writing, in place of an older one.

    Args:
        store: the store.
        cluster: its name there; one with fewer than `LEAST_ROWS` rows of telemetry has no summary.

    Raises:
        KeyboardInterrupt, StoreError: as for `Store.execute`; the store is as it was before.
    """
    from gpuctl.analyze.bases import Bases
    from gpuctl.analyze.run import Options

    own = {"cluster": cluster}
    enough = store.value("SELECT count(*) FROM gpu_samples WHERE cluster = $cluster", own) >= LEAST_ROWS
    if enough:
        Bases(store, cluster, Options(), lambda _: None).need(["util_histogram"])
    store.execute("BEGIN")
    try:
        store.execute("DELETE FROM util_histograms WHERE cluster = $cluster", own)
        if enough:
            store.execute(
                f"INSERT INTO util_histograms SELECT $cluster, $made_of, {_COLUMNS} FROM base_util_histogram",  # noqa: S608 - names of ours
                own | {"made_of": _made_of(store, cluster)},
            )
    except BaseException:
        store.execute("ROLLBACK")
        raise
    store.execute("COMMIT")


def use(store: Store, cluster: str) -> bool:
    """Create ``base_util_histogram`` from what the store keeps; False where it keeps none that is up to date."""
    own = {"cluster": cluster}
    known = store.value("SELECT min(made_of) FROM util_histograms WHERE cluster = $cluster", own)
    if known is None or known != _made_of(store, cluster):
        return False
    store.execute(
        f"CREATE OR REPLACE TEMP TABLE base_util_histogram AS SELECT {_COLUMNS} FROM util_histograms "  # noqa: S608 - names of ours
        "WHERE cluster = $cluster",
        own,
    )
    return True


def _made_of(store: Store, cluster: str) -> str:
    """A digest of all that a summary follows from: the cluster's sources and clock, and how it is computed."""
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
    """The SQL of a shared table and of all that it is made of, by their names."""
    found: dict[str, str] = {}
    left = [name]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = text = _OF_STEPS.get(name) or query.base_sql(name)
            left += {*query.uses(text, "base"), *query.uses(text, "unfiltered")}
    return found
