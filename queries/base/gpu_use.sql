-- How the GPUs of each job were used, by telemetry with a sample for each GPU and minute: the mean, and the share of the time held that it covers.
SELECT u.job, u.mean_pct AS gpu_util_mean, least(u.samples * 60 / h.gpu_s, 1) AS gpu_util_coverage, NULL::INTEGER AS gpus_unused, NULL::DOUBLE AS idle_gpu_h
FROM (SELECT job, sum(samples) AS samples, sum(total) / sum(samples) / 1e6 AS mean_pct FROM base_job_use GROUP BY job) AS u
LEFT JOIN (SELECT job, nullif(sum(gpu_s), 0)::DOUBLE AS gpu_s FROM base_held GROUP BY job) AS h USING (job)
