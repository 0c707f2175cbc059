-- GPU samples (one a GPU and minute) of each attempt, alone on all of its nodes and beside another attempt on one of them, and the sum of their utilization in
-- whole millionths of a percent. A gang on several nodes has a neighbour as soon as one of its nodes has.
WITH seen AS (
    SELECT p.job, p.attempt, p.servers, p.colocated, s.ts, unnest(list_select(s.util, p.lanes)) AS util
    FROM base_gpu_samples AS s
    JOIN base_util_pieces AS p ON p.machine = s.machine AND p.hour_no = floor(epoch(s.ts) / 3600) AND s.ts >= p.from_ts AND s.ts < p.to_ts
    WHERE s.cluster = $cluster
),
minutes AS (
    SELECT job, attempt, bool_or(colocated) AS colocated, count(*) AS samples, sum((util * 1e6)::BIGINT) AS total
    FROM seen
    WHERE servers > 1 AND util IS NOT NULL
    GROUP BY job, attempt, ts
)
SELECT job, attempt, colocated, sum(samples)::BIGINT AS samples, sum(total)::DOUBLE AS total FROM minutes GROUP BY ALL
UNION ALL
SELECT job, attempt, colocated, count(*), sum((util * 1e6)::BIGINT)::DOUBLE FROM seen WHERE servers = 1 AND util IS NOT NULL GROUP BY ALL
ORDER BY ALL
