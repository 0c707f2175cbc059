-- Attempts that never started, and jobs without any attempt: how long each has waited, until it ended, its source does, or the queue was last seen with it.
-- An attempt whose start the log lacks (no_start) is none of them, nor is any where no attempt has one: then no source tells it.
-- Times without a zone are read on the log's clock.
WITH zone AS (
    SELECT CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS name FROM clusters WHERE cluster = $cluster
),
waited AS (
    SELECT job, attempt, queue, gpus, size_bucket, state, queued_ts, end_ts, source
    FROM base_attempts
    WHERE NOT ran AND state IN ('pending', 'killed', 'failed') AND NOT list_contains(quirks, 'no_start')
          AND (state = 'pending' OR EXISTS (FROM base_attempts WHERE start_ts IS NOT NULL))
    UNION ALL
    SELECT job, NULL, queue, gpus, size_bucket, state, submit_ts, end_ts, source FROM base_jobs
    WHERE attempts = 0 AND start_ts IS NULL AND coalesce(run_span_s, run_sum_s, run_last_s) IS NULL
          AND state IN ('pending', 'killed', 'failed')
)
SELECT job, attempt, queue, gpus, size_bucket, queued_ts, still_waits, until_ts, CASE WHEN so_far_s < 0 THEN 0 ELSE so_far_s END AS so_far_s
FROM (
    SELECT *, round(epoch(timezone(zone.name, until_ts)) - epoch(timezone(zone.name, queued_ts)), 6) AS so_far_s
    FROM (
        SELECT waited.* EXCLUDE (end_ts, source), state = 'pending' AS still_waits,
               CASE WHEN state = 'pending' THEN greatest(e.end_ts, s.seen_ts) ELSE waited.end_ts END AS until_ts
        FROM waited LEFT JOIN base_source_ends AS e USING (source) LEFT JOIN base_last_samples AS s USING (job)
    ) CROSS JOIN zone
)
