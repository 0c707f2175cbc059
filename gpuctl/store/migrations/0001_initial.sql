-- The trace store, version 1. All times are UTC; durations are seconds; `source` is the ledger row a row came from.

CREATE TABLE sources (
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
    CHECK (rows_in = rows_loaded + rows_rejected)
);
CREATE TABLE rejects (source INTEGER NOT NULL, line_no BIGINT NOT NULL, reason VARCHAR NOT NULL, raw VARCHAR NOT NULL);

CREATE TABLE clusters (
    cluster       VARCHAR NOT NULL,
    source_format VARCHAR NOT NULL,
    timezone      VARCHAR NOT NULL,     -- the zone of the source's stamps
    clock         VARCHAR NOT NULL CHECK (clock IN ('wall', 'utc')),
    -- 'wall': the source's stamps carry no zone, so durations are differences of its own wall clock
    first_ts      TIMESTAMPTZ,
    last_ts       TIMESTAMPTZ
);
CREATE TABLE machines (
    cluster       VARCHAR NOT NULL,
    machine       VARCHAR NOT NULL,
    rack          VARCHAR,              -- rack or leaf switch
    gpus_labelled INTEGER,              -- as the source's inventory says
    gpus_observed INTEGER,              -- highest GPU index that a job used, plus one
    gpus          INTEGER GENERATED ALWAYS AS (greatest(gpus_labelled, gpus_observed)) VIRTUAL,
    gpu_type      VARCHAR,
    gpu_mem_mb    BIGINT,
    cpus          INTEGER,
    mem_mb        BIGINT,
    partition     VARCHAR
);
CREATE TABLE queues (
    cluster      VARCHAR NOT NULL,
    queue        VARCHAR NOT NULL,      -- virtual cluster, YARN queue, Slurm partition or account
    parent       VARCHAR,
    quota_gpus   DOUBLE,
    quota_source VARCHAR                -- configured | inferred
);
CREATE TABLE jobs (
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, queue VARCHAR, "user" VARCHAR, account VARCHAR, name VARCHAR,
    array_job VARCHAR, array_task VARCHAR, het_job VARCHAR, het_offset INTEGER,
    submit_ts TIMESTAMPTZ, eligible_ts TIMESTAMPTZ, start_ts TIMESTAMPTZ, end_ts TIMESTAMPTZ,
    state VARCHAR NOT NULL,             -- gpuctl.core.states.State
    source_state VARCHAR,
    gpus DOUBLE, gpu_type VARCHAR, nodes INTEGER, cpus INTEGER, mem_mb BIGINT,
    time_limit_s BIGINT, priority BIGINT, qos VARCHAR, exit_code INTEGER, exit_signal INTEGER, reason VARCHAR,
    attempts INTEGER NOT NULL,
    wait_s DOUBLE,                      -- submission to first start
    run_span_s DOUBLE,                  -- first start to last end
    run_sum_s DOUBLE,                   -- sum over attempts
    run_last_s DOUBLE,                  -- last attempt
    quirks VARCHAR[] NOT NULL,
    source INTEGER NOT NULL
);
CREATE TABLE attempts (
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, attempt INTEGER NOT NULL,   -- 0-based
    queued_ts TIMESTAMPTZ,              -- submission, for a retry the end of the attempt before; NULL where not known
    start_ts TIMESTAMPTZ, end_ts TIMESTAMPTZ,
    released_ts TIMESTAMPTZ,
    -- when its GPUs were free again: end_ts, cut where the next attempt had already started, or the next
    -- known time of the job where no end was logged; NULL: still running when the log was taken
    state VARCHAR NOT NULL,
    gpus DOUBLE NOT NULL, servers INTEGER NOT NULL,
    wait_s DOUBLE, run_s DOUBLE,
    exit_code INTEGER, exit_signal INTEGER, reason VARCHAR,
    quirks VARCHAR[] NOT NULL,
    source INTEGER NOT NULL
);
CREATE TABLE placements (
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, attempt INTEGER NOT NULL,
    machine VARCHAR NOT NULL, gpus DOUBLE NOT NULL,
    gpu_indices INTEGER[],              -- NULL where the source tells only a count
    source INTEGER NOT NULL
);
CREATE TABLE gpu_samples (              -- one row a (time, machine); the view gpu_util has one a GPU
    cluster VARCHAR NOT NULL, ts TIMESTAMPTZ NOT NULL, machine VARCHAR NOT NULL,
    util FLOAT[] NOT NULL,              -- percent, element i+1 is GPU i; NULL where the source says NA
    mem_mb FLOAT[],
    source INTEGER NOT NULL
);
CREATE VIEW gpu_util AS
    SELECT cluster, ts, machine, unnest(range(len(util)))::INTEGER AS gpu, unnest(util) AS util,
           unnest(coalesce(mem_mb, list_resize([]::FLOAT[], len(util)))) AS mem_mb, source
    FROM gpu_samples;
CREATE TABLE host_util (                -- a source fills the columns it has
    cluster VARCHAR NOT NULL, ts TIMESTAMPTZ NOT NULL, machine VARCHAR NOT NULL,
    cpu_pct FLOAT, mem_total_kb DOUBLE, mem_free_kb DOUBLE,
    source INTEGER NOT NULL
);
CREATE TABLE queue_samples (cluster VARCHAR NOT NULL, ts TIMESTAMPTZ NOT NULL, job VARCHAR NOT NULL, reason VARCHAR NOT NULL, source INTEGER NOT NULL);
CREATE TABLE job_logs (cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, attempt INTEGER, stream VARCHAR NOT NULL, line_no BIGINT NOT NULL, ts TIMESTAMPTZ, text VARCHAR NOT NULL, source INTEGER NOT NULL);
CREATE TABLE progress (cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, step BIGINT, epoch DOUBLE, ts TIMESTAMPTZ, loss DOUBLE, source INTEGER NOT NULL);
CREATE TABLE traffic (cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, ts TIMESTAMPTZ NOT NULL, bytes_read DOUBLE NOT NULL, source INTEGER NOT NULL);
