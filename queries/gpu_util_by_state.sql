-- title: GPU utilization by gang size and status
-- section: utilization
-- order: 10
-- question: How busy are the GPUs that jobs of each size hold, by final state of the job?
-- population: {util_samples} sample{util_samples||s}, one per held GPU and minute with a telemetry row that is not NA; {telemetry_note}. Percentiles to 0.1 points.
-- needs: telemetry
-- column: gpus | GPUs | GPUs of the gang; 'all' is every size
-- column: state | - | final state of the job; 'all' is the total
-- column: gpu_minutes | GPU-min | samples
-- column: mean_pct | % | mean utilization
-- column: p50_pct | % | median
-- column: p90_pct | % | 90th percentile
-- column: p95_pct | % | 95th percentile
-- column: idle_pct | % | share of samples below 0.05 %
WITH folded AS (
    SELECT CASE WHEN grouping(gpus) = 1 THEN 'all' ELSE gpus::VARCHAR END AS gpus,
           CASE WHEN grouping(state) = 1 THEN 'all' ELSE state END AS state,
           coalesce(gpus, 999999) AS size, tenth, sum(samples) AS samples, sum(total) AS total
    FROM base_util_histogram
    GROUP BY GROUPING SETS ((gpus, state, tenth), (gpus, tenth), (state, tenth), (tenth))
),
ranked AS (
    SELECT *, sum(samples) OVER (PARTITION BY gpus, state ORDER BY tenth) AS upto, sum(samples) OVER (PARTITION BY gpus, state) AS n
    FROM folded
)
SELECT gpus, state, any_value(n)::BIGINT AS gpu_minutes, sum(total) / sum(samples) / 1e6 AS mean_pct,
       min(tenth) FILTER (upto >= 0.50 * n) / 10 AS p50_pct, min(tenth) FILTER (upto >= 0.90 * n) / 10 AS p90_pct,
       min(tenth) FILTER (upto >= 0.95 * n) / 10 AS p95_pct,
       100.0 * coalesce(sum(samples) FILTER (tenth = 0), 0) / any_value(n) AS idle_pct
FROM ranked
GROUP BY gpus, state, size
ORDER BY size, state = 'all', state
