-- GPU-seconds with samples of each job by hour (UTC), and the sum of their utilization in whole millionths of a percent (0: all of its GPUs at 0 %).
WITH minutes AS (
    SELECT p.job, p.hour, unnest(list_select(s.util, p.lanes)) AS util
    FROM base_gpu_samples AS s JOIN base_util_pieces AS p ON p.machine = s.machine AND p.hour_no = floor(epoch(s.ts) / 3600) AND s.ts >= p.from_ts AND s.ts < p.to_ts
    WHERE s.cluster = $cluster
)
SELECT job, hour, sum(sampled_s) AS sampled_s, sum(total) AS total
FROM (
    SELECT job, hour, 60.0 AS sampled_s, (util * 1e6)::BIGINT AS total FROM minutes WHERE util IS NOT NULL
    UNION ALL
    SELECT h.job, h.hour, h.seconds, h.total
    FROM gpu_use_hours AS h JOIN job_gpu_usage AS u ON u.cluster = h.cluster AND u.job = h.job
    WHERE h.cluster = $cluster AND u.gpu_util_mean IS NOT NULL
)
GROUP BY job, hour
