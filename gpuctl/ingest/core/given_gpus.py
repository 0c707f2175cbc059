"""GPUs of nodes as the user gives them (``--gpus-per-node``), for jobs whose GPUs no source states.

Such a job is taken to hold all GPUs of its nodes, as on clusters that give whole nodes. GPUs that a source states are
not changed. The user's values are stored, and withdrawn before another source is read: values stated by that source
take precedence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.small_csv import rows
from gpuctl.core.storable_text import plural
from gpuctl.slurm.hostlist import expand

if TYPE_CHECKING:
    from gpuctl.store.database import Store

OPTION = "--gpus-per-node"
QUIRK = "gpus_given"
"""Of attempts and of jobs: their GPUs are those of their nodes, as the user gave them."""
MOST = 1_024
"""GPUs of a node, at most."""


@dataclass(frozen=True)
class GpusPerNode:
    """GPUs of nodes, as the user gives them.

    Attributes:
        each: GPUs of every node that is not named; None: not known.
        named: GPUs of the nodes of a file.
    """

    each: int | None = None
    named: dict[str, int] = field(default_factory=dict)


def read_gpus_per_node(text: str) -> GpusPerNode:
    """Read the value of ``--gpus-per-node``: a number, or a CSV file with the columns ``node`` and ``gpus``.

    A cell of ``node`` is a name or a host list such as ``"n[01-16],login1"``. Where all nodes of the file have the
    same number of GPUs, jobs whose nodes are not known by name hold that number on each.

    Raises:
        UsageError: it is not a number from 1 to `MOST`, and no file.
        InputError: the file cannot be read, or a row is not as it should be.
    """
    if text.strip().isdecimal():
        each = int(text) if len(text.strip()) < 6 else MOST + 1
        if not 1 <= each <= MOST:
            raise UsageError(f"{OPTION} {text[:20]}: expected a number of GPUs from 1 to {MOST}")
        return GpusPerNode(each)
    path = Path(text)
    if not path.exists():
        hint = f"{OPTION} 4, or {OPTION} FILE with the columns node and gpus"
        raise UsageError(f"{OPTION} {text[:100]!r}: neither a number of GPUs nor a file", hint=hint)
    named: dict[str, int] = {}
    for line, (nodes, cell) in rows(path, ("node", "nodes", "machine"), "gpus"):
        if not (cell.isdecimal() and len(cell) < 6 and int(cell) <= MOST):
            message = f"gpus is {cell[:40]!r}, expected a whole number from 0 to {MOST}"
            raise InputError(message, path=str(path), line=line)
        try:
            names = expand(nodes)
        except ValueError as error:
            raise InputError(f"node is {nodes[:60]!r}: {error}", path=str(path), line=line) from None
        for name in names:
            if named.setdefault(name, int(cell)) != int(cell):
                message = f"node {name!r} has a second number of GPUs"
                raise InputError(message, path=str(path), line=line, hint="keep one of them")
    if not named:
        raise InputError("has a header and no rows", path=str(path), hint="a row for each node: n01,4")
    alike = set(named.values())
    return GpusPerNode(alike.pop() if len(alike) == 1 else None, named)


def has_user_gpus(store: Store, cluster: str) -> bool:
    """Whether the store has GPUs per node that the user gave for a cluster."""
    return bool(store.value("SELECT EXISTS (FROM given_gpus WHERE cluster = $cluster)", {"cluster": cluster}))


def withdraw(store: Store, cluster: str) -> None:
    """Undo the effects of the user's GPUs per node, so that the store has only values that its sources state."""
    for statement in _WITHDRAW:
        store.execute(statement, {"cluster": cluster})


def give(store: Store, cluster: str, given: GpusPerNode | None) -> list[str]:
    """Fill in the GPUs of attempts and jobs whose GPUs no source states, within the caller's transaction.

    Args:
        store: open for writing, after `withdraw`.
        cluster: its name in the store.
        given: by the user, now; None: what the store keeps.

    Returns:
        messages for the user.
    """
    own = {"cluster": cluster}
    if given is not None:
        store.execute("DELETE FROM given_gpus WHERE cluster = $cluster", own)
        pairs: list[tuple[str | None, int]] = [] if given.each is None else [(None, given.each)]
        pairs += list(given.named.items())
        names, gpus = [name for name, _ in pairs], [count for _, count in pairs]
        store.execute(_KEEP, {**own, "names": names, "gpus": gpus})
    for statement in _GIVE:
        store.execute(statement, own if "$cluster" in statement else None)
    if given is None:
        return []
    count = store.value(_COUNT, own)
    left = store.value("SELECT count(*) FROM jobs WHERE cluster = $cluster AND gpus IS NULL", own)
    if not count and not left:
        return [f"{OPTION} changed no job: the sources state the GPUs of all of them"]
    rest = f"; those of {plural(left, 'job')} stay unknown, as their nodes are" if left else ""
    return [f"{plural(count, 'job')} whose GPUs no source states: all GPUs of their nodes, as given ({OPTION}){rest}"]


