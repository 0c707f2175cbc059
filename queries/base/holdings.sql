-- What the attempts held that are by_container: one row a container of YARN with GPUs, from its allocation to its end. Of all other
-- attempts, base_attempts and base_placements tell: they held the same GPUs from held_from to held_until. machine: NULL where not known.
WITH zone AS (
    SELECT CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS name FROM clusters WHERE cluster = $cluster
),
held AS (
    SELECT a.job, a.attempt, a.number, a.queue, c.container, c.machine, c.gpus, c.allocated_ts AS from_ts,
           greatest(coalesce(c.end_ts, a.held_until_ts), c.allocated_ts) AS until_ts
    FROM containers AS c JOIN base_attempts AS a USING (job, attempt)
    WHERE c.cluster = $cluster AND a.by_container AND c.gpus > 0 AND c.allocated_ts IS NOT NULL AND c.source_state IS DISTINCT FROM 'RESERVED'
)
SELECT job, attempt, number, queue, machine, gpus, from_ts AS held_from_ts, until_ts AS held_until_ts,
       epoch(timezone(zone.name, from_ts)) AS held_from_c, epoch(timezone(zone.name, until_ts)) AS held_until_c
FROM held CROSS JOIN zone
ORDER BY number, from_ts, container
