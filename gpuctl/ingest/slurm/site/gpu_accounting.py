"""GPUs of attempts whose accounting record states none: 0, unknown, or as the controller states them.

Slurm counts GPUs in a job's TRES only if ``AccountingStorageTRES`` has ``gres/gpu``. Without it a record lists CPUs and
memory of a job that held GPUs, just as that of a job that held none. So a record without GPUs means

- the GPUs that the controller states (``scontrol show job -d``, its JSON), if one of these sources has the attempt;
- 0 in a cluster whose accounting tracks GPUs, and of attempts all of whose nodes are known to have none;
- an unknown number in a cluster that has GPUs and whose accounting does not track them.

Accounting tracks GPUs if a record of the cluster states some, or if the last ``AccountingStorageTRES`` of slurm.conf or
``scontrol show config`` has ``gres/gpu``. The cluster has GPUs if a node has some, the controller states some of a job,
or ``GresTypes`` has ``gpu``. The sources may be loaded in any order: what was decided is marked by quirks of attempts,
and decided anew with each source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

UNTRACKED = "gpus_not_tracked"
"""Quirk of an attempt: the cluster has GPUs, and its accounting record cannot state them."""
CONTROLLER = "gpus_from_controller"
"""Quirk of an attempt: its GPUs are those that the controller states."""

_OWN = "a.source NOT IN (SELECT source FROM sources WHERE cluster = $cluster AND format NOT LIKE 'slurm%')"
_FACTS = f"""
    SELECT 'tracked' AS fact
    WHERE EXISTS (FROM attempt_rows AS a WHERE a.cluster = $cluster AND a.gpus > 0 AND {_OWN}
                  AND NOT list_contains(a.quirks, '{CONTROLLER}'))
          OR coalesce((SELECT contains(arg_max(value, source), 'gres/gpu') FROM settings
                       WHERE cluster = $cluster AND name = 'accountingstoragetres'), false)
    UNION ALL
    SELECT 'equipped'
    WHERE EXISTS (FROM machines WHERE cluster = $cluster AND gpus_labelled > 0)
          OR EXISTS (FROM settings WHERE cluster = $cluster AND name = 'grestypes'
                     AND list_contains(string_split(value, ','), 'gpu'))
          OR EXISTS (FROM exact_placements WHERE cluster = $cluster AND gpus > 0)
    UNION ALL
    SELECT 'stated' WHERE EXISTS (FROM exact_placements WHERE cluster = $cluster)
    UNION ALL
    SELECT 'decided'
    WHERE EXISTS (FROM attempt_rows AS a WHERE a.cluster = $cluster
                  AND a.gpus IS NULL AND list_contains(a.quirks, '{UNTRACKED}'))
"""  # noqa: S608 (made of the texts above)
_DECIDE = f"""
    CREATE TEMP TABLE slurm_gpus AS
    WITH candidates AS (
        SELECT a.job, a.attempt, a.gpus, a.quirks, a.start_ts, a.queued_ts,
               -- the record lists resources, and no GPU among them; NULL: it lists nothing that could be counted
               CASE WHEN a.gpus = 0 OR list_contains(a.quirks, '{UNTRACKED}') THEN 0.0 END AS recorded
        FROM attempt_rows AS a
        WHERE a.cluster = $cluster AND {_OWN}
              AND (a.gpus = 0 OR a.gpus IS NULL OR list_contains(a.quirks, '{CONTROLLER}'))
    ),
    each AS (
        SELECT c.job, c.attempt, e.source, e.machine IS NULL AS total, e.gpus, e.machine
        FROM candidates AS c JOIN exact_placements AS e
            ON e.cluster = $cluster AND e.job = c.job AND (e.start_ts = c.start_ts OR e.submit_ts = c.queued_ts)
        -- by machine rather than as a total, and as the last source has it
        QUALIFY rank() OVER (PARTITION BY c.job, c.attempt ORDER BY e.machine IS NULL, e.source DESC) = 1
    ),
    stated AS (
        SELECT job, attempt, sum(gpus) AS gpus FROM each GROUP BY job, attempt
        HAVING count(*) = count(DISTINCT coalesce(machine, ''))
    ),
    without AS (
        SELECT p.job, p.attempt
        FROM placements AS p LEFT JOIN machines AS m ON m.cluster = p.cluster AND m.machine = p.machine
        WHERE p.cluster = $cluster
        GROUP BY p.job, p.attempt HAVING bool_and(coalesce(m.gpus_labelled = 0, false))
    ),
    decided AS (
        SELECT c.job, c.attempt, c.gpus AS before, c.quirks AS quirks_before,
               c.recorded = 0 AND ($untracked OR s.gpus > 0) AND w.job IS NULL AS untracked,
               s.gpus IS NOT NULL AND ($untracked OR s.gpus IS DISTINCT FROM c.recorded) AS by_controller,
               CASE WHEN s.gpus IS NOT NULL THEN s.gpus WHEN NOT coalesce(untracked, false) THEN c.recorded END AS gpus
        FROM candidates AS c LEFT JOIN stated AS s USING (job, attempt) LEFT JOIN without AS w USING (job, attempt)
    ),
    marked AS (
        SELECT * EXCLUDE (quirks_before, untracked, by_controller), quirks_before,
               list_filter(quirks_before, lambda q: q NOT IN ('{UNTRACKED}', '{CONTROLLER}'))
               || CASE WHEN untracked THEN ['{UNTRACKED}'] ELSE [] END
               || CASE WHEN by_controller THEN ['{CONTROLLER}'] ELSE [] END AS quirks
        FROM decided
    )
    SELECT job, attempt, gpus, quirks FROM marked
    WHERE gpus IS DISTINCT FROM before OR quirks IS DISTINCT FROM quirks_before
"""  # noqa: S608
_APPLY = (
    """
    UPDATE attempt_rows AS t SET gpus = d.gpus, quirks = d.quirks FROM slurm_gpus AS d
    WHERE t.cluster = $cluster AND t.job = d.job AND t.attempt = d.attempt
    """,
    """
    UPDATE job_rows AS t SET gpus = d.gpus FROM slurm_gpus AS d
    WHERE t.cluster = $cluster AND t.job = d.job AND t.attempts - 1 = d.attempt
    """,
    # an even share of the total until `reconcile` finds the GPUs of each node; of an unknown total 0, an estimate
    """
    UPDATE placements AS t SET gpus = d.each, estimated = d.estimated, gpu_indices = NULL
    FROM (
        SELECT d.job, d.attempt, coalesce(any_value(d.gpus) / count(*), 0) AS each,
               any_value(d.gpus) IS NULL OR (any_value(d.gpus) > 0 AND count(*) > 1) AS estimated
        FROM slurm_gpus AS d JOIN placements AS p ON p.cluster = $cluster AND p.job = d.job AND p.attempt = d.attempt
        GROUP BY d.job, d.attempt
    ) AS d
    WHERE t.cluster = $cluster AND t.job = d.job AND t.attempt = d.attempt
    """,
)


def settle_gpus(sink: Sink) -> None:
    """Decide how many GPUs the attempts of Slurm have whose records state none; the module states how."""
    own: dict[str, object] = {"cluster": sink.cluster}
    facts = {row[0] for row in sink.query(_FACTS, own).iter_rows()}
    untracked = "tracked" not in facts and "equipped" in facts
    if not (untracked or facts & {"stated", "decided"}):
        return
    sink.execute(_DECIDE, {**own, "untracked": untracked})
    for statement in _APPLY:
        sink.execute(statement, own if "$cluster" in statement else {})
    sink.execute("DROP TABLE slurm_gpus")
