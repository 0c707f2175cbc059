-- title: Waits by gang size
-- section: queueing
-- order: 10
-- question: How long do attempts wait for their GPUs?
-- population: {waits} wait{waits||s}; an attempt's wait begins at submission, a retry's at the end of the previous attempt. {attempts_without_wait} attempt{attempts_without_wait||s} {attempts_without_wait|has|have} none: they never started, a time is missing, or attempts overlap. The {never_started} that never started (table never_started) are only in not_started and the two km columns: each is known to have lasted at least until it was given up or its log ended. Size buckets by GPUs.
-- needs: attempts
-- key_columns: size_bucket, waits, mean_min, p50_min, p90_min, p95_min, p99_min, not_started
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
-- column: not_started | waits | further waits that did not end in a start: given up, or still open at the end of the log
-- column: km_p50_min | min | median of both together (Kaplan-Meier); empty: longer than the log covers
-- column: km_p95_min | min | 95th percentile of both (Kaplan-Meier); empty: longer than the log covers
WITH known AS (
    SELECT grouping(size_bucket) = 1 AS every_size, size_bucket, count(*) AS waits, avg(seconds) / 60 AS mean_min,
           quantile_cont(minutes, [0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99]) AS p
    FROM base_waits
    GROUP BY GROUPING SETS ((size_bucket), ())
)
SELECT CASE WHEN s.every_size THEN 'all' ELSE s.size_bucket END AS size_bucket, coalesce(k.waits, 0) AS waits, k.mean_min,
       k.p[1] AS p10_min, k.p[2] AS p25_min, k.p[3] AS p50_min, k.p[4] AS p75_min, k.p[5] AS p90_min, k.p[6] AS p95_min, k.p[7] AS p99_min,
       s.not_started, s.km_p50_min, s.km_p95_min
FROM base_wait_survival AS s LEFT JOIN known AS k ON k.every_size = s.every_size AND k.size_bucket IS NOT DISTINCT FROM s.size_bucket
WHERE s.every_queue
ORDER BY s.every_size, list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], s.size_bucket)
