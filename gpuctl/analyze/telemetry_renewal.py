"""Renews what a store keeps of its GPU telemetry, after an ingest has loaded something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.analyze.gpu_usage import usage
from gpuctl.analyze.options import Options
from gpuctl.analyze.shared_tables import SharedTables
from gpuctl.analyze.telemetry_summary import COLUMNS, made_of

if TYPE_CHECKING:
    from gpuctl.store.database import Store

DEFAULT = usage.Options()
LEAST_ROWS = 1_000_000
"""Of fewer rows of telemetry nothing is kept: they are read in less than a tenth of a second."""


def renew(store: Store, cluster: str, how: usage.Options = DEFAULT) -> None:
    """Keep what a cluster's telemetry comes to in a store that is open for writing, in place of older figures.

    Args:
        store: the store.
        cluster: its name there; one with fewer than `LEAST_ROWS` rows of telemetry has no summary.
        how: figures of each job are made.

    Raises:
        KeyboardInterrupt, StoreError: as for `Store.execute`; the store is as it was before.
    """
    usage.renew(store, cluster, how)
    own = {"cluster": cluster}
    enough = store.value("SELECT count(*) FROM gpu_samples WHERE cluster = $cluster", own) >= LEAST_ROWS
    if enough:
        SharedTables(store, cluster, Options(), lambda _: None).need(["util_histogram"])
    store.execute("BEGIN")
    try:
        store.execute("DELETE FROM util_histograms WHERE cluster = $cluster", own)
        if enough:
            store.execute(
                f"INSERT INTO util_histograms SELECT $cluster, $made_of, {COLUMNS} FROM base_util_histogram",  # noqa: S608 - names of ours
                own | {"made_of": made_of(store, cluster)},
            )
    except BaseException:
        store.execute("ROLLBACK")
        raise
    store.execute("COMMIT")
