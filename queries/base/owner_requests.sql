-- What each user, queue or account ($owner) used of what its jobs asked for, weighted by what they held: CPU-hours, GiB-hours, GPU-hours; never a mean of percentages.
-- A figure is of the jobs of which both sides are known.
SELECT CASE $owner WHEN 'user' THEN "user" WHEN 'queue' THEN queue ELSE account END AS name, count(*) AS jobs,
       sum((cpus * elapsed_s)::DECIMAL(28, 6)) FILTER (cpu_s IS NOT NULL)::DOUBLE / 3600 AS cpu_hours,
       100 * sum(cpu_s::DECIMAL(28, 6)) FILTER (cpus * elapsed_s > 0)::DOUBLE / nullif(sum((cpus * elapsed_s)::DECIMAL(28, 6)) FILTER (cpu_s IS NOT NULL)::DOUBLE, 0) AS cpu_eff_pct,
       sum((mem_given_mb * elapsed_s)::DECIMAL(28, 3)) FILTER (mem_used_mb IS NOT NULL)::DOUBLE / 1024 / 3600 AS mem_gb_hours,
       100 * sum((mem_used_mb * elapsed_s)::DECIMAL(28, 3)) FILTER (mem_given_mb > 0)::DOUBLE / nullif(sum((mem_given_mb * elapsed_s)::DECIMAL(28, 3)) FILTER (mem_used_mb IS NOT NULL)::DOUBLE, 0) AS mem_eff_pct,
       sum(time_limit_s) FILTER (elapsed_s IS NOT NULL)::DOUBLE / 3600 AS time_limit_hours,
       100 * sum(elapsed_s::DECIMAL(28, 6)) FILTER (time_limit_s > 0)::DOUBLE / nullif(sum(time_limit_s) FILTER (elapsed_s IS NOT NULL)::DOUBLE, 0) AS time_limit_pct,
       sum((gpus * elapsed_s)::DECIMAL(28, 6)) FILTER (gpus > 0)::DOUBLE / 3600 AS gpu_hours, count(gpu_util_mean) AS measured_jobs,
       sum((gpu_util_mean * gpus * elapsed_s)::DECIMAL(28, 6))::DOUBLE / nullif(sum((gpus * elapsed_s)::DECIMAL(28, 6)) FILTER (gpu_util_mean IS NOT NULL)::DOUBLE, 0) AS gpu_util_mean,
       sum(gpus_unused)::BIGINT AS gpus_unused, sum(idle_gpu_h::DECIMAL(28, 6))::DOUBLE AS idle_gpu_h
FROM base_request_use
GROUP BY ALL
