-- The jobs of one cluster, with the size bucket and the chosen duration (span | sum | last). tries: its attempts; a change of a running job's size (Slurm) begins an attempt, but no try.
SELECT job, coalesce(queue, '(none)') AS queue, "user", account, name, state, source_state, gpus, gpu_type, cpus, nodes, reason, priority, attempts, attempts - coalesce(resizes, 0) AS tries, submit_ts, start_ts, end_ts, wait_s,
       run_span_s, run_sum_s, run_last_s, quirks, source,
       CASE $duration WHEN 'span' THEN run_span_s WHEN 'sum' THEN run_sum_s ELSE run_last_s END AS run_s,
       CASE WHEN gpus IS NULL THEN 'unknown' WHEN gpus = 0 THEN '0' WHEN gpus <= 1 THEN '1' WHEN gpus <= 4 THEN '2-4'
            WHEN gpus <= 8 THEN '5-8' ELSE '>8' END AS size_bucket,
       -- of all others it is known that they held no GPU
       start_ts IS NOT NULL OR coalesce(run_span_s, run_sum_s, run_last_s) IS NOT NULL OR list_contains(quirks, 'missing_time')
           OR NOT (state IN ('pending', 'killed') OR (state = 'failed' AND attempts = 0)) AS may_have_run
FROM jobs LEFT JOIN (SELECT job, count(*) AS resizes FROM attempts WHERE cluster = $cluster AND list_contains(quirks, 'resized') GROUP BY job) USING (job)
WHERE cluster = $cluster
