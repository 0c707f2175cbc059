-- What sources state themselves, to be compared with what gpuctl works out; GPUs of a job as a whole.

ALTER TABLE exact_placements ALTER COLUMN machine DROP NOT NULL; -- NULL: gpus is the job's total, on all of its machines

-- the views of these tables are made anew, with the columns that are added
DROP VIEW attempts;
DROP VIEW jobs;
DROP VIEW numbered_jobs;
DROP VIEW all_trace_jobs;
ALTER TABLE trace_jobs ADD COLUMN partition VARCHAR;
CREATE VIEW all_trace_jobs AS
    SELECT *, rowid + 1000000000000000 AS number FROM trace_jobs
    UNION ALL BY NAME
    SELECT *, rowid + 2000000000000000 AS number FROM trace_jobs_short;
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
ALTER TABLE attempt_rows ADD COLUMN stated_gpu_s DOUBLE;
-- GPU-seconds by the source's own account (Slurm: Elapsed and Suspended times gres/gpu of AllocTRES); NULL: it states none
CREATE VIEW attempts AS
    SELECT * FROM attempt_rows
    UNION ALL BY NAME
    SELECT cluster, job, 0 AS attempt, submit_ts AS queued_ts, start_ts, end_ts,
           CASE WHEN state NOT IN ('pending', 'running', 'suspended') THEN greatest(start_ts, end_ts) END AS released_ts,
           state, source_state, gpus, CASE WHEN placed THEN nodes ELSE coalesce(nodes, 0) END AS servers,
           coalesce(CASE WHEN start_ts >= submit_ts THEN (epoch_us(start_ts) - epoch_us(submit_ts)) / 1000000 END, told_wait_s) AS wait_s,
           coalesce(CASE WHEN end_ts >= start_ts THEN (epoch_us(end_ts) - epoch_us(start_ts)) / 1000000 END, told_run_s) AS run_s,
           CASE WHEN start_ts IS NULL AND (state IN ('completed', 'failed', 'timeout', 'out_of_memory', 'node_fail')
                                           OR (told_run_s IS NOT NULL AND state NOT IN ('pending', 'running', 'suspended')))
                THEN ['no_start'] ELSE [] END
           || CASE WHEN end_ts IS NULL AND start_ts IS NOT NULL AND state NOT IN ('pending', 'running', 'suspended')
                   THEN ['end_unknown'] ELSE [] END
           || CASE WHEN end_ts < start_ts THEN ['end_before_start'] ELSE [] END
           || CASE WHEN placed THEN [] ELSE ['nodes_unknown'] END AS quirks,
           source
    FROM all_trace_jobs;

CREATE TABLE given_gpus (               -- GPUs of nodes as the user gave them (--gpus-per-node), for jobs whose GPUs no source states
    cluster VARCHAR NOT NULL,
    machine VARCHAR,                    -- NULL: every node that is not named
    gpus INTEGER NOT NULL,
    added BOOLEAN NOT NULL,             -- the row of machines is from here
    labelled BOOLEAN NOT NULL           -- machines.gpus_labelled is from here
);

CREATE TABLE job_dependencies (         -- jobs that follow another one (SWF fields 17 and 18)
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL,
    after_job VARCHAR NOT NULL,         -- it may start only after the end of this one
    think_s DOUBLE NOT NULL,            -- seconds from that end to its submission
    source INTEGER NOT NULL
);

-- Rows that the store had already are neither loaded nor rejected: they have a count of their own. DuckDB cannot change a
-- table's CHECK, so the table is made anew. Until version 11 such rows of Slurm's accounting were rejects.
CREATE TABLE sources_12 (
    source          INTEGER NOT NULL,   -- number in order of loading
    cluster         VARCHAR NOT NULL,
    path            VARCHAR NOT NULL,   -- as found; members of archives as archive!member
    format          VARCHAR NOT NULL,
    sha256          VARCHAR NOT NULL,   -- of the bytes of the file (of the member, for archives)
    bytes           BIGINT NOT NULL,
    rows_in         BIGINT NOT NULL,
    rows_loaded     BIGINT NOT NULL,
    rows_rejected   BIGINT NOT NULL,
    parser_version  INTEGER NOT NULL,
    loaded_at       TIMESTAMPTZ NOT NULL,
    rows_already_stored BIGINT NOT NULL DEFAULT 0,   -- with the same content: from another source, or earlier in this one
    CHECK (rows_in = rows_loaded + rows_already_stored + rows_rejected)
);
INSERT INTO sources_12 BY NAME
    SELECT s.* REPLACE (s.rows_rejected - coalesce(known.rows, 0) AS rows_rejected), coalesce(known.rows, 0) AS rows_already_stored
    FROM sources AS s LEFT JOIN (
        SELECT source, count(*) AS rows FROM rejects WHERE reason = 'the same job and attempt was loaded before' GROUP BY source
    ) AS known ON known.source = s.source
    ORDER BY s.source;
DELETE FROM rejects WHERE reason = 'the same job and attempt was loaded before';
DROP TABLE sources;
ALTER TABLE sources_12 RENAME TO sources;

CREATE TABLE stated_usage (             -- GPU time as sreport totals it itself
    cluster VARCHAR NOT NULL, report VARCHAR NOT NULL, -- cluster | user
    account VARCHAR, login VARCHAR,     -- NULL: all
    tres VARCHAR NOT NULL,              -- gres/gpu, or of a type: gres/gpu:a100
    from_ts TIMESTAMPTZ NOT NULL, to_ts TIMESTAMPTZ NOT NULL,
    gpu_s DOUBLE NOT NULL,              -- GPU-seconds allocated
    rounding_s DOUBLE NOT NULL,         -- that the report may have rounded off
    source INTEGER NOT NULL
);
