-- What the jobs of each user, queue or account ($owner) held, lost, used and waited; see users.sql on the figures.
WITH owned AS (
    SELECT job, CASE $owner WHEN 'user' THEN "user" WHEN 'queue' THEN queue ELSE account END AS name, state FROM base_jobs
),
held AS (
    SELECT job, (gpus * (held_until_c - held_from_c) / 3600)::DECIMAL(28, 9) AS hours,
           CASE WHEN NOT is_last THEN 'retried' WHEN state = 'running' THEN 'other'
                WHEN job_state IN ('killed', 'timeout', 'preempted') THEN 'killed'
                WHEN job_state IN ('failed', 'out_of_memory', 'node_fail') THEN 'failed' ELSE 'other' END AS outcome
    FROM base_attempts
    WHERE start_ts IS NOT NULL
),
hours AS (
    SELECT job, sum(hours) AS held, coalesce(sum(hours) FILTER (outcome = 'failed'), 0) AS failed,
           coalesce(sum(hours) FILTER (outcome = 'killed'), 0) AS killed, coalesce(sum(hours) FILTER (outcome = 'retried'), 0) AS retried
    FROM held
    GROUP BY job
),
used AS (
    SELECT job, sum(samples) AS samples, sum(total) AS total, sum(total) / sum(samples) / 1e6 AS mean_pct FROM base_job_use GROUP BY job
),
waited AS (
    SELECT name, quantile_cont(minutes, 0.5) AS p50, quantile_cont(minutes, 0.95) AS p95 FROM base_waits JOIN owned USING (job) GROUP BY name
),
figures AS (
    SELECT o.name, count(*) AS jobs, count(*) FILTER (o.state IN ('failed', 'out_of_memory', 'node_fail')) AS failed_jobs,
           sum(h.held) AS held, sum(h.failed) AS failed, sum(h.killed) AS killed, sum(h.retried) AS retried,
           count(u.job) AS measured, sum(u.total) / sum(u.samples) / 1e6 AS mean_pct, quantile_cont(u.mean_pct, 0.1) AS p10_pct,
           count(*) FILTER (u.mean_pct < $idle_below) AS idle, sum(h.held) FILTER (u.mean_pct < $idle_below) AS idle_held
    FROM owned AS o LEFT JOIN hours AS h USING (job) LEFT JOIN used AS u USING (job)
    GROUP BY o.name
)
SELECT f.name, f.jobs, f.held::DOUBLE AS gpu_hours, (f.failed + f.killed + f.retried)::DOUBLE AS lost_gpu_hours,
       100 * (f.failed + f.killed + f.retried)::DOUBLE / nullif(sum(f.failed + f.killed + f.retried) OVER ()::DOUBLE, 0) AS lost_pct,
       100 * (f.failed + f.killed + f.retried)::DOUBLE / nullif(f.held::DOUBLE, 0) AS own_lost_pct,
       f.failed::DOUBLE AS failed_h, f.killed::DOUBLE AS killed_h, f.retried::DOUBLE AS retried_h, f.failed_jobs,
       w.p50 AS wait_p50_min, w.p95 AS wait_p95_min,
       CASE WHEN f.measured > 0 THEN f.measured END AS measured_jobs, f.mean_pct AS util_mean_pct, f.p10_pct AS util_p10_pct,
       CASE WHEN f.measured > 0 THEN f.idle END AS idle_jobs, CASE WHEN f.measured > 0 THEN coalesce(f.idle_held, 0)::DOUBLE END AS idle_gpu_hours
FROM figures AS f LEFT JOIN waited AS w ON w.name IS NOT DISTINCT FROM f.name
