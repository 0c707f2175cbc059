-- What Slurm and YARN tell and Philly does not. Times are UTC.

ALTER TABLE jobs ADD COLUMN partition VARCHAR;           -- Slurm partition; queue is the queue that quotas are of
ALTER TABLE jobs ADD COLUMN derived_exit_code INTEGER;   -- highest exit code of its steps (Slurm DerivedExitCode)
ALTER TABLE jobs ADD COLUMN derived_exit_signal INTEGER;

ALTER TABLE attempts ADD COLUMN eligible_ts TIMESTAMPTZ; -- when nothing but other jobs kept it from starting
ALTER TABLE attempts ADD COLUMN source_state VARCHAR;
ALTER TABLE attempts ADD COLUMN started_by VARCHAR;      -- main | backfill, where the scheduler says
ALTER TABLE attempts ADD COLUMN am_start_ts TIMESTAMPTZ; -- YARN: application master allocated
ALTER TABLE attempts ADD COLUMN first_container_ts TIMESTAMPTZ; -- YARN: first worker container allocated

ALTER TABLE placements ADD COLUMN estimated BOOLEAN;     -- true: GPUs split evenly over the machines, for want of better

CREATE TABLE machine_events (           -- times at which a machine was not to be had
    cluster VARCHAR NOT NULL, machine VARCHAR NOT NULL, from_ts TIMESTAMPTZ NOT NULL, to_ts TIMESTAMPTZ,
    state VARCHAR NOT NULL, reason VARCHAR, source INTEGER NOT NULL
);
CREATE TABLE machine_samples (          -- what the scheduler itself said of a machine at an instant
    cluster VARCHAR NOT NULL, ts TIMESTAMPTZ NOT NULL, machine VARCHAR NOT NULL,
    gpus_used DOUBLE, state VARCHAR, source INTEGER NOT NULL
);
CREATE TABLE containers (               -- YARN containers, one row each
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, attempt INTEGER NOT NULL, container VARCHAR NOT NULL,
    machine VARCHAR, gpus DOUBLE, cpus INTEGER, mem_mb BIGINT, is_master BOOLEAN NOT NULL,
    allocated_ts TIMESTAMPTZ, running_ts TIMESTAMPTZ, end_ts TIMESTAMPTZ,
    exit_code INTEGER, reason VARCHAR, source INTEGER NOT NULL
);
CREATE TABLE field_sources (            -- where a field came from, where several sources tell of the same job
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, field VARCHAR NOT NULL, source INTEGER NOT NULL
);

ALTER TABLE attempts ADD COLUMN allocated_ts TIMESTAMPTZ; -- where it held its GPUs before start_ts (node boot, prolog)
ALTER TABLE attempts ADD COLUMN preempted_by VARCHAR;     -- the job that its GPUs went to, where the source says

ALTER TABLE queues ADD COLUMN qos VARCHAR;               -- Slurm: the QOS whose limits hold for the partition as a whole

ALTER TABLE queue_samples ADD COLUMN state VARCHAR;      -- the source's word: PENDING, CONFIGURING, COMPLETING ...
ALTER TABLE queue_samples ADD COLUMN detail VARCHAR;     -- what the source says after the reason's code
ALTER TABLE queue_samples ADD COLUMN array_job VARCHAR;  -- of array tasks; job is array_job until the task has an id
ALTER TABLE queue_samples ADD COLUMN array_task VARCHAR;

CREATE TABLE exact_placements (         -- GPUs of a job on a machine as its scheduler told; attempts are found by the times
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, submit_ts TIMESTAMPTZ, start_ts TIMESTAMPTZ,
    machine VARCHAR NOT NULL, gpus DOUBLE NOT NULL, gpu_indices INTEGER[], source INTEGER NOT NULL
);
CREATE TABLE job_events (               -- what a scheduler's own log says happened to a job
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, ts TIMESTAMPTZ NOT NULL, event VARCHAR NOT NULL,
    since_ts TIMESTAMPTZ,               -- configured: when its machines were allocated
    other_job VARCHAR,                  -- preempted: the job that took its place
    machine VARCHAR,                    -- node_fail: the machine
    source INTEGER NOT NULL
);
CREATE TABLE gpu_limits (               -- limits on GPUs as configured, one row a number
    cluster VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,             -- cluster | account | user | qos
    account VARCHAR, parent VARCHAR, "user" VARCHAR, partition VARCHAR, qos VARCHAR,
    limit_kind VARCHAR NOT NULL,        -- group | job | node | per_user | per_account
    gpu_type VARCHAR,                   -- NULL: GPUs of all types together
    gpus DOUBLE NOT NULL, source INTEGER NOT NULL
);
CREATE TABLE settings (                 -- what a scheduler was told that bears on its decisions
    cluster VARCHAR NOT NULL, name VARCHAR NOT NULL, value VARCHAR NOT NULL, source INTEGER NOT NULL
);
CREATE TABLE queue_machines (           -- machines that the jobs of a queue may run on; no rows: all of them
    cluster VARCHAR NOT NULL, queue VARCHAR NOT NULL, machine VARCHAR NOT NULL
);

-- YARN tells of one application in many places; what each place says is kept, and jobs, attempts and containers are made of it.
CREATE TABLE yarn_facts (
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL,
    attempt INTEGER, container VARCHAR,         -- NULL, NULL: about the application; NULL container: about an attempt
    origin VARCHAR NOT NULL,                    -- summary | rest | ats | epoch | state | audit | nm;
                                                -- of the daemon itself, as job ResourceManager: manager | node | capacity | limit
    local BOOLEAN NOT NULL,                     -- the times are of the host's own clock, else UTC
    name VARCHAR, "user" VARCHAR, queue VARCHAR, state VARCHAR, final_status VARCHAR, priority BIGINT,
    submit_ts TIMESTAMP, launch_ts TIMESTAMP, allocated_ts TIMESTAMP, running_ts TIMESTAMP, end_ts TIMESTAMP,
    gpus DOUBLE, cpus INTEGER, mem_mb BIGINT, gpu_seconds DOUBLE,
    machine VARCHAR, is_master BOOLEAN, exit_code INTEGER, reason VARCHAR,
    source INTEGER NOT NULL
);
CREATE TABLE yarn_built (               -- what the rows of a job were made of; where that has changed they are made anew
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, sources INTEGER[] NOT NULL, context VARCHAR NOT NULL
);
ALTER TABLE attempts ALTER COLUMN gpus DROP NOT NULL;    -- NULL: the source cannot tell
ALTER TABLE attempts ALTER COLUMN servers DROP NOT NULL;
