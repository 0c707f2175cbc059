-- Instead of util_histogram where the cluster has no GPU telemetry.
SELECT NULL::INTEGER AS gpus, NULL::INTEGER AS servers, NULL::VARCHAR AS state, NULL::BOOLEAN AS colocated, NULL::SMALLINT AS tenth,
       NULL::BIGINT AS samples, NULL::HUGEINT AS total
WHERE false
