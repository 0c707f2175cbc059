-- One row a job with a known run time, in minutes.
SELECT job, queue, size_bucket, run_s / 60 AS minutes
FROM base_jobs
WHERE run_s IS NOT NULL AND size_bucket <> 'unknown'
