"""Makes ``base_filtered_jobs``: the jobs of one cluster that match a filter; ``matching_jobs`` leaves times aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from gpuctl.analyze import shared_sql
from gpuctl.core.errors import UsageError
from gpuctl.core.job_filter import NAMES, instant

if TYPE_CHECKING:
    from gpuctl.core.job_filter import JobFilter
    from gpuctl.store.database import Store


def choose(store: Store, cluster: str, wanted: JobFilter) -> tuple[tuple[int, int], dict[str, Any]]:
    """Create the temporary tables ``base_filtered_jobs`` and ``matching_jobs``.

    Dates without a zone are on the log's own clock (UTC if its times name a zone).

    Returns:
        The numbers of jobs in it and in the cluster; the times ``since`` and ``until``, None if not set.

    Raises:
        UsageError: a name matches no job, a time is invalid, or no job matches.
    """
    known = {kind: _known(store, cluster, kind) if wanted.names[kind] else [] for kind in NAMES}
    wanted.check(known)
    sql = "SELECT timezone, clock FROM clusters WHERE cluster = $cluster"
    zone, clock = store.frame(sql, {"cluster": cluster}).row(0)
    zone = ZoneInfo(zone if clock == "wall" else "UTC")
    values: dict[str, Any] = {"cluster": cluster}
    for kind in (*NAMES, "state"):
        values[f"{kind}s"] = list(getattr(wanted, kind)) or None
    values["least"], values["most"] = wanted.gpus or (None, None)
    for name in ("since", "until"):
        text = getattr(wanted, name)
        moment = None if text is None else instant(text, f"--{name}")
        values[name] = moment if moment is None or moment.tzinfo else moment.replace(tzinfo=zone)
    if values["since"] and values["until"] and values["since"] >= values["until"]:
        raise UsageError(f"--until {wanted.until} is not after --since {wanted.since}")
    made = shared_sql.base_sql("filtered_jobs")
    store.execute(f"CREATE OR REPLACE TEMP TABLE base_filtered_jobs AS {made}", values)
    store.execute(f"CREATE OR REPLACE TEMP TABLE matching_jobs AS {made}", values | {"since": None, "until": None})
    matching = int(store.value("SELECT count(*) FROM base_filtered_jobs"))
    of = int(store.value("SELECT count(*) FROM jobs WHERE cluster = $cluster", {"cluster": cluster}))
    if not matching:
        wanted.refuse_empty(of)
    return (matching, of), {name: values[name] for name in ("since", "until")}


def _known(store: Store, cluster: str, kind: str) -> list[str]:
    sql = shared_sql.scalars("filter_names", {kind})
    names: list[str] = store.value(sql, {"cluster": cluster}) or []
    return names
