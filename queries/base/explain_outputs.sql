-- The logs of job $job.
SELECT coalesce(o.attempt, greatest(j.attempts - 1, 0)) AS attempt, o.attempt IS NULL AS of_all, o.stream, o.path, o.bytes, o.lines
FROM job_outputs AS o JOIN base_jobs AS j USING (job)
WHERE o.cluster = $cluster AND o.job = $job
ORDER BY attempt, o.stream, o.path
