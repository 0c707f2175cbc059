-- What was held, one row an attempt that ran; of a job without attempts whose run time a source states, one row of its own.
-- gpu_s: GPU-seconds from allocation to release; node_s: node-seconds of attempts whose GPUs are unknown. Both are decimals: which rows are added first makes no difference.
-- is_dated: that it is known when it was held. With --since or --until, held_within.sql stands for these rows.
SELECT job, "user", queue, account, size_bucket, gpu_s::DECIMAL(28, 6) AS gpu_s, node_s::DECIMAL(28, 6) AS node_s,
       outcome, start_ts IS NOT NULL AS is_dated
FROM base_attempts
WHERE ran
UNION ALL
SELECT job, "user", queue, account, size_bucket, (gpus * run_s)::DECIMAL(28, 6), (CASE WHEN gpus IS NULL THEN nullif(nodes, 0) * run_s END)::DECIMAL(28, 6),
       CASE WHEN state = 'completed' THEN 'succeeded' WHEN state IN ('killed', 'timeout', 'preempted') THEN 'killed'
            WHEN state IN ('failed', 'out_of_memory', 'node_fail') THEN 'failed'
            WHEN state = 'unknown' THEN 'unknown' ELSE 'other' END, false
FROM base_jobs
WHERE attempts = 0 AND run_s IS NOT NULL
