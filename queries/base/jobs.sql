-- The jobs of one cluster, with the size bucket and the chosen duration (span | sum | last). tries: its attempts; a change of a running job's size (Slurm) begins an attempt, but no try.
-- job_gpu_s_*: GPUs times each duration; of a job whose size changed, GPUs times seconds of each of its attempts, and the gaps between them at its own size.
WITH tried AS (
    SELECT job, list_contains(quirks, 'resized') AS is_resized, gpus * run_s AS gpu_s, attempt > coalesce(max(attempt) FILTER (NOT is_resized AND attempt < last) OVER (PARTITION BY job), -1) AS in_last_try
    FROM (SELECT *, max(attempt) OVER (PARTITION BY job) AS last FROM attempts WHERE cluster = $cluster AND job IN (SELECT job FROM attempts WHERE cluster = $cluster AND list_contains(quirks, 'resized')))
),
resized AS (SELECT job, count(*) FILTER (is_resized) AS resizes, CASE WHEN bool_and(gpu_s IS NOT NULL OR NOT is_resized) THEN sum(gpu_s) END AS all_gpu_s, CASE WHEN bool_and(gpu_s IS NOT NULL OR NOT is_resized) THEN sum(gpu_s) FILTER (in_last_try) END AS last_gpu_s FROM tried GROUP BY job)
SELECT job, coalesce(queue, '(none)') AS queue, "user", account, qos, name, state, source_state, gpus, gpu_type, gpu_type_request, cpus, mem_mb, time_limit_s, nodes, reason, priority, attempts, attempts - coalesce(resizes, 0) AS tries, submit_ts, start_ts, end_ts, wait_s,
       run_span_s, run_sum_s, run_last_s, quirks, source,
       CASE $duration WHEN 'span' THEN run_span_s WHEN 'sum' THEN run_sum_s ELSE run_last_s END AS run_s,
       CASE WHEN resizes IS NULL THEN gpus * run_span_s ELSE all_gpu_s + gpus * (run_span_s - run_sum_s) END AS job_gpu_s_span, CASE WHEN resizes IS NULL THEN gpus * run_sum_s ELSE all_gpu_s END AS job_gpu_s_sum, CASE WHEN resizes IS NULL THEN gpus * run_last_s ELSE last_gpu_s END AS job_gpu_s_last,
       CASE $duration WHEN 'span' THEN job_gpu_s_span WHEN 'sum' THEN job_gpu_s_sum ELSE job_gpu_s_last END AS job_gpu_s,
       CASE WHEN gpus IS NULL THEN 'unknown' WHEN gpus = 0 THEN '0' WHEN gpus <= 1 THEN '1' WHEN gpus <= 4 THEN '2-4'
            WHEN gpus <= 8 THEN '5-8' ELSE '>8' END AS size_bucket,
       -- of all others it is known that they held no GPU
       start_ts IS NOT NULL OR coalesce(run_span_s, run_sum_s, run_last_s) IS NOT NULL OR list_contains(quirks, 'missing_time')
           OR NOT (state IN ('pending', 'killed') OR (state = 'failed' AND attempts = 0)) AS may_have_run
FROM jobs LEFT JOIN resized USING (job)
WHERE cluster = $cluster
