-- GPUs held by the attempts of each user or queue ($owner) in each hour or day ($by, UTC), and how well they used them by telemetry.
WITH owned AS (
    SELECT job, CASE $owner WHEN 'user' THEN "user" WHEN 'queue' THEN queue ELSE account END AS name FROM base_jobs
),
length AS (SELECT CASE $by WHEN 'day' THEN INTERVAL 1 DAY ELSE INTERVAL 1 HOUR END AS step),
pieces AS (
    SELECT job, gpus, held_from_ts, held_until_ts, step,
           unnest(generate_series(date_trunc($by, held_from_ts), held_until_ts, step)) AS ts
    FROM (
        SELECT job, gpus, held_from_ts, held_until_ts FROM base_attempts WHERE start_ts IS NOT NULL AND NOT by_container
        UNION ALL
        SELECT job, gpus, held_from_ts, held_until_ts FROM base_holdings
    ) CROSS JOIN length
    WHERE gpus > 0 AND held_until_ts > held_from_ts
),
held AS (
    SELECT o.name, p.ts, sum((gpus * epoch(least(held_until_ts, ts + step) - greatest(held_from_ts, ts)))::DECIMAL(28, 6))::DOUBLE / 3600 AS gpu_hours
    FROM pieces AS p JOIN owned AS o USING (job)
    WHERE held_until_ts > ts
    GROUP BY ALL
),
used AS (
    SELECT o.name, u.ts, sum(u.total) / sum(u.samples) / 1e6 AS mean_pct FROM base_job_use AS u JOIN owned AS o USING (job) GROUP BY ALL
)
SELECT h.name, h.ts, h.gpu_hours, u.mean_pct AS util_mean_pct
FROM held AS h LEFT JOIN used AS u ON u.name IS NOT DISTINCT FROM h.name AND u.ts = h.ts
