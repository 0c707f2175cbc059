-- What jobs held within the time of the filter, for gpuctl report --compare: see base_spans. is_idle: whether the mean GPU utilization of the job is below $idle_below; NULL without telemetry of it.
SELECT s."user", s.queue, s.account, s.outcome, s.gpus, s.from_us, s.until_us, s.held_until_c - s.held_from_c AS held_s, u.mean_pct < $idle_below AS is_idle
FROM base_spans AS s LEFT JOIN (SELECT job, sum(total) / sum(samples) / 1e6 AS mean_pct FROM unfiltered_job_use GROUP BY job) AS u USING (job)
WHERE s.gpus > 0 AND s.until_us > s.from_us
ORDER BY s.job, s.attempt, s.from_us
