-- GPU telemetry of sites: samples by series, the identity of GPUs, events, summaries, and what they come to for each job.

CREATE TABLE gpu_series (               -- one row a series: what all of its samples have in common
    cluster VARCHAR NOT NULL, series BIGINT NOT NULL,
    reader VARCHAR NOT NULL,            -- which tool measured: dcgm, nvidia-smi, dmon, telegraf ...
    machine VARCHAR,                    -- NULL: only the UUID tells
    gpu INTEGER,                        -- NVML index; NULL: not stated
    uuid VARCHAR,
    instance VARCHAR,                   -- MIG: id of the GPU instance; NULL: the whole GPU
    job VARCHAR,                        -- id of the batch job, as a label states it
    slot VARCHAR,                       -- number of the GPU within the job, where the source has no other
    util_kind VARCHAR NOT NULL,         -- kernel: a kernel ran; engine: engines of the instance; sm: multiprocessors
    node_clock BOOLEAN NOT NULL,        -- times are of the node's own clock
    source INTEGER NOT NULL
);
CREATE TABLE gpu_readings (             -- one row a sample; a source fills the columns it has
    cluster VARCHAR NOT NULL, ts TIMESTAMPTZ NOT NULL, series BIGINT NOT NULL,
    util FLOAT, mem_mb FLOAT, power_w FLOAT, energy_j DOUBLE, sm_pct FLOAT, tensor_pct FLOAT,
    source INTEGER NOT NULL
);
CREATE TABLE gpu_devices (              -- every map of index, UUID, PCI address and minor number that a source states
    cluster VARCHAR NOT NULL, machine VARCHAR, gpu INTEGER, uuid VARCHAR, pci_bus_id VARCHAR, minor INTEGER,
    instance VARCHAR, profile VARCHAR, model VARCHAR, mem_mb DOUBLE, from_ts TIMESTAMPTZ, to_ts TIMESTAMPTZ,
    source INTEGER NOT NULL
);
CREATE TABLE gpu_numbering (            -- gres.conf: which device file the scheduler's GPU number idx stands for
    cluster VARCHAR NOT NULL, machine VARCHAR NOT NULL, idx INTEGER NOT NULL,
    minor INTEGER NOT NULL,             -- N of /dev/nvidiaN
    source INTEGER NOT NULL
);
CREATE TABLE gpu_events (               -- faults that the driver or a counter shows
    cluster VARCHAR NOT NULL, ts TIMESTAMPTZ NOT NULL,
    since_ts TIMESTAMPTZ,               -- a gauge or counter: its sample before; the event lies between the two
    machine VARCHAR, gpu INTEGER, uuid VARCHAR, pci_bus_id VARCHAR, instance VARCHAR,
    signal VARCHAR NOT NULL,            -- xid, ecc_dbe, remap, throttle, nvlink, pcie, lost
    code INTEGER,                       -- xid: its number
    value DOUBLE, text VARCHAR, pid VARCHAR,
    origin VARCHAR NOT NULL,            -- log | gauge | counter
    source INTEGER NOT NULL
);
CREATE TABLE job_gpu_summary (          -- what a source states of a job's use of a GPU as one figure
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL,
    start_ts TIMESTAMPTZ,               -- start of the attempt; NULL: not stated
    machine VARCHAR, gpu VARCHAR,       -- as the source numbers it (jobstats: minor number); NULL: all GPUs together
    util_mean DOUBLE, util_peak DOUBLE, mem_max_mb DOUBLE, run_s DOUBLE,
    origin VARCHAR NOT NULL,            -- jobstats | dcgmi | gpustats | step
    note VARCHAR,                       -- short, none: why there is no figure
    source INTEGER NOT NULL
);

