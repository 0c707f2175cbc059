-- title: GPU utilization on dedicated and shared nodes
-- section: utilization
-- order: 30
-- question: Does sharing a node with another job cost utilization?
-- population: {util_samples} sample{util_samples||s}, one per held GPU and minute with a telemetry row that is not NA; {telemetry_note}. A sample is colocated if another attempt held GPUs of the same node in that minute. Percentiles to 0.1 points.
-- needs: telemetry
-- column: gpus | GPUs | GPUs of the gang
-- column: colocation | - | dedicated: no other attempt on that node then; colocated: at least one
-- column: gpu_minutes | GPU-min | samples
-- column: mean_pct | % | mean utilization
-- column: p50_pct | % | median
-- column: p90_pct | % | 90th percentile
-- column: idle_pct | % | share of samples below 0.05 %
-- chart: grouped x=gpus series=colocation y=mean_pct,p50_pct weight=gpu_minutes
--   title="GPU utilization on dedicated and shared nodes" y_title="GPU utilization, %"
WITH folded AS (
    SELECT gpus, colocated, tenth, sum(samples) AS samples, sum(total) AS total FROM base_util_histogram GROUP BY ALL
),
ranked AS (
    SELECT *, sum(samples) OVER (PARTITION BY gpus, colocated ORDER BY tenth) AS upto,
           sum(samples) OVER (PARTITION BY gpus, colocated) AS n
    FROM folded
)
SELECT gpus, CASE WHEN colocated THEN 'colocated' ELSE 'dedicated' END AS colocation, any_value(n)::BIGINT AS gpu_minutes,
       sum(total) / sum(samples) / 1e6 AS mean_pct,
       min(tenth) FILTER (upto >= 0.50 * n) / 10 AS p50_pct, min(tenth) FILTER (upto >= 0.90 * n) / 10 AS p90_pct,
       100.0 * coalesce(sum(samples) FILTER (tenth = 0), 0) / any_value(n) AS idle_pct
FROM ranked
GROUP BY gpus, colocated
ORDER BY gpus, colocated
