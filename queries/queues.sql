-- title: Queues
-- section: overview
-- order: 30
-- question: What does each queue ask for, hold and wait?
-- population: {jobs} jobs, {attempts} attempts. GPU-hours are those of status, empty for a queue of which none is known; the overview's are those that were held.
-- column: queue | - | queue or virtual cluster
-- column: jobs | jobs | jobs submitted to it
-- column: users | users | distinct users; empty where the source names none
-- column: gpu_hours | GPU-h | GPU time of its jobs under the chosen duration (--duration)
-- column: gpu_hours_pct | % | share of all queues' GPU-hours
-- column: quota_gpus | GPUs | its quota
-- column: limit_gpus | GPUs | the most that it may hold: its quota, or the maximum of a YARN queue; empty where it may have all, or no limit is known
-- column: quota_source | - | given (--quotas), configured (in the logs) or inferred: what explains starts and waits best; empty where nothing bounds it
-- column: wait_p50_min | min | median wait of its attempts
-- column: wait_p95_min | min | 95th percentile of the wait of its attempts
SELECT j.queue, count(*) AS jobs, nullif(count(DISTINCT j."user"), 0) AS users,
       CASE WHEN sum(count(j.gpus * j.run_s)) OVER () > 0 AND (count(j.gpus * j.run_s) > 0 OR NOT bool_or(j.may_have_run)) THEN coalesce(sum(j.gpus * j.run_s), 0) END / 3600 AS gpu_hours,
       100 * CASE WHEN count(j.gpus * j.run_s) > 0 OR NOT bool_or(j.may_have_run) THEN coalesce(sum(j.gpus * j.run_s), 0) END / nullif(sum(sum(j.gpus * j.run_s)) OVER (), 0) AS gpu_hours_pct,
       any_value(q.quota_gpus) AS quota_gpus, nullif(any_value(q.limit_gpus), 'infinity') AS limit_gpus, any_value(q.quota_source) AS quota_source,
       any_value(w.p50) AS wait_p50_min, any_value(w.p95) AS wait_p95_min
FROM base_jobs AS j
LEFT JOIN base_quotas AS q USING (queue)
LEFT JOIN (SELECT queue, quantile_cont(minutes, 0.5) AS p50, quantile_cont(minutes, 0.95) AS p95 FROM base_waits GROUP BY queue) AS w
  USING (queue)
GROUP BY j.queue
ORDER BY gpu_hours DESC NULLS LAST, j.queue
