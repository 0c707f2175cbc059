-- What jobs printed: one row a log, its kept lines, its training progress.
CREATE TABLE job_outputs (
    cluster VARCHAR NOT NULL, job VARCHAR NOT NULL,
    attempt INTEGER,                    -- 0-based; NULL: the log does not say (one file for all attempts): the last one
    stream VARCHAR NOT NULL,            -- stdout | stderr | output (both in one) | syslog | ..., with container or rank after a colon where there are several
    path VARCHAR NOT NULL,              -- in the directory given
    bytes BIGINT NOT NULL,              -- decompressed
    lines BIGINT NOT NULL,
    long_lines BIGINT NOT NULL,         -- over the limit: looked at in pieces
    steps BIGINT NOT NULL,              -- lines of training progress
    signatures VARCHAR NOT NULL,        -- version of the signature table that kept the lines
    named VARCHAR,                      -- the job as the log's place spells it, e.g. 12_3, before the job's own id was looked up
    source INTEGER NOT NULL
);
ALTER TABLE job_logs ADD COLUMN signature VARCHAR;       -- NULL: kept for it may tell something, no signature found it
ALTER TABLE job_logs ADD COLUMN rank INTEGER;            -- of the process that printed it, where the line says
ALTER TABLE job_logs ADD COLUMN ordinary_after BIGINT;   -- lines of ordinary output that follow
ALTER TABLE job_logs ADD COLUMN work_after BOOLEAN;      -- training went on, or the program says it recovered or ended well
ALTER TABLE job_logs ADD COLUMN count BIGINT;            -- lines of the log that the signature found
ALTER TABLE progress ADD COLUMN attempt INTEGER;
ALTER TABLE progress ADD COLUMN stream VARCHAR;
ALTER TABLE progress ADD COLUMN line_no BIGINT;
ALTER TABLE progress ADD COLUMN epochs DOUBLE;           -- of how many
ALTER TABLE progress ADD COLUMN steps BIGINT;
ALTER TABLE progress ADD COLUMN metric VARCHAR;          -- which number loss is, as printed: loss, val_loss, eval_loss ...
ALTER TABLE progress ADD COLUMN elapsed_s DOUBLE;        -- since the bar or program began, as printed
