-- The attempts of job $job with the split of each wait; see delaytable.
SELECT a.attempt, CASE WHEN list_contains(raw.quirks, 'resized') THEN 'resized' ELSE a.state END AS state, raw.source_state, raw.reason, a.gpus, a.servers, a.queued_ts, a.start_ts, a.end_ts, a.wait_s, a.run_s, a.exit_code, a.exit_signal,
       a.preempted_by, a.started_by, a.held_until_ts, a.gpu_s / 3600 AS gpu_hours,
       d.fair_share_s, d.capacity_s, d.fragmentation_s, d.scheduler_s, d.ineligible_s, d.source_reason, d.behind_s,
       d.fair_share_less_s, d.fair_share_more_s, d.capacity_less_s, d.capacity_more_s, d.fragmentation_less_s, d.fragmentation_more_s, d.scheduler_less_s, d.scheduler_more_s,
       d.fewest_servers, d.racks, d.fewest_racks, n.so_far_s, n.still_waits
FROM base_attempts AS a
JOIN attempts AS raw ON raw.cluster = $cluster AND raw.job = a.job AND raw.attempt = a.attempt
LEFT JOIN base_delays AS d ON d.job = a.job AND d.attempt = a.attempt
LEFT JOIN base_never_started AS n ON n.job = a.job AND n.attempt = a.attempt
WHERE a.job = $job
ORDER BY a.attempt
