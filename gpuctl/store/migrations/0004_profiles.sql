-- What is known of jobs for predicting their run time and what it costs to suspend them. Durations are seconds.

ALTER TABLE traffic ADD COLUMN seconds DOUBLE;           -- bytes_read came within this span, up to ts; NULL: not known

CREATE TABLE traffic_averages (         -- traffic of the workers of jobs, averaged over their lives: no series
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, task VARCHAR,
    instance VARCHAR,                   -- PAI's inst_id: the job, as its tables of workloads call it
    worker VARCHAR, machine VARCHAR, gpu VARCHAR,
    read_bytes DOUBLE, write_bytes DOUBLE,      -- over the network, in a span that PAI does not tell; NULL: not told
    read_count DOUBLE, write_count DOUBLE,
    source INTEGER NOT NULL
);
CREATE TABLE profiles (                 -- jobs whose shape is known, one row each
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, model VARCHAR NOT NULL, family VARCHAR, "user" VARCHAR,
    batch BIGINT,                       -- samples a step and GPU
    samples BIGINT,                     -- samples an epoch
    gpus DOUBLE, epochs BIGINT,
    dataset_bytes DOUBLE,               -- read in one epoch
    checkpoint_bytes DOUBLE,
    epoch_s DOUBLE, first_epoch_s DOUBLE,       -- as measured; epoch_s without the first one
    run_time_s DOUBLE,
    cached BOOLEAN,                     -- true: later epochs are read from memory and not over the network
    source INTEGER NOT NULL
);
CREATE TABLE suspensions (              -- suspensions of jobs as measured, one row each
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, model VARCHAR,
    mode VARCHAR CHECK (mode IN ('epoch', 'now', 'abort')),
    -- epoch: the running epoch is finished first; now: a checkpoint is written at once; abort: the epoch is lost
    gpus DOUBLE, checkpoint_bytes DOUBLE, dataset_bytes DOUBLE,
    epoch_s DOUBLE,
    epoch_left_s DOUBLE,                -- of the running epoch, when the job was told to stop
    suspend_s DOUBLE NOT NULL,          -- until its GPUs were free
    resume_s DOUBLE NOT NULL,           -- from its start until it went on with its work
    loss_s DOUBLE,                      -- without progress, in all
    source INTEGER NOT NULL
);
