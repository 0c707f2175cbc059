-- Waits by queue and size, for every queue and every size too, with those that never ended in a start: these lasted at least so long.
-- km_*: Kaplan and Meier's estimate of the wait that so many do not exceed; NULL where the share is not reached: it is longer than what was seen.
WITH spells AS (
    SELECT queue, size_bucket, seconds AS s, true AS started FROM base_waits
    UNION ALL
    SELECT queue, size_bucket, so_far_s, false FROM base_never_started
),
grouped AS (
    SELECT every_queue, every_size, CASE WHEN NOT every_queue THEN queue END AS queue, CASE WHEN NOT every_size THEN size_bucket END AS size_bucket,
           s, count(*) FILTER (started) AS starts, count(*) AS spells
    FROM spells CROSS JOIN (VALUES (false, false), (false, true), (true, false), (true, true)) AS g(every_queue, every_size)
    GROUP BY ALL
),
at_risk AS (
    SELECT *, sum(spells) OVER (PARTITION BY every_queue, every_size, queue, size_bucket ORDER BY s DESC) AS waiting FROM grouped WHERE s IS NOT NULL
),
left_over AS (
    -- the logarithm of the share that still waits after s; nobody does where all who did start
    SELECT *, sum(CASE WHEN starts = waiting THEN -1000 ELSE ln(1 - starts / waiting) END::DECIMAL(28, 12))
                  OVER (PARTITION BY every_queue, every_size, queue, size_bucket ORDER BY s) AS log_left
    FROM at_risk
),
estimates AS (
    SELECT every_queue, every_size, queue, size_bucket,
           min(s) FILTER (log_left <= ln(0.50) + 1e-9) / 60 AS km_p50_min, min(s) FILTER (log_left <= ln(0.05) + 1e-9) / 60 AS km_p95_min
    FROM left_over GROUP BY ALL
),
counted AS (
    SELECT every_queue, every_size, queue, size_bucket, sum(spells - starts)::BIGINT AS not_started FROM grouped GROUP BY ALL
)
SELECT c.*, e.km_p50_min, e.km_p95_min
FROM counted AS c LEFT JOIN estimates AS e
  ON c.every_queue = e.every_queue AND c.every_size = e.every_size AND c.queue IS NOT DISTINCT FROM e.queue AND c.size_bucket IS NOT DISTINCT FROM e.size_bucket
