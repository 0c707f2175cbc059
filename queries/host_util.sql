-- title: Host CPU and memory
-- section: utilization
-- order: 50
-- question: How much CPU and memory do the nodes use?
-- population: {host_samples} sample{host_samples||s}, one per node and minute; NA and a total memory of 0 are left out. Memory used is 100 (total - free) / total, with the page cache counted as used. Percentiles to 0.1 points.
-- needs: host telemetry
-- column: measure | - | cpu or memory
-- column: samples | rows | node-minutes
-- column: mean_pct | % | mean
-- column: p10_pct | % | 10th percentile
-- column: p50_pct | % | median
-- column: p90_pct | % | 90th percentile
WITH ranked AS (
    SELECT *, sum(samples) OVER (PARTITION BY measure ORDER BY tenth) AS upto, sum(samples) OVER (PARTITION BY measure) AS n
    FROM base_host_histogram
)
SELECT measure, any_value(n)::BIGINT AS samples, sum(total) / sum(samples) / 1e6 AS mean_pct,
       min(tenth) FILTER (upto >= 0.10 * n) / 10 AS p10_pct, min(tenth) FILTER (upto >= 0.50 * n) / 10 AS p50_pct,
       min(tenth) FILTER (upto >= 0.90 * n) / 10 AS p90_pct
FROM ranked
GROUP BY measure
ORDER BY measure