_MARKED = f"list_contains(quirks, '{QUIRK}')"
_UNMARK = f"list_filter(quirks, lambda q: q <> '{QUIRK}')"
_TEXT_MARKED = f"list_contains(string_split(quirks, ','), '{QUIRK}')"
_TEXT_UNMARK = f"nullif(array_to_string(list_filter(string_split(quirks, ','), lambda q: q <> '{QUIRK}'), ','), '')"
_COUNT = f"SELECT count(*) FROM jobs WHERE cluster = $cluster AND {_MARKED}"  # noqa: S608
_TRACES = ("trace_jobs", "trace_jobs_short")
# all texts below are made of those above
_WITHDRAW = (
    f"""
    UPDATE placements SET gpus = 0, estimated = true
    FROM (SELECT job, attempt FROM attempt_rows WHERE cluster = $cluster AND {_MARKED}) AS a
    WHERE placements.cluster = $cluster AND placements.job = a.job AND placements.attempt = a.attempt
    """,  # noqa: S608
    *(
        f"UPDATE {table} SET gpus = NULL, quirks = {_UNMARK} WHERE cluster = $cluster AND {_MARKED}"  # noqa: S608
        for table in ("attempt_rows", "job_rows")
    ),
    *(
        f"UPDATE {table} SET gpus = NULL, quirks = {_TEXT_UNMARK} WHERE cluster = $cluster AND {_TEXT_MARKED}"  # noqa: S608
        for table in _TRACES
    ),
    """
    DELETE FROM machines
    WHERE cluster = $cluster AND machine IN (SELECT machine FROM given_gpus WHERE cluster = $cluster AND added)
    """,
    """
    UPDATE machines SET gpus_labelled = NULL
    WHERE cluster = $cluster AND machine IN (SELECT machine FROM given_gpus WHERE cluster = $cluster AND labelled)
    """,
    "UPDATE given_gpus SET added = false, labelled = false WHERE cluster = $cluster",
)
_KEEP = """
    INSERT INTO given_gpus BY NAME
    SELECT $cluster AS cluster, unnest($names::VARCHAR[]) AS machine, unnest($gpus::INTEGER[]) AS gpus, false AS added,
           false AS labelled
"""
_EACH = "(SELECT gpus FROM given_gpus WHERE cluster = $cluster AND machine IS NULL)"
_GIVE = (
    """
    UPDATE given_gpus SET added = m.machine IS NULL, labelled = m.machine IS NOT NULL
    FROM given_gpus AS g LEFT JOIN (SELECT machine, gpus FROM machines WHERE cluster = $cluster) AS m USING (machine)
    WHERE given_gpus.cluster = $cluster AND g.cluster = $cluster AND given_gpus.machine = g.machine AND m.gpus IS NULL
    """,
    """
    UPDATE machines SET gpus_labelled = g.gpus FROM given_gpus AS g
    WHERE machines.cluster = $cluster AND g.cluster = $cluster AND g.machine = machines.machine AND g.labelled
    """,
    """
    INSERT INTO machines BY NAME
    SELECT cluster, machine, gpus AS gpus_labelled FROM given_gpus WHERE cluster = $cluster AND added
    """,
    f"""
    CREATE OR REPLACE TEMP TABLE gpus_of_nodes AS
    WITH unknown AS (
        SELECT a.job, a.attempt, coalesce(nullif(a.servers, 0), nullif(j.nodes, 0)) AS nodes
        FROM attempt_rows AS a JOIN job_rows AS j USING (cluster, job) WHERE a.cluster = $cluster AND a.gpus IS NULL
    ),
    placed AS (
        SELECT p.job, p.attempt, count(*) AS nodes,
               CASE WHEN count(coalesce(m.gpus, {_EACH})) = count(*) THEN sum(coalesce(m.gpus, {_EACH})) END AS gpus
        FROM placements AS p SEMI JOIN unknown USING (job, attempt)
        LEFT JOIN machines AS m ON m.cluster = p.cluster AND m.machine = p.machine
        WHERE p.cluster = $cluster
        GROUP BY ALL
    )
    SELECT u.job, u.attempt, p.job IS NOT NULL AS placed,
           CASE WHEN p.job IS NULL THEN u.nodes * {_EACH} WHEN p.nodes >= coalesce(u.nodes, 0) THEN p.gpus END AS gpus
    FROM unknown AS u LEFT JOIN placed AS p USING (job, attempt)
    """,  # noqa: S608
    f"""
    UPDATE attempt_rows AS t SET gpus = g.gpus, quirks = list_append(t.quirks, '{QUIRK}') FROM gpus_of_nodes AS g
    WHERE t.cluster = $cluster AND t.job = g.job AND t.attempt = g.attempt AND g.gpus IS NOT NULL
    """,  # noqa: S608
    f"""
    UPDATE placements AS t SET gpus = coalesce(m.gpus, m.each), estimated = false
    FROM (
        SELECT p.job, p.attempt, p.machine, n.gpus, {_EACH} AS each
        FROM placements AS p JOIN gpus_of_nodes AS g USING (job, attempt)
        LEFT JOIN machines AS n ON n.cluster = p.cluster AND n.machine = p.machine
        WHERE p.cluster = $cluster AND g.placed AND g.gpus IS NOT NULL
    ) AS m
    WHERE t.cluster = $cluster AND t.job = m.job AND t.attempt = m.attempt AND t.machine = m.machine
    """,  # noqa: S608
    f"""
    UPDATE job_rows AS t SET gpus = g.gpus, quirks = list_append(t.quirks, '{QUIRK}') FROM gpus_of_nodes AS g
    WHERE t.cluster = $cluster AND t.job = g.job AND t.attempts - 1 = g.attempt AND t.gpus IS NULL
          AND g.gpus IS NOT NULL
    """,  # noqa: S608
    f"""
    UPDATE job_rows SET gpus = nodes * {_EACH}, quirks = list_append(quirks, '{QUIRK}')
    WHERE cluster = $cluster AND attempts = 0 AND gpus IS NULL AND nodes > 0 AND {_EACH} IS NOT NULL
    """,  # noqa: S608
    *(
        f"UPDATE {table} SET gpus = nodes * {_EACH}, quirks = concat_ws(',', quirks, '{QUIRK}') "  # noqa: S608
        f"WHERE cluster = $cluster AND gpus IS NULL AND nodes > 0 AND {_EACH} IS NOT NULL"
        for table in _TRACES
    ),
    "DROP TABLE gpus_of_nodes",
)
