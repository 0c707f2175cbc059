-- Traces of some simulators state when a job is due.
DROP VIEW jobs;
DROP VIEW numbered_jobs;
ALTER TABLE job_rows ADD COLUMN deadline_ts TIMESTAMPTZ;  -- NULL: it has none, or the source states none
CREATE VIEW numbered_jobs AS            -- jobs, and in the order of their loading a number, which stays until others are removed
    SELECT *, rowid AS number FROM job_rows
    UNION ALL BY NAME
    SELECT cluster, job, queue, "user", account, name, submit_ts, start_ts, end_ts, state, source_state, gpus, gpu_type, nodes, cpus,
           mem_mb, time_limit_s, partition, 1 AS attempts,
           coalesce(CASE WHEN start_ts >= submit_ts THEN (epoch_us(start_ts) - epoch_us(submit_ts)) / 1000000 END, told_wait_s) AS wait_s,
           coalesce(CASE WHEN end_ts >= start_ts THEN (epoch_us(end_ts) - epoch_us(start_ts)) / 1000000 END, told_run_s) AS run_span_s,
           run_span_s AS run_sum_s, run_span_s AS run_last_s,
           CASE WHEN quirks IS NULL THEN [] ELSE string_split(quirks, ',') END AS quirks, source, number
    FROM all_trace_jobs;
CREATE VIEW jobs AS SELECT * EXCLUDE (number) FROM numbered_jobs;
