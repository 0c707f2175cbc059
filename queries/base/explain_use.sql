-- What telemetry says of the GPUs that the attempts of job $job held; of whole nodes where it is not known which GPUs.
WITH held AS (
    SELECT p.attempt, p.machine, p.gpu_indices, p.start_ts, p.held_until_ts FROM base_placements AS p WHERE p.job = $job
),
-- rows that repeat another one are counted once
seen AS (
    SELECT DISTINCT h.*, s.ts, s.util, s.mem_mb
    FROM gpu_samples AS s JOIN held AS h ON h.machine = s.machine AND s.ts >= h.start_ts AND s.ts < h.held_until_ts
    WHERE s.cluster = $cluster
),
samples AS (
    SELECT attempt, unnest(CASE WHEN gpu_indices IS NULL THEN util ELSE list_transform(gpu_indices, lambda i: util[i + 1]) END) AS util,
           gpu_indices IS NULL AS whole
    FROM seen
),
-- what an ingest made of the series of its GPUs, GPU-minutes
tenths AS (
    SELECT attempt, tenth, sum(seconds) AS seconds, sum(total) AS total,
           sum(sum(seconds)) OVER (PARTITION BY attempt ORDER BY tenth) AS before, sum(sum(seconds)) OVER (PARTITION BY attempt) AS whole
    FROM gpu_use_tenths
    WHERE cluster = $cluster AND job = $job
    GROUP BY attempt, tenth
)
SELECT * FROM (
SELECT attempt, count(util) AS samples, avg(util) AS mean_pct, median(util) AS p50_pct, 100.0 * count(*) FILTER (util = 0) / nullif(count(util), 0) AS idle_pct,
       bool_or(whole) AS whole_machines
FROM samples
GROUP BY attempt
HAVING count(util) > 0
    UNION ALL
    SELECT attempt, round(sum(seconds) / 60)::BIGINT, sum(total)::DOUBLE / sum(seconds) / 1e6, min(tenth) FILTER (2 * before >= whole) / 10,
           100.0 * coalesce(sum(seconds) FILTER (tenth = 0), 0) / sum(seconds), false
    FROM tenths
    GROUP BY attempt
)
ORDER BY attempt
