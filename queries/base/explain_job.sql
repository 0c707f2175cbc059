-- What the store says of job $job.
SELECT job, name, "user", queue, account, partition, qos, state, source_state, reason, submit_ts, eligible_ts, start_ts, end_ts, gpus, gpu_type, nodes,
       cpus, mem_mb, time_limit_s, priority, attempts, array_job, array_task, het_job, exit_code, exit_signal
FROM jobs WHERE cluster = $cluster AND job = $job
