-- Who held which GPUs of a node within one hour, cut where another attempt came or went: what telemetry is joined with.
-- Cut by the hour, the join is an equality on (machine, hour) and its memory does not grow with the telemetry. The hour is a
-- number, too: date_trunc of a time with a zone asks a calendar, which for 10 million rows took four fifths of the join.
WITH bounds AS (
    SELECT min(ts) AS first_ts, max(ts) + INTERVAL 1 MINUTE AS last_ts FROM gpu_samples WHERE cluster = $cluster
),
held AS (
    SELECT p.job, p.attempt, machine, gpu_indices,
           greatest(CASE WHEN $whole_minutes THEN date_trunc('minute', p.start_ts) ELSE p.start_ts END, first_ts) AS from_ts,
           least(held_until_ts, last_ts) AS to_ts
    FROM unfiltered_placements AS p CROSS JOIN bounds
    WHERE gpu_indices IS NOT NULL AND held_until_ts > first_ts AND p.start_ts < last_ts AND held_until_ts > p.start_ts
),
edges AS (
    SELECT machine, from_ts AS ts, 1 AS change FROM held
    UNION ALL
    SELECT machine, to_ts, -1 FROM held
),
spans AS (
    SELECT machine, ts AS from_ts, lead(ts) OVER by_time AS to_ts, sum(sum(change)) OVER by_time AS attempts_here
    FROM edges
    GROUP BY machine, ts
    WINDOW by_time AS (PARTITION BY machine ORDER BY ts)
),
span_hours AS (
    SELECT machine, from_ts, to_ts, attempts_here,
           unnest(generate_series(date_trunc('hour', from_ts), date_trunc('hour', to_ts), INTERVAL 1 HOUR)) AS hour
    FROM spans
    WHERE attempts_here > 0 AND to_ts > from_ts
),
held_hours AS (
    SELECT *, unnest(generate_series(date_trunc('hour', from_ts), date_trunc('hour', to_ts), INTERVAL 1 HOUR)) AS hour
    FROM held SEMI JOIN base_attempts USING (job, attempt)
)
SELECT h.job, h.attempt, a.gpus::INTEGER AS gpus, a.servers, a.job_state AS state, s.attempts_here > 1 AS colocated,
       h.machine, h.hour, floor(epoch(h.hour) / 3600) AS hour_no, list_transform(h.gpu_indices, lambda i: i + 1) AS lanes,
       greatest(h.from_ts, s.from_ts, h.hour) AS from_ts,
       least(h.to_ts, s.to_ts, h.hour + INTERVAL 1 HOUR) AS to_ts
FROM held_hours AS h
JOIN span_hours AS s ON s.machine = h.machine AND s.hour = h.hour AND s.from_ts < h.to_ts AND s.to_ts > h.from_ts
JOIN base_attempts AS a ON a.job = h.job AND a.attempt = h.attempt
WHERE greatest(h.from_ts, s.from_ts, h.hour) < least(h.to_ts, s.to_ts, h.hour + INTERVAL 1 HOUR)
