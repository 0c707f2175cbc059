-- Instead of training where the cluster's logs tell of no training progress.
SELECT NULL::VARCHAR AS job, NULL::VARCHAR AS queue, NULL::VARCHAR AS state, NULL::DOUBLE AS gpus, NULL::BIGINT AS lines,
       NULL::BIGINT AS metrics, NULL::BIGINT AS epochs, NULL::DOUBLE AS epochs_planned, NULL::VARCHAR AS unit, NULL::VARCHAR AS metric,
       NULL::BOOLEAN AS valid, NULL::BIGINT AS points, NULL::BIGINT AS points_not_finite, NULL::DOUBLE AS first_value,
       NULL::DOUBLE AS lowest_value, NULL::DOUBLE AS last_value, NULL::BIGINT AS lowest_point, NULL::BIGINT AS near_point,
       NULL::BOOLEAN AS usable, NULL::VARCHAR AS placed, NULL::DOUBLE AS gpu_s, NULL::DOUBLE AS after_gpu_s
WHERE false
