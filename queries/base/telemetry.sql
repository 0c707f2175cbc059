-- How complete the GPU telemetry is: rows, minutes without any row, values that are NA.
SELECT count(*) AS rows, min(ts) AS first_ts, max(ts) AS last_ts,
       (date_diff('minute', min(ts), max(ts)) + 1 - count(DISTINCT date_trunc('minute', ts)))::BIGINT AS missing,
       coalesce(sum(len(util) - list_count(util)), 0)::BIGINT AS na
FROM gpu_samples
WHERE cluster = $cluster
