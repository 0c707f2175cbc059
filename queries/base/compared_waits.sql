-- The waits of jobs submitted within the time of the filter, for gpuctl report --compare.
SELECT w.queue, j.submit_us, w.seconds, coalesce(a.gpus, 0) AS gpus
FROM base_waits AS w JOIN (SELECT job, epoch_us(submit_ts) AS submit_us FROM base_jobs WHERE submit_ts IS NOT NULL) AS j USING (job)
JOIN (SELECT job, attempt, gpus FROM base_attempts) AS a USING (job, attempt)
ORDER BY j.submit_us, w.job, w.attempt
