-- Results that were kept by name (--keep), to be reported later.
CREATE TABLE results (
    name     VARCHAR NOT NULL PRIMARY KEY,
    kind     VARCHAR NOT NULL,          -- analyze | replay | predict runtime | predict overhead | train runtime | train overhead
    made_at  TIMESTAMPTZ NOT NULL,
    gpuctl   VARCHAR NOT NULL,          -- version that made it
    command  VARCHAR NOT NULL,          -- command line, as the user gave it
    bytes    BIGINT NOT NULL,           -- of the document, decompressed
    document BLOB NOT NULL              -- what --json writes of the result with all tables, in one zstd frame
);
