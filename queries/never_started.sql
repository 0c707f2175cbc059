-- title: Jobs that never started
-- section: queueing
-- order: 30
-- question: How many jobs were still waiting at the end of the log or were given up before they started, and how long had they waited?
-- population: {never_started} attempt{never_started||s}, or jobs without any attempt, that never started. Waits still open at the end of the log are right-censored; of the other tables, only wait_by_size and wait_by_queue include them, in their km columns. Held jobs and jobs with a begin time or a dependency are counted too.
-- key_columns: size_bucket, waiting, waiting_gpus, waiting_p50_min, waiting_max_min, given_up, given_up_h
-- column: size_bucket | GPUs | GPUs requested; 'all' is every size
-- column: waiting | jobs | still waiting at the end of the log
-- column: waiting_gpus | GPUs | GPUs that these jobs request, as far as known
-- column: waiting_p50_min | min | median time from submission to the end of the log: a lower bound of their wait
-- column: waiting_max_min | min | the longest of these times
-- column: waiting_h | h | the sum of these times
-- column: given_up | jobs | jobs cancelled, or ended otherwise, before they started
-- column: given_up_p50_min | min | median time from submission to that end, as far as known
-- column: given_up_h | h | the sum of these
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket,
       count(*) FILTER (still_waits) AS waiting,
       sum(gpus) FILTER (still_waits) AS waiting_gpus,
       quantile_cont(so_far_s, 0.5) FILTER (still_waits) / 60 AS waiting_p50_min,
       max(so_far_s) FILTER (still_waits) / 60 AS waiting_max_min,
       sum(so_far_s::DECIMAL(28, 6)) FILTER (still_waits)::DOUBLE / 3600 AS waiting_h,
       count(*) FILTER (NOT still_waits) AS given_up,
       quantile_cont(so_far_s, 0.5) FILTER (NOT still_waits) / 60 AS given_up_p50_min,
       sum(so_far_s::DECIMAL(28, 6)) FILTER (NOT still_waits)::DOUBLE / 3600 AS given_up_h
FROM base_never_started
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
