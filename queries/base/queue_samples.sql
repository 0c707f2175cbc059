-- What the scheduler said of waiting attempts at instants (squeue), before (not eligible) and while each asked for GPUs.
SELECT a.job, a.attempt, epoch(timezone(c.zone, s.ts)) AS at_c, s.reason, s.ts >= coalesce(a.eligible_ts, a.queued_ts) AS eligible
FROM queue_samples AS s
JOIN base_attempts AS a ON a.job = s.job
CROSS JOIN (SELECT CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS zone FROM clusters WHERE cluster = $cluster) AS c
WHERE s.cluster = $cluster AND coalesce(s.state, 'PENDING') = 'PENDING' AND a.wait_s IS NOT NULL AND a.gpus IS NOT NULL
  AND s.ts >= a.queued_ts AND s.ts < a.start_ts
ORDER BY a.job, a.attempt, s.ts
