-- The view held of gpuctl query: base_held attempt by attempt, with the times.
SELECT $cluster AS cluster, job, attempt, gpus, CASE WHEN start_ts IS NOT NULL THEN held_from_ts END AS held_from_ts,
       CASE WHEN start_ts IS NOT NULL THEN held_until_ts END AS held_until_ts, gpu_s / 3600 AS gpu_hours,
       CASE WHEN NOT by_container THEN gpus * CASE WHEN start_ts IS NOT NULL THEN held_until_c - start_c ELSE run_s END / 3600 END AS gpu_hours_from_start,
       node_s / 3600 AS node_hours
FROM base_attempts
WHERE ran
UNION ALL
SELECT $cluster, job, NULL, gpus, NULL, NULL, gpus * run_s / 3600, gpus * run_s / 3600, CASE WHEN gpus IS NULL THEN nullif(nodes, 0) * run_s END / 3600
FROM base_jobs
WHERE attempts = 0 AND run_s IS NOT NULL
ORDER BY job, attempt
