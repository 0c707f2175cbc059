-- What was held, one row an attempt that ran; of a job without attempts whose run time a source states, one row of its own.
-- gpu_s: GPU-seconds, as decimals: which rows are added first makes no difference. outcome: succeeded | retried | killed | failed | other.
SELECT job, "user", queue, account, size_bucket, gpu_s::DECIMAL(28, 6) AS gpu_s,
       CASE WHEN NOT is_last THEN 'retried' WHEN state = 'running' THEN 'other' WHEN job_state = 'completed' THEN 'succeeded'
            WHEN job_state IN ('killed', 'timeout', 'preempted') THEN 'killed'
            WHEN job_state IN ('failed', 'out_of_memory', 'node_fail') THEN 'failed' ELSE 'other' END AS outcome
FROM base_attempts
WHERE ran
UNION ALL
SELECT job, "user", queue, account, size_bucket, (gpus * run_s)::DECIMAL(28, 6),
       CASE WHEN state = 'completed' THEN 'succeeded' WHEN state IN ('killed', 'timeout', 'preempted') THEN 'killed'
            WHEN state IN ('failed', 'out_of_memory', 'node_fail') THEN 'failed' ELSE 'other' END
FROM base_jobs
WHERE attempts = 0 AND run_s IS NOT NULL
