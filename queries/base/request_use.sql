-- What each job that started used of what it asked for: its last attempt that started (spec: seff and reportseff, without the faults of seff).
-- started_as: by the command line and the name; without it by the steps: only a batch job has .batch, and .interactive is from salloc.
-- Of what still runs, CPU time and memory are unknown until a step ends.
WITH last AS (
    SELECT job, attempt, state, start_ts, run_s, held_from_ts, held_until_ts FROM base_attempts
    WHERE start_ts IS NOT NULL
    QUALIFY attempt = max(attempt) OVER (PARTITION BY job)
),
used AS (
    SELECT l.*, a.started_as, a.mem_node_pct, a.billing,
           coalesce(a.elapsed_s, l.run_s - coalesce(a.suspended_s, 0)) AS elapsed_s,
           -- the record of a job is 0 without its steps (sacct -X)
           CASE WHEN l.state NOT IN ('running', 'suspended') THEN coalesce(nullif(a.cpu_s, 0), s.cpu_s) END AS cpu_s,
           CASE WHEN l.state IN ('running', 'suspended') THEN NULL
                WHEN a.mem_used_mb IS NOT NULL THEN 'jobstats' WHEN s.mem_total_mb IS NOT NULL THEN 'TRESUsageInTot' WHEN s.mem_task_mb IS NOT NULL THEN 'MaxRSS' END AS mem_source,
           a.mem_used_mb AS nodes_used_mb, a.mem_limit_mb, s.mem_total_mb, s.mem_task_mb, s.batch, s.interactive
    FROM last AS l JOIN (FROM attempts WHERE cluster = $cluster) AS a USING (job, attempt) LEFT JOIN base_step_totals AS s USING (job, attempt)
)
SELECT u.job, u.attempt, j."user", j.account, j.queue, j.state, j.gpus, u.start_ts, u.held_from_ts, u.held_until_ts, u.elapsed_s,
       j.cpus, u.cpu_s, 100 * u.cpu_s / nullif(j.cpus * u.elapsed_s, 0) AS cpu_eff_pct,
       u.mem_source, CASE u.mem_source WHEN 'jobstats' THEN u.nodes_used_mb WHEN 'TRESUsageInTot' THEN u.mem_total_mb WHEN 'MaxRSS' THEN u.mem_task_mb END AS mem_used_mb,
       CASE WHEN u.mem_source = 'jobstats' THEN u.mem_limit_mb ELSE j.mem_mb END AS mem_given_mb,
       100 * mem_used_mb / nullif(mem_given_mb, 0) AS mem_eff_pct, u.mem_node_pct,
       j.time_limit_s, 100 * u.elapsed_s / nullif(j.time_limit_s, 0) AS time_limit_pct,
       coalesce(u.started_as, CASE WHEN u.batch THEN 'batch' WHEN u.interactive THEN 'salloc' WHEN NOT u.batch THEN 'salloc or srun' END) AS started_as,
       g.gpu_util_mean, g.gpu_util_coverage, g.gpus_unused, g.idle_gpu_h
FROM used AS u JOIN base_jobs AS j USING (job) LEFT JOIN base_gpu_use AS g USING (job)
