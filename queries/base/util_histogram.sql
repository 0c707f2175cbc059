-- Sums are of whole millionths of a percent, so that they do not depend on the order in which threads add.
-- One pass over the telemetry: samples (one a GPU and minute) by gang size, nodes, job state, colocation and utilization in tenths of a percent.
-- Those who hold GPUs are numbered by kind first: millions of samples are then counted by two numbers, in place of five columns.
WITH kinds AS MATERIALIZED (
    SELECT *, row_number() OVER ()::INTEGER AS kind FROM (SELECT DISTINCT gpus, servers, state, colocated FROM base_util_pieces)
),
pieces AS (
    SELECT k.kind, p.machine, p.hour_no, p.lanes, p.from_ts, p.to_ts
    FROM base_util_pieces AS p
    JOIN kinds AS k ON k.gpus IS NOT DISTINCT FROM p.gpus AND k.servers IS NOT DISTINCT FROM p.servers AND k.state IS NOT DISTINCT FROM p.state
                   AND k.colocated IS NOT DISTINCT FROM p.colocated
),
counted AS (
    SELECT kind, tenth, count(*) AS samples, sum((util * 1e6)::BIGINT) AS total
    FROM (
        SELECT kind, util, round(util * 10)::SMALLINT AS tenth
        FROM (
            SELECT p.kind, unnest(list_select(s.util, p.lanes)) AS util
            FROM base_gpu_samples AS s
            JOIN pieces AS p ON p.machine = s.machine AND p.hour_no = floor(epoch(s.ts) / 3600) AND s.ts >= p.from_ts AND s.ts < p.to_ts
            WHERE s.cluster = $cluster
        )
        WHERE util IS NOT NULL
    )
    GROUP BY ALL
)
SELECT gpus, servers, state, colocated, tenth, samples, total FROM counted JOIN kinds USING (kind)
