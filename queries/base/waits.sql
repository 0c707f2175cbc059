-- Every wait: one row an attempt whose queueing and start are known; see runs.sql on seconds.
SELECT job, attempt, "user", queue, account, size_bucket, wait_s AS seconds, wait_s / 60 AS minutes
FROM base_attempts
WHERE wait_s IS NOT NULL
