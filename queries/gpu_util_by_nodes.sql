-- title: GPU utilization by number of nodes
-- section: utilization
-- order: 20
-- question: Does spreading a gang over more nodes cost utilization?
-- population: {util_samples} sample{util_samples||s}, one per held GPU and minute with a telemetry row that is not NA; {telemetry_note}. Percentiles to 0.1 points.
-- needs: telemetry
-- column: gpus | GPUs | GPUs of the gang
-- column: nodes | nodes | nodes it was placed on
-- column: gpu_minutes | GPU-min | samples
-- column: mean_pct | % | mean utilization
-- column: p50_pct | % | median
-- column: p90_pct | % | 90th percentile
-- column: p95_pct | % | 95th percentile
-- column: idle_pct | % | share of samples below 0.05 %
-- chart: grouped x=gpus series=nodes y=mean_pct,p50_pct weight=gpu_minutes
--   title="GPU utilization by job size and nodes" y_title="GPU utilization, %"
WITH folded AS (
    SELECT gpus, servers, tenth, sum(samples) AS samples, sum(total) AS total FROM base_util_histogram GROUP BY ALL
),
ranked AS (
    SELECT *, sum(samples) OVER (PARTITION BY gpus, servers ORDER BY tenth) AS upto, sum(samples) OVER (PARTITION BY gpus, servers) AS n
    FROM folded
)
SELECT gpus, servers AS nodes, any_value(n)::BIGINT AS gpu_minutes, sum(total) / sum(samples) / 1e6 AS mean_pct,
       min(tenth) FILTER (upto >= 0.50 * n) / 10 AS p50_pct, min(tenth) FILTER (upto >= 0.90 * n) / 10 AS p90_pct,
       min(tenth) FILTER (upto >= 0.95 * n) / 10 AS p95_pct,
       100.0 * coalesce(sum(samples) FILTER (tenth = 0), 0) / any_value(n) AS idle_pct
FROM ranked
GROUP BY gpus, servers
ORDER BY gpus, servers
