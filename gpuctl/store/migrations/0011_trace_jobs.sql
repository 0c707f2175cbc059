-- A job of a published trace has one attempt, which follows from the job: it is stored once, in the columns that such traces
-- have, and the views jobs and attempts show it as all others. Two tables of 37 and 24 columns take twice the time to write.
-- A migration that adds a column to job_rows or attempt_rows makes these views anew.
ALTER TABLE jobs RENAME TO job_rows;
ALTER TABLE attempts RENAME TO attempt_rows;
CREATE TABLE trace_jobs (               -- a job with one attempt
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, queue VARCHAR, "user" VARCHAR, account VARCHAR, name VARCHAR,
    submit_ts TIMESTAMPTZ, start_ts TIMESTAMPTZ, end_ts TIMESTAMPTZ, state VARCHAR NOT NULL, source_state VARCHAR,
    gpus DOUBLE, gpu_type VARCHAR, nodes INTEGER, cpus INTEGER, mem_mb BIGINT, time_limit_s BIGINT,
    told_wait_s DOUBLE, told_run_s DOUBLE,      -- as the source has them: used where its times do not tell
    placed BOOLEAN,                     -- whether the source tells where jobs ran; NULL: it does not
    quirks VARCHAR,                     -- of the job, with commas between them; NULL: none. Those of its attempt follow
    source INTEGER NOT NULL
);
CREATE TABLE trace_jobs_short (         -- the same of sources that tell no more than this: a column costs its time where it is empty, too
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, queue VARCHAR, "user" VARCHAR,
    submit_ts TIMESTAMPTZ, start_ts TIMESTAMPTZ, end_ts TIMESTAMPTZ, state VARCHAR NOT NULL, source_state VARCHAR,
    gpus DOUBLE, nodes INTEGER, cpus INTEGER, quirks VARCHAR, source INTEGER NOT NULL
);
CREATE VIEW all_trace_jobs AS
    SELECT *, rowid + 1000000000000000 AS number FROM trace_jobs
    UNION ALL BY NAME
    SELECT *, rowid + 2000000000000000 AS number FROM trace_jobs_short;
CREATE VIEW numbered_jobs AS            -- jobs, and in the order of their loading a number, which stays until others are removed
    SELECT *, rowid AS number FROM job_rows
    UNION ALL BY NAME
    SELECT cluster, job, queue, "user", account, name, submit_ts, start_ts, end_ts, state, source_state, gpus, gpu_type, nodes, cpus,
           mem_mb, time_limit_s, 1 AS attempts,
           coalesce(CASE WHEN start_ts >= submit_ts THEN (epoch_us(start_ts) - epoch_us(submit_ts)) / 1000000 END, told_wait_s) AS wait_s,
           coalesce(CASE WHEN end_ts >= start_ts THEN (epoch_us(end_ts) - epoch_us(start_ts)) / 1000000 END, told_run_s) AS run_span_s,
           run_span_s AS run_sum_s, run_span_s AS run_last_s,
           CASE WHEN quirks IS NULL THEN [] ELSE string_split(quirks, ',') END AS quirks, source, number
    FROM all_trace_jobs;
CREATE VIEW jobs AS SELECT * EXCLUDE (number) FROM numbered_jobs;
CREATE VIEW attempts AS
    SELECT * FROM attempt_rows
    UNION ALL BY NAME
    SELECT cluster, job, 0 AS attempt, submit_ts AS queued_ts, start_ts, end_ts,
           CASE WHEN state NOT IN ('pending', 'running', 'suspended') THEN greatest(start_ts, end_ts) END AS released_ts,
           state, source_state, gpus, CASE WHEN placed THEN nodes ELSE coalesce(nodes, 0) END AS servers,
           coalesce(CASE WHEN start_ts >= submit_ts THEN (epoch_us(start_ts) - epoch_us(submit_ts)) / 1000000 END, told_wait_s) AS wait_s,
           coalesce(CASE WHEN end_ts >= start_ts THEN (epoch_us(end_ts) - epoch_us(start_ts)) / 1000000 END, told_run_s) AS run_s,
           CASE WHEN start_ts IS NULL AND state IN ('completed', 'failed', 'timeout', 'out_of_memory', 'node_fail')
                THEN ['no_start'] ELSE [] END
           || CASE WHEN end_ts IS NULL AND start_ts IS NOT NULL AND state NOT IN ('pending', 'running', 'suspended')
                   THEN ['no_end'] ELSE [] END
           || CASE WHEN end_ts < start_ts THEN ['end_before_start'] ELSE [] END
           || CASE WHEN placed THEN [] ELSE ['nodes_unknown'] END AS quirks,
           source
    FROM all_trace_jobs;
