-- What tells how reliable nodes are, and what jobs kept of their work when they were interrupted.
CREATE TABLE node_list (                -- a site's own list of nodes
    cluster VARCHAR NOT NULL, machine VARCHAR NOT NULL, gpu_type VARCHAR, gpus INTEGER, rack VARCHAR,
    installed_ts TIMESTAMPTZ,           -- when the node came into service
    source INTEGER NOT NULL
);
CREATE TABLE submit_options (           -- options of the command that submitted a job
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL,
    option VARCHAR NOT NULL,            -- dependency | exclude | array
    value VARCHAR NOT NULL, source INTEGER NOT NULL
);
CREATE TABLE training_marks (           -- lines of a job's log about checkpoints and the time of an iteration
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, attempt INTEGER, stream VARCHAR, line_no BIGINT, ts TIMESTAMPTZ,
    kind VARCHAR NOT NULL,              -- saved | saving | loaded | iteration
    step BIGINT,
    value DOUBLE,                       -- of kind iteration: seconds
    source INTEGER NOT NULL
);
