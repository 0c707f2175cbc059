"""Caveats on figures, ranked by the share of the figures that they can change.

A share of the cluster's GPUs above 100 % is never a result: it is left out, and a caveat names the contradiction.
`queries/data_quality.sql` has the same findings as rows.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuctl.analyze import shared_sql
from gpuctl.analyze.cluster import cluster_note, source_format
from gpuctl.core.notes import NamedValue, literal, note, together
from gpuctl.store.sources import JOBS_CSV

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuctl.analyze.shared_tables import SharedTables
    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store


SHARED_NAMES = ("most_held", "gpus_not_stated")
"""Files of ``queries/base`` that `contradictions` reads."""


def contradictions(store: Store, shared: SharedTables) -> list[tuple[float, Note]]:
    """Return sentences on GPUs held beyond those of the nodes, and on GPUs that accounting does not track.

    Each comes with the share of the GPUs, nodes or attempts that it concerns.
    """
    shared.ensure(SHARED_NAMES)
    rows = store.frame("SELECT *, strftime(ts, '%Y-%m-%d %H:%M:%S') AS at FROM base_most_held").to_dicts()
    found: list[tuple[float, Note]] = []
    whole = next((row for row in rows if row["machine"] is None), None)
    if whole is not None and whole["gpus"] is not None and whole["held"] > whole["gpus"] + 1e-6:
        excess = 1 - whole["gpus"] / whole["held"]
        text = note(
            "{held:,} GPU{held| was|s were} held at once, but the known nodes have {gpus:,} (at {at} UTC): nodes "
            "are missing from the list, or sizes or times in the log are wrong. Shares of the cluster's GPUs above "
            "100 % are left out",
            **_numbers(whole),
        )
        found.append((excess, text))
    machines = sorted(
        (row for row in rows if row["machine"]), key=lambda row: (row["gpus"] - row["held"], row["machine"])
    )
    if machines:
        text = note(
            "on {machines:,} node{machines||s} jobs held more GPUs at once than {machines|it has|they have}; "
            "most on {machine}: {held:,} of {gpus:,} (at {at} UTC)",
            machines=len(machines),
            machine=NamedValue("machine", machines[0]["machine"]),
            **_numbers(machines[0]),
        )
        every = store.value("SELECT count(*) FROM base_machines")
        found.append((len(machines) / every, text))
    [gpus] = store.frame("FROM base_gpus_not_stated").to_dicts()
    if gpus["unknown"]:
        text = note(
            "accounting does not track GPUs here: no record has gres/gpu, although the cluster has GPUs. The GPUs "
            "of {unknown:,} attempt{unknown||s} are unknown, not 0."
            " Set AccountingStorageTRES=gres/gpu; for the past, "
            "load scontrol show job -d or squeue --json",
            unknown=gpus["unknown"],
        )
        every = store.value("SELECT count(*) FROM base_attempts")
        found.append((gpus["unknown"] / every, text))
    return found


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    """Return held and existing GPUs, in whole GPUs, and the time."""
    return {"held": ceil(row["held"] - 1e-6), "gpus": round(row["gpus"]), "at": literal(row["at"])}


class Caveat(NamedTuple):
    """A sentence for readers of the figures.

    Attributes:
        share: the share of the jobs, attempts, nodes or waiting time behind the figures that it concerns, 0 to 1.
        text: the sentence.
    """

    share: float
    text: Note


def ranked(caveats: Iterable[Caveat]) -> tuple[Note, ...]:
    """Return the sentences, by the share that they can change."""
    return tuple(one.text for one in sorted(caveats, key=lambda one: -one.share))


def of_causes(store: Store, shared: SharedTables) -> list[Caveat]:
    """Return caveats on the causes of waits: the waiting time whose cause is open or unexplained."""
    if shared.site is None:
        return []
    share = store.value(
        "SELECT max(greatest(high_s - low_s, CASE WHEN cause = 'scheduler' THEN high_s END)) "
        "/ nullif(sum(low_s + high_s) / 2, 0) FROM base_cause_ranges"
    )
    return [Caveat(min(1.0, share or 0.0), text) for text in shared.site.warnings]


def of_series(store: Store, shared: SharedTables) -> list[Caveat]:
    """Return caveats on series over time, if any was requested."""
    if not shared.has("log_span"):
        return []
    years = store.value("SELECT years FROM base_log_span WHERE first_ts IS NULL")
    if years is None:
        return []
    text = note(
        "the log spans {years:,.0f} years, so tables over time are left out: a time in it is probably wrong. If "
        "the log is longer than 60 years, use --by day",
        years=years,
    )
    return [Caveat(1.0, text)]


def statements() -> list[str]:
    """Return the SQL that `find` runs, whatever tables are requested."""
    return [_COUNTS, _SIZELESS, *(shared_sql.base_sql(name) for name in _READ)]


def find(store: Store, shared: SharedTables, cluster: str) -> list[Caveat]:
    """Return caveats on the jobs, attempts and nodes of a cluster."""
    shared.ensure(("jobs", "attempts", "machines", "queue_machines"))
    [counts] = store.frame(_COUNTS).to_dicts()
    jobs, attempts = max(1, counts["jobs"]), max(1, counts["attempts"])
    [twice], [changed] = shared.rows("duplicate_tasks"), shared.rows("clock_change")
    found = [
        (1.0, _no_job(store, cluster) if not counts["jobs"] else None),
        (1.0, _OF_CSV if source_format(store, cluster) == JOBS_CSV else None),
        *((row["rows_rejected"] / row["rows_in"], _rejected(row)) for row in shared.rows("rejected")),
        _unknown_sizes(store),
        *contradictions(store, shared),
        (counts["given"] / jobs, _given(counts["given"])),
        (counts["inferred"] / max(1, counts["machines"]), _inferred_machines(counts["inferred"])),
        (counts["partitions"] / max(1, counts["queues"]), _inferred_partitions(counts["partitions"])),
        (twice["tasks"] / jobs, _counted_twice(twice["tasks"])),
        (changed["attempts"] / attempts, _clock_changed(changed["attempts"])),
    ]
    return [Caveat(min(1.0, share), text) for share, text in found if text is not None]


_COUNTS = """
    SELECT (SELECT count(*) FROM base_jobs) AS jobs, (SELECT count(*) FROM base_attempts) AS attempts,
           (SELECT count(*) FROM base_jobs WHERE list_contains(quirks, 'gpus_given')) AS given,
           (SELECT count(*) FROM base_machines) AS machines,
           (SELECT count(*) FROM base_machines WHERE gpus_inferred) AS inferred,
           (SELECT count(DISTINCT queue) FROM base_jobs) AS queues,
           (SELECT count(DISTINCT queue) FROM base_queue_machines WHERE inferred) AS partitions
