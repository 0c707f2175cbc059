-- Containers that YARN preempted: those of job $job, and those of others while it waited for its GPUs.
WITH waited AS (
    SELECT queued_ts AS from_ts, coalesce(start_ts, held_until_ts) AS to_ts FROM base_attempts WHERE job = $job AND queued_ts IS NOT NULL
)
SELECT c.job = $job AS own, c.job, count(*) AS containers, sum(c.gpus) AS gpus, min(c.end_ts) AS first_ts, max(c.end_ts) AS last_ts
FROM containers AS c
WHERE c.cluster = $cluster AND c.state = 'preempted' AND c.job IN (SELECT job FROM yarn_built WHERE cluster = $cluster)
  AND (c.job = $job OR EXISTS (FROM waited WHERE c.end_ts BETWEEN from_ts AND to_ts))
GROUP BY ALL
ORDER BY own DESC, first_ts, c.job
