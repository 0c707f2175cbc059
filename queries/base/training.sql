-- One row a job whose output tells of training: its curve in figures, and its GPU time before and after.
WITH told AS (
    SELECT job, count(*) AS lines, count(metric) AS metrics, count(DISTINCT ceil(epoch)) AS epochs, max(epochs) AS epochs_planned
    FROM progress JOIN base_jobs USING (job)
    WHERE cluster = $cluster
    GROUP BY job
),
held AS (
    -- gpus: on average from the start on, so that points in time add up to what was held
    SELECT job, attempt, start_ts, held_until_ts, gpu_s / nullif(held_until_c - held_from_c, 0) AS gpus, held_until_c - start_c AS held_s,
           sum(gpu_s::DECIMAL(28, 9)) OVER (PARTITION BY job)::DOUBLE AS gpu_s,
           sum(gpu_s::DECIMAL(28, 9)) OVER (PARTITION BY job ORDER BY attempt ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)::DOUBLE AS later_gpu_s
    FROM base_attempts SEMI JOIN told USING (job) WHERE start_c IS NOT NULL
),
lowest AS (
    SELECT job, any_value(unit) AS unit, any_value(metric) AS metric, bool_or(valid) AS valid, count(*) AS points,
           count(*) FILTER (NOT isfinite(value)) AS points_not_finite,
           arg_min(value, point) AS first_value, arg_max(value, point) AS last_value,
           min(value) FILTER (isfinite(value)) AS lowest_value
    FROM base_progress GROUP BY job
),
reached AS (
    SELECT job, min(point) FILTER (isfinite(value) AND value = lowest_value) AS lowest_point,
           min(point) FILTER (isfinite(value) AND value <= lowest_value + 0.001 * abs(lowest_value)) AS near_point
    FROM base_progress JOIN lowest USING (job) GROUP BY job
),
-- when each attempt's points were told: by their own stamps where all have one, within the time that the attempt ran; else by what bars show, where that adds up to about the run time
clock AS (
    SELECT b.job,
           bool_and(b.ts IS NOT NULL AND b.ts BETWEEN h.start_ts - INTERVAL 1 MINUTE AND h.held_until_ts + INTERVAL 1 MINUTE) AS stamped,
           bool_and(b.elapsed_s IS NOT NULL AND e.elapsed_s > 0 AND e.elapsed_s BETWEEN 0.5 * h.held_s AND 1.1 * h.held_s) AS elapsed
    FROM base_progress AS b
    JOIN (SELECT job, attempt, max(elapsed_s) AS elapsed_s FROM base_progress GROUP BY ALL) AS e USING (job, attempt)
    LEFT JOIN held AS h USING (job, attempt)
    GROUP BY b.job
),
near AS (
    SELECT r.job, CASE WHEN c.stamped THEN 'stamps' WHEN c.elapsed THEN 'elapsed' ELSE 'even' END AS placed,
           CASE WHEN c.stamped THEN greatest(h.held_s - greatest(epoch(b.ts) - epoch(h.start_ts), 0), 0) * h.gpus + coalesce(h.later_gpu_s, 0)
                WHEN c.elapsed THEN h.held_s * (1 - b.elapsed_s / e.elapsed_s) * h.gpus + coalesce(h.later_gpu_s, 0) END AS after_gpu_s
    FROM reached AS r
    JOIN base_progress AS b ON b.job = r.job AND b.point = r.near_point
    JOIN (SELECT job, attempt, max(elapsed_s) AS elapsed_s FROM base_progress GROUP BY ALL) AS e ON e.job = b.job AND e.attempt = b.attempt
    JOIN clock AS c ON c.job = r.job
    LEFT JOIN held AS h ON h.job = b.job AND h.attempt = b.attempt
)
SELECT t.job, j.queue, j.state, j.gpus, t.lines, t.metrics, t.epochs, t.epochs_planned, l.unit, l.metric, coalesce(l.valid, FALSE) AS valid,
       coalesce(l.points, 0) AS points, coalesce(l.points_not_finite, 0) AS points_not_finite,
       l.first_value, l.lowest_value, l.last_value, r.lowest_point, r.near_point,
       coalesce(l.points >= 3 AND r.lowest_point IS NOT NULL, FALSE) AS usable,
       n.placed, g.gpu_s, coalesce(n.after_gpu_s, CASE WHEN n.placed = 'even' THEN g.gpu_s * (1 - r.near_point / l.points) END) AS after_gpu_s
FROM told AS t JOIN base_jobs AS j USING (job)
LEFT JOIN lowest AS l USING (job) LEFT JOIN reached AS r USING (job) LEFT JOIN near AS n USING (job)
LEFT JOIN (SELECT job, any_value(gpu_s) AS gpu_s FROM held GROUP BY job) AS g USING (job)
ORDER BY t.job
