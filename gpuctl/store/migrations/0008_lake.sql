-- Telemetry that is kept as Parquet files beside the store, by cluster and day.

CREATE TABLE lake (                     -- no row: all telemetry is in the tables; else one
    id VARCHAR NOT NULL,                -- the same is in the lake's own file: it belongs to this store
    location VARCHAR NOT NULL,          -- of its directory, from the store's
    writes BIGINT NOT NULL              -- times that the store was opened for writing with it
);
CREATE TABLE lake_files (               -- the files that are part of the store; whatever else lies there is not
    table_name VARCHAR NOT NULL, cluster VARCHAR NOT NULL, file VARCHAR NOT NULL,
    rows BIGINT NOT NULL, bytes BIGINT NOT NULL, sha256 VARCHAR NOT NULL,
    source INTEGER NOT NULL
);
