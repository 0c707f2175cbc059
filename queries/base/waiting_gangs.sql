-- Gangs while they waited for nothing but GPUs: from when they could start until they held their GPUs, gave up, or the log ended. Seconds since 1970.
SELECT a.job, a.queue, CASE WHEN a.gpu_type_request IS DISTINCT FROM 'any' THEN a.gpu_type END AS gpu_type, a.gpus,
       epoch(least(greatest(coalesce(a.eligible_ts, a.queued_ts), a.queued_ts), a.held_from_ts)) AS from_s, epoch(a.held_from_ts) AS to_s
FROM base_attempts AS a
WHERE a.wait_s IS NOT NULL AND a.gpus > 0 AND to_s > from_s
UNION ALL
SELECT n.job, n.queue, CASE WHEN j.gpu_type_request IS DISTINCT FROM 'any' THEN j.gpu_type END, n.gpus, epoch(greatest(n.queued_ts, a.eligible_ts)) AS from_s, epoch(n.until_ts) AS to_s
FROM base_never_started AS n JOIN base_jobs AS j USING (job) LEFT JOIN base_attempts AS a ON a.job = n.job AND a.attempt = n.attempt
WHERE n.gpus > 0 AND to_s > from_s
ORDER BY ALL
