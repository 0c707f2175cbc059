-- title: Waits by queue and gang size
-- section: queueing
-- order: 20
-- question: How long does each queue wait, by gang size?
-- population: {waits} wait{waits||s}, and {never_started} that never started, as in wait_by_size; rows with 'all' cover every size.
-- needs: attempts
-- column: queue | - | queue or virtual cluster
-- column: size_bucket | GPUs | GPUs of the gang; 'all' is every size
-- column: waits | waits | how many
-- column: mean_min | min | mean wait
-- column: p50_min | min | median
-- column: p90_min | min | 90th percentile
-- column: p95_min | min | 95th percentile
-- column: over_10min_pct | % | share of waits of 10 minutes and longer
-- column: not_started | waits | further waits that did not end in a start: given up, or still open at the end of the log
-- column: km_p50_min | min | median of both together (Kaplan-Meier); empty: longer than the log covers
WITH known AS (
    SELECT queue, grouping(size_bucket) = 1 AS every_size, size_bucket, count(*) AS waits, avg(seconds) / 60 AS mean_min,
           quantile_cont(minutes, [0.50, 0.90, 0.95]) AS p, 100.0 * count(*) FILTER (minutes >= 10) / count(*) AS over_10min_pct
    FROM base_waits
    GROUP BY GROUPING SETS ((queue, size_bucket), (queue))
)
SELECT s.queue, CASE WHEN s.every_size THEN 'all' ELSE s.size_bucket END AS size_bucket, coalesce(k.waits, 0) AS waits, k.mean_min,
       k.p[1] AS p50_min, k.p[2] AS p90_min, k.p[3] AS p95_min, k.over_10min_pct, s.not_started, s.km_p50_min
FROM base_wait_survival AS s
LEFT JOIN known AS k ON k.queue = s.queue AND k.every_size = s.every_size AND k.size_bucket IS NOT DISTINCT FROM s.size_bucket
WHERE NOT s.every_queue
ORDER BY sum(coalesce(k.waits, 0)) OVER (PARTITION BY s.queue) DESC, s.queue, s.every_size DESC,
         list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], s.size_bucket)
