-- What published traces tell that logs of schedulers do not. Times are UTC, durations are seconds.

ALTER TABLE clusters ADD COLUMN epoch VARCHAR;
-- of its times: real | shifted (by a constant: hours and weekdays are right, dates are not) | relative (seconds from a start of
-- the trace's own, counted from 1970: no dates); NULL: real
ALTER TABLE clusters ADD COLUMN unit VARCHAR;           -- what a row of jobs is: pod | instance; NULL: a job

ALTER TABLE containers ADD COLUMN task VARCHAR;
ALTER TABLE containers ADD COLUMN state VARCHAR;
ALTER TABLE containers ADD COLUMN source_state VARCHAR;

CREATE TABLE service_load (             -- requests to a service, by spans of time
    cluster VARCHAR NOT NULL, service VARCHAR NOT NULL,
    ts TIMESTAMPTZ NOT NULL,            -- start of the span
    span_s DOUBLE NOT NULL,             -- 0: one request
    requests DOUBLE NOT NULL,           -- in the span; not whole where the source tells a rate
    prompt_tokens BIGINT, output_tokens BIGINT, images BIGINT,  -- of all of them; NULL: not told
    failed DOUBLE,                      -- requests that got no answer; NULL: not told
    source INTEGER NOT NULL
);
CREATE TABLE quota_history (            -- GPUs of queues over time
    cluster VARCHAR NOT NULL, queue VARCHAR NOT NULL, from_ts TIMESTAMPTZ NOT NULL, to_ts TIMESTAMPTZ NOT NULL,
    gpus DOUBLE NOT NULL, source INTEGER NOT NULL
);
CREATE TABLE trace_parts (              -- of traces that tell of a job in several tables: rows that jobs are made of
    cluster VARCHAR NOT NULL, kind VARCHAR NOT NULL,    -- job | task | group
    job VARCHAR,                        -- the trace's key of a job
    instance VARCHAR,                   -- its second one: PAI's inst_id
    task VARCHAR, name VARCHAR, "user" VARCHAR, "group" VARCHAR,
    state VARCHAR, source_state VARCHAR, start_ts TIMESTAMPTZ, end_ts TIMESTAMPTZ,
    instances DOUBLE, gpus DOUBLE, cpus DOUBLE, mem_mb DOUBLE,  -- of one instance, but for their number
    gpu_type VARCHAR, source INTEGER NOT NULL
);
CREATE TABLE machine_averages (         -- of machines over the lives of workers on them: no series
    cluster VARCHAR NOT NULL, machine VARCHAR NOT NULL, worker VARCHAR, from_ts TIMESTAMPTZ, to_ts TIMESTAMPTZ,
    cpu_pct DOUBLE, gpu_pct DOUBLE,     -- gpu_pct: of the source's own scale, which passes 100
    load_1 DOUBLE, net_receive DOUBLE, workers DOUBLE, source INTEGER NOT NULL
);
