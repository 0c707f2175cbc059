-- title: The trace at a glance
-- section: overview
-- order: 10
-- question: How big is this trace, and how busy was the cluster?
-- population: {jobs} job{jobs||s} of cluster {cluster}, {jobs_without_attempts} of them without any attempt; {attempts} attempt{attempts||s}, {attempts_without_start} without a start: the log lacks the start of {attempts_start_lost}; the rest are in never_started.
-- column: cluster | - | the cluster's name in the store
-- column: jobs | jobs | jobs in the log, in any state
-- column: attempts | attempts | starts of a job's gang, and changes of its size while it ran
-- column: users | users | distinct users; empty if the source names none
-- column: queues | queues | distinct queues (virtual clusters)
-- column: machines | nodes | nodes in the node list or seen in use
-- column: gpus | GPUs | sum over nodes of the larger of the label and the highest GPU index in use + 1; for nodes with neither, the most GPUs held there at once
-- column: gpus_labelled | GPUs | sum over nodes of the number in the node list
-- column: first_submit_ts | UTC | first submission
-- column: last_ts | UTC | last time in the job log
-- column: span_days | days | from first submission to the last time in the job log
-- column: gpu_hours | GPU-h | GPUs times the time they were held, from allocation (which may come before the start) to release, over all attempts that ran (for YARN, over their containers), with or without a known start; overlapping attempts of a job are counted once
-- column: node_hours | node-h | nodes times time held, of attempts whose GPUs no source states; a node shared by several attempts counts once for each; empty if there are none
-- column: occupancy_pct | % | GPU-hours that all jobs held from the first submission (--since, if later) to the last time (--until, if earlier), over gpus times that period; empty if there is no period, if no gang size is known, if the starts of more than 1 % of the GPU-hours are unknown, or if above 100 %, as more was held than the known nodes have: see data_quality
-- column: size_unknown | attempts | attempts that ran and whose GPUs no source states: gpu_hours and occupancy_pct exclude them
-- column: wait_p50_min | min | median wait of an attempt
-- column: wait_p95_min | min | 95th percentile of the wait of an attempt
-- column: wait_over_1h_pct | % | share of these waits that lasted more than an hour
-- column: gpu_samples | rows | telemetry rows (one per node and minute), repeats included; of series of GPUs, GPU-minutes that jobs held
WITH held AS (
    -- less what lies before the period that a filter chooses, and after it
    SELECT sum((gpus * (held_until_c - held_from_c
                       - CASE WHEN held_from_ts < $since::TIMESTAMPTZ THEN epoch(least(held_until_ts, $since::TIMESTAMPTZ) - held_from_ts) ELSE 0 END
                       - CASE WHEN held_until_ts > $until::TIMESTAMPTZ THEN epoch(held_until_ts - greatest(held_from_ts, $until::TIMESTAMPTZ)) ELSE 0 END))::DECIMAL(28, 6))::DOUBLE / 3600 AS gpu_hours,
           sum(gpu_s) FILTER (start_ts IS NOT NULL) >= 0.99 * (SELECT sum(gpu_s)::DOUBLE FROM unfiltered_held) AS all_dated
    FROM (
        SELECT gpus, held_from_ts, held_until_ts, held_from_c, held_until_c, start_ts, gpu_s FROM unfiltered_attempts WHERE NOT by_container
        UNION ALL
        SELECT gpus, held_from_ts, held_until_ts, held_from_c, held_until_c, held_from_ts, gpus * (held_until_c - held_from_c) FROM unfiltered_holdings
    )
),
log AS (
    SELECT first_submit_ts, greatest(last_job_ts, attempts_end) AS last_ts
    FROM (SELECT min(submit_ts) AS first_submit_ts, max(greatest(submit_ts, start_ts, end_ts)) AS last_job_ts FROM unfiltered_jobs),
         (SELECT max(log_end_ts) AS attempts_end FROM unfiltered_attempts)
),
size AS (
    SELECT count(*) AS machines, sum(gpus)::BIGINT AS gpus, sum(gpus_labelled)::BIGINT AS gpus_labelled FROM base_machines
),
share AS (
    SELECT CASE WHEN held.all_dated AND sized.any_known THEN 100 * held.gpu_hours * 3600 END
           / nullif(size.gpus * greatest(0, epoch(least(log.last_ts, $until::TIMESTAMPTZ) - greatest(log.first_submit_ts, $since::TIMESTAMPTZ))), 0) AS pct
    FROM held, log, size, unfiltered_size_known AS sized
)
SELECT $cluster AS cluster,
       (SELECT count(*) FROM base_jobs) AS jobs,
       (SELECT count(*) FROM base_attempts) AS attempts,
       (SELECT nullif(count(DISTINCT "user"), 0) FROM base_jobs) AS users,
       (SELECT count(DISTINCT queue) FROM base_jobs) AS queues,
       size.machines, size.gpus, size.gpus_labelled,
       log.first_submit_ts,
       log.last_ts,
       epoch(log.last_ts - log.first_submit_ts) / 86400 AS span_days,
       CASE WHEN sized.any_known THEN (SELECT sum(gpu_s)::DOUBLE / 3600 FROM base_held) END AS gpu_hours,
       (SELECT sum(node_s)::DOUBLE / 3600 FROM base_held) AS node_hours,
       CASE WHEN share.pct <= 100 + 1e-6 THEN least(share.pct, 100) END AS occupancy_pct,
       (SELECT count(*) FROM base_attempts WHERE ran AND gpus IS NULL) AS size_unknown,
       (SELECT quantile_cont(wait_s, 0.5) / 60 FROM base_attempts) AS wait_p50_min,
       (SELECT quantile_cont(wait_s, 0.95) / 60 FROM base_attempts) AS wait_p95_min,
       (SELECT 100 * avg((wait_s > 3600)::INTEGER) FROM base_attempts) AS wait_over_1h_pct,
       (SELECT count(*) FROM gpu_samples WHERE cluster = $cluster) + (SELECT coalesce(round(sum(seconds) / 60), 0)::BIGINT FROM gpu_use_hours WHERE cluster = $cluster) AS gpu_samples
FROM held, log, size, unfiltered_size_known AS sized, share
