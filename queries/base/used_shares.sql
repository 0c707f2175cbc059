-- Of jobs that came to their end (completed, or stopped at their limit of time or memory): the share that they used of each resource, 1: all.
-- A job that was stopped at a limit used all of that resource, or would have used more.
WITH ended AS (FROM base_request_use WHERE state IN ('completed', 'timeout', 'out_of_memory'))
SELECT "user", job, 'time limit' AS resource, time_limit_s / 3600 AS asked, CASE WHEN state = 'timeout' THEN greatest(elapsed_s / time_limit_s, 1) ELSE elapsed_s / time_limit_s END AS share, time_limit_s / 3600 AS held
FROM ended WHERE time_limit_s > 0 AND elapsed_s IS NOT NULL
UNION ALL
SELECT "user", job, 'memory', mem_given_mb / 1024, CASE WHEN state = 'out_of_memory' THEN greatest(mem_eff_pct / 100, 1) ELSE mem_eff_pct / 100 END, mem_given_mb / 1024 * elapsed_s / 3600
FROM ended WHERE mem_given_mb > 0 AND mem_eff_pct IS NOT NULL
UNION ALL
SELECT "user", job, 'CPUs', cpus, cpu_eff_pct / 100, cpus * elapsed_s / 3600 FROM ended WHERE cpus > 0 AND cpu_eff_pct IS NOT NULL
UNION ALL
SELECT "user", job, 'GPUs', gpus, 1 - gpus_unused / gpus, gpus * elapsed_s / 3600 FROM ended WHERE gpus > 0 AND gpus_unused IS NOT NULL
