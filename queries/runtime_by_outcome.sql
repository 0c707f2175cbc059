-- title: Run times by size and outcome
-- section: workload
-- order: 50
-- question: How long do jobs of each size run until they complete, are killed, or fail?
-- population: Jobs with a submission time, a size above 0 and a run time (--duration). Failed: failed, out of memory, node lost, or time limit reached; other: preempted, still running, or unknown.
-- column: size_bucket | - | size; 'all' is every size
-- column: state | - | completed, killed, failed, other; 'all' is the total
-- column: jobs | jobs | how many
-- column: jobs_pct | % | share of the jobs of this size
-- column: run_mean_s | s | mean run time
-- column: run_p50_s | s | median run time
-- column: run_p90_s | s | 90th percentile
-- column: work_h | h | hours of run time times size
-- chart: bars x=size_bucket y="run_p50_s:median,run_p90_s:90th percentile" where=state:all title="Run times by size"
WITH timed AS (
    SELECT CASE WHEN size <= 1 THEN '1' WHEN size <= 4 THEN '2-4' WHEN size <= 8 THEN '5-8' ELSE '>8' END AS size_bucket, outcome, size, run_s
    FROM base_workload WHERE size > 0 AND run_s IS NOT NULL
),
grouped AS (
    SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, CASE WHEN grouping(outcome) = 1 THEN 'all' ELSE outcome END AS outcome,
           count(*) AS jobs, sum(run_s::DECIMAL(28, 6))::DOUBLE / count(*) AS run_mean_s, median(run_s) AS run_p50_s, quantile_cont(run_s, 0.9) AS run_p90_s,
           sum((size * run_s)::DECIMAL(38, 6))::DOUBLE / 3600 AS work_h
    FROM timed GROUP BY GROUPING SETS ((size_bucket, outcome), (size_bucket), (outcome), ()) HAVING count(*) > 0
)
SELECT size_bucket, outcome AS state, jobs, 100.0 * jobs / max(jobs) OVER (PARTITION BY size_bucket) AS jobs_pct, run_mean_s, run_p50_s, run_p90_s, work_h
FROM grouped
ORDER BY list_position(['1', '2-4', '5-8', '>8', 'all'], size_bucket), list_position(['completed', 'killed', 'failed', 'other', 'all'], outcome)
