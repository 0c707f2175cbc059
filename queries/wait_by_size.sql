-- title: Waits by gang size
-- section: queueing
-- question: How long do attempts wait for their GPUs?
-- population: {waits} waits; an attempt's wait begins with submission, a retry's with the end of the attempt before. {attempts_without_wait} attempts have none: they never started (never_started), a time is missing, or attempts overlap. Size buckets by GPUs.
-- needs: attempts
-- column: size_bucket | GPUs | GPUs of the gang; 'all' is every size
-- column: waits | waits | how many
-- column: mean_min | min | mean wait
-- column: p10_min | min | 10th percentile
-- column: p25_min | min | 25th percentile
-- column: p50_min | min | median
-- column: p75_min | min | 75th percentile
-- column: p90_min | min | 90th percentile
-- column: p95_min | min | 95th percentile
-- column: p99_min | min | 99th percentile
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS waits,
       avg(seconds) / 60 AS mean_min, quantile_cont(minutes, 0.10) AS p10_min, quantile_cont(minutes, 0.25) AS p25_min,
       quantile_cont(minutes, 0.50) AS p50_min, quantile_cont(minutes, 0.75) AS p75_min, quantile_cont(minutes, 0.90) AS p90_min,
       quantile_cont(minutes, 0.95) AS p95_min, quantile_cont(minutes, 0.99) AS p99_min
FROM base_waits
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
