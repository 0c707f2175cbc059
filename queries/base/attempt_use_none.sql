-- Instead of attempt_use where the cluster has no GPU telemetry.
SELECT NULL::VARCHAR AS job, NULL::INTEGER AS attempt, NULL::BOOLEAN AS colocated, NULL::BIGINT AS samples, NULL::DOUBLE AS total
WHERE false
