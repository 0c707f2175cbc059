-- title: Waits by queue and gang size
-- section: queueing
-- question: Which queues wait, and for gangs of which size?
-- population: {waits} waits, as in wait_by_size; rows with 'all' are the queue's every size.
-- needs: attempts
-- column: queue | - | queue or virtual cluster
-- column: size_bucket | GPUs | GPUs of the gang; 'all' is every size
-- column: waits | waits | how many
-- column: mean_min | min | mean wait
-- column: p50_min | min | median
-- column: p90_min | min | 90th percentile
-- column: p95_min | min | 95th percentile
-- column: over_10min_pct | % | share of waits of 10 minutes and longer
SELECT queue, CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS waits,
       avg(seconds) / 60 AS mean_min, quantile_cont(minutes, 0.50) AS p50_min, quantile_cont(minutes, 0.90) AS p90_min,
       quantile_cont(minutes, 0.95) AS p95_min, 100.0 * count(*) FILTER (minutes >= 10) / count(*) AS over_10min_pct
FROM base_waits
GROUP BY GROUPING SETS ((queue, size_bucket), (queue))
ORDER BY sum(count(*)) OVER (PARTITION BY queue) DESC, queue, grouping(size_bucket) DESC,
         list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
