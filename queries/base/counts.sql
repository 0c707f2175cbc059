-- How many rows there are of everything that an analysis may need, by its name in the queries' headers.
SELECT (SELECT count(*) FROM base_attempts) AS attempts,
       (SELECT count(*) FROM base_placements) AS placements,
       (SELECT count(account) FROM base_jobs) AS accounts,
       (SELECT count(source_reason) FROM base_attempts) AS reasons,
       (SELECT count(*) FROM base_queue_samples) AS samples,
       (SELECT count(*) FROM base_machine_samples) AS machine_samples,
       (SELECT count(am_start_ts) FROM base_attempts) AS containers,
       (SELECT count(*) FROM gpu_samples WHERE cluster = $cluster) + (SELECT count(*) FROM gpu_use_hours WHERE cluster = $cluster) AS telemetry,
       (SELECT count(*) FROM gpu_faults WHERE cluster = $cluster) AS gpu_faults,
       (SELECT count(*) FROM host_util WHERE cluster = $cluster) AS host_telemetry,
       (SELECT count(*) FROM job_outputs WHERE cluster = $cluster) AS job_logs,
       (SELECT count(*) FROM progress WHERE cluster = $cluster) AS training_progress,
       (SELECT count(*) FROM gpu_events WHERE cluster = $cluster AND signal = 'xid' AND origin = 'log') AS kernel_log_with_xids
