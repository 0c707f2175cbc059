-- GPU samples (one a GPU and minute) of each job by hour (UTC), and the sum of their utilization in whole millionths of a percent.
SELECT job, ts, count(*) AS samples, sum((util * 1e6)::BIGINT) AS total
FROM (
    SELECT p.job, p.ts, unnest(list_select(s.util, p.lanes)) AS util
    FROM base_gpu_samples AS s
    JOIN (SELECT *, hour AS ts FROM base_util_pieces) AS p ON p.machine = s.machine AND p.hour_no = floor(epoch(s.ts) / 3600) AND s.ts >= p.from_ts AND s.ts < p.to_ts
    WHERE s.cluster = $cluster
)
WHERE util IS NOT NULL
GROUP BY ALL
