-- title: Run time by gang size
-- section: runtime
-- order: 10
-- question: How long do jobs run?
-- population: {runs} job{runs||s} of {jobs} with a known run time. Size buckets by GPUs.
-- key_columns: size_bucket, runs, mean_min, p50_min, p90_min, p95_min, p99_min
-- column: size_bucket | GPUs | GPUs of the gang; 'all' is every size
-- column: runs | runs | how many
-- column: mean_min | min | mean run time
-- column: p10_min | min | 10th percentile
-- column: p25_min | min | 25th percentile
-- column: p50_min | min | median
-- column: p75_min | min | 75th percentile
-- column: p90_min | min | 90th percentile
-- column: p95_min | min | 95th percentile
-- column: p99_min | min | 99th percentile
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS runs,
       sum(seconds::DECIMAL(28, 6))::DOUBLE / count(*) / 60 AS mean_min, quantile_cont(minutes, 0.10) AS p10_min, quantile_cont(minutes, 0.25) AS p25_min,
       quantile_cont(minutes, 0.50) AS p50_min, quantile_cont(minutes, 0.75) AS p75_min, quantile_cont(minutes, 0.90) AS p90_min,
       quantile_cont(minutes, 0.95) AS p95_min, quantile_cont(minutes, 0.99) AS p99_min
FROM base_runs
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
