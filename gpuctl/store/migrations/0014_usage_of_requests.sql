-- What accounting states of the use of requests: CPU time, memory, billing weights, GPUs by type, and how a job was started.
DROP VIEW attempts;
ALTER TABLE attempt_rows ADD COLUMN elapsed_s DOUBLE;       -- ran for, without suspensions, by the source's own account
ALTER TABLE attempt_rows ADD COLUMN suspended_s DOUBLE;
ALTER TABLE attempt_rows ADD COLUMN cpu_s DOUBLE;           -- CPU seconds used (Slurm: TotalCPU of the job's own record)
ALTER TABLE attempt_rows ADD COLUMN mem_used_mb DOUBLE;     -- sum of the nodes' peaks, MiB (jobstats in AdminComment)
ALTER TABLE attempt_rows ADD COLUMN mem_limit_mb DOUBLE;    -- sum of the nodes' limits, MiB (jobstats)
ALTER TABLE attempt_rows ADD COLUMN mem_node_pct DOUBLE;    -- of the fullest node: its peak over its limit (jobstats)
ALTER TABLE attempt_rows ADD COLUMN billing DOUBLE;         -- billing units allocated (Slurm: billing of AllocTRES)
ALTER TABLE attempt_rows ADD COLUMN gpus_by_type VARCHAR;   -- a100=2,h100=4; NULL: the source states no type
ALTER TABLE attempt_rows ADD COLUMN started_as VARCHAR;     -- batch | salloc | srun --pty | srun | jupyter; NULL: not known
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

CREATE TABLE step_usage (               -- what the steps of an attempt used, together; one row for each run of records in a source
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL,
    start_ts TIMESTAMPTZ,               -- the first step's start: it belongs to the last attempt that had started by then
    steps INTEGER NOT NULL,             -- .batch, .extern and .interactive among them
    cpu_s DOUBLE,                       -- CPU seconds of all steps
    mem_total_mb DOUBLE,                -- the step with the most memory, all its tasks: mem of TRESUsageInTot, MiB
    mem_task_mb DOUBLE,                 -- the same from MaxRSS x NTasks, MiB
    batch BOOLEAN NOT NULL,             -- one of them is .batch
    interactive BOOLEAN NOT NULL,       -- one of them is .interactive (salloc)
    source INTEGER NOT NULL
);
