"""Renews a store's summary of GPU telemetry, after an ingest has loaded something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.analyze.gpu_usage import usage
from gpuctl.analyze.options import Options
from gpuctl.analyze.shared_tables import SharedTables
from gpuctl.analyze.telemetry_summary import COLUMNS, input_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.store.database import Store

DEFAULT = usage.Options()
LEAST_ROWS = 1_000_000
"""Of fewer rows of telemetry nothing is kept: they are read in less than a tenth of a second."""


def renew(
    store: Store, cluster: str, how: usage.Options = DEFAULT, tell: Callable[[str], None] = lambda _: None
) -> None:
    """Recompute the telemetry summary of a cluster in a store that is open for writing.

    Args:
        store: the store.
        cluster: its name there; one with fewer than `LEAST_ROWS` rows of telemetry has no summary.
        how: how to compute the figures of each job.
        tell: called with a line for the user about each clock that differs from the scheduler's, and leftover labels.

    Raises:
        KeyboardInterrupt, StoreError: as for `Store.execute`; the store is as it was before.
    """
    usage.renew(store, cluster, how)
    for text in notes(store, cluster):
        tell(text)
    own = {"cluster": cluster}
    enough = store.value("SELECT count(*) FROM gpu_samples WHERE cluster = $cluster", own) >= LEAST_ROWS
    if enough:
        SharedTables(store, cluster, Options(), lambda _: None).ensure(["util_histogram"])
    store.execute("BEGIN")
    try:
        store.execute("DELETE FROM util_histograms WHERE cluster = $cluster", own)
        if enough:
            store.execute(
                f"INSERT INTO util_histograms SELECT $cluster, $made_of, {COLUMNS} FROM base_util_histogram",  # noqa: S608 - names of ours
                own | {"made_of": input_digest(store, cluster)},
            )
    except BaseException:
        store.execute("ROLLBACK")
        raise
    store.execute("COMMIT")


def notes(store: Store, cluster: str) -> Iterator[str]:
    """Return sentences on clocks of nodes and labels of jobs behind the figures."""
    own = {"cluster": cluster}
    clocks = (
        "SELECT machine, offset_s, high_s, cost_uncorrected_s, cost_s FROM gpu_clocks "
        "WHERE cluster = $cluster AND corrected ORDER BY machine"
    )
    for machine, offset, high, before, after in store.execute(clocks, own).fetchall():
        yield (
            f"the clock of {machine} is {offset:+.0f} s from the scheduler's (up to {high:+.0f} s would fit): its "
            f"samples were moved; GPU-seconds of activity outside of jobs fell from {before:.0f} to {after:.0f}"
        )
    hours = (
        "SELECT machine, offset_s FROM gpu_clocks WHERE cluster = $cluster AND abs(offset_s) >= 3600 ORDER BY machine"
    )
    for machine, offset in store.execute(hours, own).fetchall():
        yield (
            f"samples of {machine} would fit its jobs {-offset / 3600:+.0f} h from where they are, and were not moved: "
            "set the node's time zone with --timezone"
        )
    resets = "SELECT value FROM gpu_usage_basis WHERE cluster = $cluster AND what = 'energy_resets' AND value > 0"
    for (count,) in store.execute(resets, own).fetchall():
        yield f"{count:.0f} counters of energy were reset while a job held the GPU (driver reload?)"
    stuck = "SELECT value FROM gpu_usage_basis WHERE cluster = $cluster AND what = 'stuck_hours' AND value > 0"
    for (count,) in store.execute(stuck, own).fetchall():
        yield f"in {count:.0f} GPU-hours, profiling counters of busy GPUs stood at 0: their SM activity is unknown"
    left = "SELECT value FROM gpu_usage_basis WHERE cluster = $cluster AND what = 'leftover_labels' AND value > 0"
    for (count,) in store.execute(left, own).fetchall():
        yield f"{count:.0f} samples have the label of a job that did not run then: they are of no job"
