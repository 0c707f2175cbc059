-- The numbers that the tables' population sentences are filled with.
SELECT (SELECT count(*) FROM base_jobs) AS jobs,
       (SELECT count(*) FROM base_jobs WHERE attempts = 0) AS jobs_without_attempts,
       (SELECT count(*) FROM base_jobs WHERE gpus IS NULL) AS jobs_without_gpus,
       (SELECT count(*) FROM base_runs) AS runs,
       (SELECT count(*) FROM base_waits) AS waits,
       (SELECT count(*) FROM base_attempts) AS attempts,
       (SELECT count(*) FROM base_attempts WHERE start_ts IS NULL) AS attempts_without_start,
       (SELECT count(*) FROM base_attempts WHERE wait_s IS NULL) AS attempts_without_wait,
       (SELECT count(*) FROM base_attempts WHERE wait_s IS NOT NULL) AS delays,
       (SELECT count(*) FROM base_attempts WHERE gpus > 1 AND wait_s IS NOT NULL) AS gang_delays,
       (SELECT count(*) FROM base_attempts WHERE state = 'running') AS attempts_running,
       (SELECT count(*) FROM base_attempts WHERE list_contains(quirks, 'overlap')) AS attempts_overlapping,
       (SELECT count(*) FROM base_delays WHERE wait_s > 0) AS delays_waited,
       (SELECT count(*) FROM base_delays JOIN (SELECT job, attempt, run_s FROM base_attempts) USING (job, attempt)
        WHERE wait_s > 0 AND gpus >= 2 AND run_s >= 60) AS paper_waits,
       (SELECT coalesce(sum(samples), 0)::BIGINT FROM base_util_histogram) AS util_samples,
       (SELECT coalesce(sum(samples), 0)::BIGINT FROM base_host_histogram) AS host_samples
