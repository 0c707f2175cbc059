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
