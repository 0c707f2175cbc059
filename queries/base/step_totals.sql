-- What the steps of each attempt used. A step belongs to the last attempt of its job that had started by its own start, without times to the only one.
-- Of the sources that list an attempt's steps, that with the most steps counts.
WITH started AS (
    SELECT job, attempt, start_ts, attempts FROM base_attempts JOIN (SELECT job, attempts FROM base_jobs) USING (job) WHERE start_ts IS NOT NULL
),
listed AS (
    SELECT a.attempt, s.* FROM (FROM step_usage WHERE cluster = $cluster) AS s JOIN started AS a ON a.job = s.job AND a.attempts = 1
    UNION ALL
    SELECT a.attempt, s.* FROM (FROM step_usage WHERE cluster = $cluster) AS s ASOF JOIN (FROM started WHERE attempts > 1) AS a ON a.job = s.job AND s.start_ts >= a.start_ts
)
SELECT job, attempt, sum(steps) AS steps, sum(cpu_s::DECIMAL(28, 6))::DOUBLE AS cpu_s, max(mem_total_mb) AS mem_total_mb, max(mem_task_mb) AS mem_task_mb,
       bool_or(batch) AS batch, bool_or(interactive) AS interactive
FROM listed
GROUP BY job, attempt, source
QUALIFY row_number() OVER (PARTITION BY job, attempt ORDER BY sum(steps) DESC, source DESC) = 1
