-- GPUs held by the attempts of each user or queue ($owner) in each period ($by, UTC), and how well they used them by telemetry.
WITH owned AS (
    SELECT job, CASE $owner WHEN 'user' THEN "user" WHEN 'queue' THEN queue ELSE account END AS name FROM base_jobs
),
-- of times without a zone: with one, a calendar is asked for each period of each attempt
length AS (SELECT CAST('1 ' || $by AS INTERVAL) AS step),
pieces AS (
    SELECT job, gpus, from_us, until_us, unnest(generate_series(date_trunc($by, make_timestamp(from_us)), make_timestamp(until_us), step)) AS begin, epoch_us(begin) AS us, epoch_us(begin + step) AS next_us
    FROM (
        SELECT job, gpus, epoch_us(held_from_ts) AS from_us, epoch_us(held_until_ts) AS until_us
        FROM (
            SELECT job, gpus, held_from_ts, held_until_ts FROM base_attempts WHERE start_ts IS NOT NULL AND NOT by_container
            UNION ALL
            SELECT job, gpus, held_from_ts, held_until_ts FROM base_holdings
        )
    ) CROSS JOIN length CROSS JOIN base_log_span AS span
    WHERE gpus > 0 AND until_us > from_us AND span.first_ts IS NOT NULL
),
held AS (
    SELECT o.name, p.us, sum((gpus * ((least(until_us, next_us) - greatest(from_us, us)) / 1e6))::DECIMAL(28, 6))::DOUBLE / 3600 AS gpu_hours
    FROM pieces AS p JOIN owned AS o USING (job)
    WHERE until_us > us
    GROUP BY ALL
),
used AS (
    SELECT o.name, u.ts, sum(u.total) / sum(u.samples) / 1e6 AS mean_pct FROM base_job_use AS u JOIN owned AS o USING (job) GROUP BY ALL
)
SELECT h.name, h.ts, h.gpu_hours, u.mean_pct AS util_mean_pct
FROM (SELECT name, to_timestamp(us // 1000000) AS ts, gpu_hours FROM held) AS h LEFT JOIN used AS u ON u.name IS NOT DISTINCT FROM h.name AND u.ts = h.ts
