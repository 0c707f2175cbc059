-- Sums are of whole millionths of a percent, so that they do not depend on the order in which threads add.
-- One pass over the telemetry: samples (one a GPU and minute) by gang size, servers, job state, colocation and utilization in tenths of a percent.
SELECT gpus, servers, state, colocated, tenth, count(*) AS samples, sum((util * 1e6)::BIGINT) AS total
FROM (
    SELECT gpus, servers, state, colocated, util, round(util * 10)::SMALLINT AS tenth
    FROM (
        SELECT p.gpus, p.servers, p.state, p.colocated, unnest(list_select(s.util, p.lanes)) AS util
        FROM gpu_samples AS s
        JOIN base_util_pieces AS p
          ON p.machine = s.machine AND p.hour_no = floor(epoch(s.ts) / 3600) AND s.ts >= p.from_ts AND s.ts < p.to_ts
        WHERE s.cluster = $cluster
    )
    WHERE util IS NOT NULL
)
GROUP BY ALL