-- what is computed of all this after an ingest (gpuctl.analyze.gpu_usage)
CREATE TABLE job_gpu_usage (
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL,
    gpu_util_mean DOUBLE, gpu_util_coverage DOUBLE, gpus_unused INTEGER, idle_gpu_h DOUBLE, gpu_mem_max_mb DOUBLE, energy_kwh DOUBLE,
    gpu_util_low DOUBLE, gpu_util_high DOUBLE, withheld VARCHAR, join_by VARCHAR, interval_s DOUBLE,
    sm_mean DOUBLE, tensor_mean DOUBLE, gpu_mem_mean_mb DOUBLE, samples BIGINT NOT NULL,
    gpu_hours DOUBLE,                   -- held, over all attempts
    util_kind VARCHAR,                  -- the counter: kernel, engine, sm
    readers VARCHAR,                    -- the tools, separated by commas
    running BOOLEAN NOT NULL            -- figures up to the last sample
);
CREATE TABLE gpu_use_hours (            -- use of the GPUs of an attempt on a node in an hour
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, attempt INTEGER NOT NULL, machine VARCHAR NOT NULL,
    hour TIMESTAMPTZ NOT NULL, colocated BOOLEAN NOT NULL,
    seconds BIGINT NOT NULL,            -- GPU-seconds that samples stand for, each for its interval
    total BIGINT NOT NULL               -- of their utilization, millionths of a percent times seconds
);
CREATE TABLE gpu_use_tenths (           -- the same by utilization in tenths of a percent
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, attempt INTEGER NOT NULL, colocated BOOLEAN NOT NULL,
    tenth SMALLINT NOT NULL, seconds BIGINT NOT NULL, total BIGINT NOT NULL
);
CREATE TABLE gpu_clocks (               -- clocks of nodes against the scheduler's
    cluster VARCHAR NOT NULL, machine VARCHAR NOT NULL,
    offset_s DOUBLE NOT NULL,           -- the clock is ahead by this; the lower end of the range
    high_s DOUBLE NOT NULL,             -- the upper end
    cost_s DOUBLE NOT NULL,             -- GPU-seconds of activity outside of jobs, after the correction
    cost_uncorrected_s DOUBLE NOT NULL,
    boundaries INTEGER NOT NULL,        -- ends of jobs that the estimate rests on
    corrected BOOLEAN NOT NULL
);
CREATE TABLE gpu_faults (               -- events of GPUs, each once, and who held the GPU
    cluster VARCHAR NOT NULL, ts TIMESTAMPTZ NOT NULL, machine VARCHAR, gpu INTEGER, instance VARCHAR,
    signal VARCHAR NOT NULL, code INTEGER, text VARCHAR, origin VARCHAR NOT NULL,
    jobs VARCHAR[] NOT NULL,            -- the jobs that held it then; of a node whose GPUs are not known one by one, all of them
    attempts INTEGER[] NOT NULL,        -- their attempts
    source INTEGER NOT NULL
);
CREATE TABLE gpu_usage_basis (          -- options and counts of the computation
    cluster VARCHAR NOT NULL, what VARCHAR NOT NULL, machine VARCHAR, value DOUBLE
);

DROP VIEW gpu_util;
CREATE VIEW gpu_util AS
    SELECT cluster, ts, machine, unnest(range(len(util)))::INTEGER AS gpu, unnest(util) AS util,
           unnest(coalesce(mem_mb, list_resize([]::FLOAT[], len(util)))) AS mem_mb,
           NULL::VARCHAR AS instance, NULL::FLOAT AS sm_pct, NULL::FLOAT AS tensor_pct, NULL::FLOAT AS power_w, NULL::DOUBLE AS energy_j,
           NULL::VARCHAR AS job, NULL::VARCHAR AS uuid, 'kernel' AS util_kind, source
    FROM gpu_samples
    UNION ALL BY NAME
    SELECT r.cluster, r.ts, s.machine, s.gpu, r.util, r.mem_mb, s.instance, r.sm_pct, r.tensor_pct, r.power_w, r.energy_j, s.job, s.uuid,
           s.util_kind, r.source
    FROM gpu_readings AS r JOIN gpu_series AS s ON s.cluster = r.cluster AND s.series = r.series;
