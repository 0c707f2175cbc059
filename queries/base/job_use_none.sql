-- Instead of job_use where the cluster has no rows of gpu_samples: what
-- an ingest made of the series of its GPUs, if there are any.
SELECT u.job, u.hour AS ts, round(sum(u.seconds) / 60)::BIGINT AS samples, (sum(u.total) // 60)::HUGEINT AS total
FROM gpu_use_hours AS u JOIN base_attempts AS a USING (job, attempt)
WHERE u.cluster = $cluster
GROUP BY ALL
