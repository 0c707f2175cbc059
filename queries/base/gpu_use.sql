-- How the GPUs of each job were used by telemetry: job_gpu_usage where it has the job (a figure that is withheld is NULL);
-- else the mean of samples for each GPU and minute, and the share of the time held that they cover.
SELECT job, gpu_util_mean, gpu_util_coverage, gpus_unused, idle_gpu_h FROM job_gpu_usage WHERE cluster = $cluster
UNION ALL
SELECT u.job, u.mean_pct, least(u.samples * 60 / h.gpu_s, 1), NULL, NULL
FROM (SELECT job, sum(samples) AS samples, sum(total) / sum(samples) / 1e6 AS mean_pct FROM base_job_use GROUP BY job) AS u
LEFT JOIN (SELECT job, nullif(sum(gpu_s), 0)::DOUBLE AS gpu_s FROM unfiltered_held GROUP BY job) AS h USING (job)
WHERE u.job NOT IN (SELECT job FROM job_gpu_usage WHERE cluster = $cluster)
