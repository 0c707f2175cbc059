-- What all GPU samples of a cluster come to, so that the first screen need not read them: base_util_histogram of gpuctl's own analysis.
CREATE TABLE util_histograms (
    cluster     VARCHAR NOT NULL,
    made_of     VARCHAR NOT NULL,       -- digest of the cluster's sources and of the SQL: of no use where they are others now
    gpus        INTEGER, servers INTEGER, state VARCHAR, colocated BOOLEAN,
    tenth       SMALLINT NOT NULL,      -- utilization in tenths of a percent
    samples     BIGINT NOT NULL,
    total       HUGEINT NOT NULL        -- of their utilization, millionths of a percent
);
