-- One row a job with a known run time; means are of seconds, which are whole, so that their sums do not depend on order.
SELECT job, queue, size_bucket, run_s AS seconds, run_s / 60 AS minutes
FROM base_jobs
WHERE run_s IS NOT NULL
