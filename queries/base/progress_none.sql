-- Instead of progress where the cluster's logs tell of no training progress.
SELECT NULL::VARCHAR AS job, NULL::DOUBLE AS pos, NULL::VARCHAR AS unit, NULL::VARCHAR AS metric, NULL::BOOLEAN AS valid,
       NULL::INTEGER AS attempt, NULL::DOUBLE AS value, NULL::TIMESTAMPTZ AS ts, NULL::DOUBLE AS elapsed_s, NULL::BIGINT AS point
WHERE false