"""
_SIZELESS = (
    "SELECT count(*) AS ran, count(*) FILTER (gpus IS NULL) AS attempts, "
    "sum((held_until_c - held_from_c)::DECIMAL(28, 6)) FILTER (gpus IS NULL)::DOUBLE / 3600 AS hours "
    "FROM base_attempts WHERE start_ts IS NOT NULL"
)
_READ = ("rejected", "duplicate_tasks", "clock_change", "machines", "queue_machines", *SHARED_NAMES)
_OF_CSV = note(
    "a CSV of jobs does not record when and where jobs ran or how they ended: there are no waits, causes, failures "
    "or utilization; GPU-hours follow from the given run times; seconds count from 1970"
)


def _no_job(store: Store, cluster: str) -> Note:
    formats = store.frame(
        "SELECT DISTINCT format FROM sources WHERE cluster = $cluster ORDER BY format", {"cluster": cluster}
    )["format"].to_list()
    return note(
        "the store has no jobs of cluster {cluster}, only data from {formats}",
        cluster=cluster_note(store, cluster),
        formats=together(", ", [literal(name) for name in formats]) if formats else note("no file"),
    )


def _rejected(row: dict[str, object]) -> Note:
    return note(
        "{rejected:,} of {rows:,} row{rows||s} of {path} {rejected|was|were} rejected; most often ({often:,}): "
        "{reason}",
        rejected=row["rows_rejected"],  # type: ignore[arg-type] # columns of queries/base/rejected.sql
        rows=row["rows_in"],  # type: ignore[arg-type]
        path=NamedValue("path", str(row["path"])),
        often=row["rows"],  # type: ignore[arg-type]
        reason=NamedValue("text", str(row["reason"])),
    )


def _unknown_sizes(store: Store) -> tuple[float, Note | None]:
    [row] = store.frame(_SIZELESS).to_dicts()
    if not row["attempts"]:
        return 0.0, None
    text = note(
        "no source states how many GPUs {attempts:,} of {ran:,} attempt{ran||s} held, {hours:,.2f} "
        "hours in all: GPU-hours and occupancy exclude them and are lower bounds; node-hours replace GPU-hours "
        "there. docs/how-to/why-empty.md lists what to load",
        **row,
    )
    return row["attempts"] / row["ran"], text


def _given(jobs: int) -> Note | None:
    if not jobs:
        return None
    return note(
        "the GPUs of {jobs:,} job{jobs||s} come from the option --gpus-per-node, not from a source: all GPUs of "
        "{jobs|its|their} nodes",
        jobs=jobs,
    )


def _inferred_machines(inferred: int) -> Note | None:
    if not inferred:
        return None
    return note(
        "the GPUs of {inferred:,} node{inferred||s} are inferred: no source states them, so each node counts the "
        "most GPUs that its jobs held at once, a lower bound. Waits for capacity may be overstated; "
        "docs/how-to/sources.md lists what to load",
        inferred=inferred,
    )


def _inferred_partitions(partitions: int) -> Note | None:
    if not partitions:
        return None
    return note(
        "the nodes of {partitions:,} partition{partitions||s} are inferred from where their jobs ran. Load "
        "slurm.conf or scontrol show partition",
        partitions=partitions,
    )


def _counted_twice(tasks: int) -> Note | None:
    if not tasks:
        return None
    return note(
        "{tasks:,} array task{tasks||s} {tasks|is|are} counted twice: one source uses JobID (12_3), another "
        "JobIDRaw (15). Leave one of the two out",
        tasks=tasks,
    )


def _clock_changed(attempts: int) -> Note | None:
    if not attempts:
        return None
    return note(
        "{attempts:,} attempt{attempts||s} {attempts|spans|span} a daylight-saving change. The log's times have no "
        "zone, so waits and run times are differences of wall-clock times, as in the published analyses: off by an "
        "hour if the clock was changed",
        attempts=attempts,
    )
