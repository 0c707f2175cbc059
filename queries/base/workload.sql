-- One row a job that was submitted: its size in the unit that the log counts jobs in, its submission on the log's own clock, and how it ended.
SELECT job, "user", queue, name, state, submit_ts, timezone(zone, submit_ts) AS local_ts, epoch(submit_ts) AS submit_s, unit,
       CASE unit WHEN 'GPUs' THEN gpus WHEN 'CPUs' THEN cpus ELSE nodes END::DOUBLE AS size, wait_s, run_s,
       CASE WHEN state = 'completed' THEN 'completed' WHEN state = 'killed' THEN 'killed'
            WHEN state IN ('failed', 'timeout', 'node_fail', 'out_of_memory') THEN 'failed' ELSE 'other' END AS outcome
FROM base_jobs,
     (SELECT CASE WHEN count(*) FILTER (gpus > 0) > 0 THEN 'GPUs' WHEN count(*) FILTER (cpus > 0) > 0 THEN 'CPUs'
                  WHEN count(*) FILTER (nodes > 0) > 0 THEN 'nodes' ELSE 'GPUs' END AS unit FROM base_jobs),
     (SELECT coalesce(any_value(timezone), 'UTC') AS zone FROM clusters WHERE cluster = $cluster)
WHERE submit_ts IS NOT NULL
