-- GPU-hours of each job, those at night (22:00 to 06:00 in the zone of the log), and of these by telemetry those of hours in which all of its GPUs were at exactly 0 %.
WITH zone AS (SELECT timezone AS name FROM clusters WHERE cluster = $cluster),
held AS (
    SELECT job, gpu_s, gpus, epoch(timezone(zone.name, held_from_ts)) + 7200 AS a, epoch(timezone(zone.name, held_until_ts)) + 7200 AS b
    FROM base_attempts CROSS JOIN zone
    WHERE gpus > 0 AND start_ts IS NOT NULL AND held_until_ts > held_from_ts
),
-- seconds of night up to a time, by a clock two hours ahead, on which a night is the first 8 hours of a day
nights AS (
    SELECT job, sum(gpu_s::DECIMAL(28, 6))::DOUBLE / 3600 AS gpu_hours,
           sum((gpus * greatest(28800 * (floor(b / 86400) - floor(a / 86400)) + least(b % 86400, 28800) - least(a % 86400, 28800), 0))::DECIMAL(28, 6))::DOUBLE / 3600 AS night_gpu_hours
    FROM held
    GROUP BY job
),
idle AS (
    SELECT u.job, sum(u.sampled_s::DECIMAL(28, 3))::DOUBLE / 3600 AS idle_hours
    FROM base_hour_use AS u CROSS JOIN zone
    WHERE u.total = 0 AND (hour(timezone(zone.name, u.hour)) >= 22 OR hour(timezone(zone.name, u.hour)) < 6)
    GROUP BY u.job
)
SELECT n.*, CASE WHEN g.job IS NOT NULL THEN coalesce(i.idle_hours, 0) END AS night_idle_gpu_hours
FROM nights AS n LEFT JOIN (SELECT job FROM base_gpu_use WHERE gpu_util_mean IS NOT NULL) AS g USING (job) LEFT JOIN idle AS i USING (job)
