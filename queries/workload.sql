-- title: Workload summary
-- section: workload
-- order: 10
-- question: How would a paper on this trace describe its jobs?
-- population: Jobs with a submission time. Sizes, run times, waits and work cover jobs with a size above 0; the column unit names the unit of sizes: GPUs, or CPUs or nodes if no job has a GPU. Waits are from submission to the first start. Run times follow --duration. Work is size times run time. Failed: failed, out of memory, node lost, or time limit reached.
-- key_columns: sized_jobs, unit, jobs_a_day, size_mean, run_p50_s, wait_mean_s, completed_pct, failed_pct
-- column: jobs | jobs | jobs submitted
-- column: sized_jobs | jobs | with a size above 0
-- column: unit | - | unit of sizes: GPUs, CPUs or nodes
-- column: days | days | from the first to the last submission
-- column: jobs_a_day | jobs/day | with a size above 0
-- column: size_mean | - | mean size
-- column: size_p50 | - | median size
-- column: size_max | - | largest size
-- column: one_pct | % | share of the jobs of size 1 or less
-- column: over_8_pct | % | share of the jobs larger than 8
-- column: over_8_work_pct | % | share of the work of the jobs larger than 8
-- column: run_mean_s | s | mean run time
-- column: run_p50_s | s | median run time
-- column: run_p90_s | s | 90th percentile of run times
-- column: run_max_s | s | longest run time
-- column: wait_mean_s | s | mean wait
-- column: wait_p50_s | s | median wait
-- column: wait_p95_s | s | 95th percentile of waits
-- column: completed_pct | % | share of the jobs that completed
-- column: killed_pct | % | share of the jobs that were killed or cancelled
-- column: failed_pct | % | share of the jobs that failed
-- column: completed_work_pct | % | share of the work of jobs that completed
-- column: killed_work_pct | % | share of the work of jobs that were killed
-- column: failed_work_pct | % | share of the work of jobs that failed
-- column: load_mean | - | mean size running at once if no job waited: work over the time from the first to the last submission
WITH sized AS (SELECT *, (size * run_s)::DECIMAL(38, 6) AS work FROM base_workload WHERE size > 0),
whole AS (SELECT count(*) AS jobs, any_value(unit) AS unit FROM base_workload),
figures AS (
    SELECT count(*) AS sized_jobs, nullif(max(submit_s) - min(submit_s), 0) AS span_s,
           sum(size::DECIMAL(28, 6))::DOUBLE / nullif(count(*), 0) AS size_mean, median(size) AS size_p50, max(size) AS size_max,
           count(*) FILTER (size <= 1) AS ones, count(*) FILTER (size > 8) AS large,
           sum(run_s::DECIMAL(28, 6))::DOUBLE / nullif(count(run_s), 0) AS run_mean_s, median(run_s) AS run_p50_s,
           quantile_cont(run_s, 0.9) AS run_p90_s, max(run_s) AS run_max_s,
           sum(wait_s::DECIMAL(28, 6))::DOUBLE / nullif(count(wait_s), 0) AS wait_mean_s, median(wait_s) AS wait_p50_s,
           quantile_cont(wait_s, 0.95) AS wait_p95_s,
           count(*) FILTER (outcome = 'completed') AS completed, count(*) FILTER (outcome = 'killed') AS killed, count(*) FILTER (outcome = 'failed') AS failed,
           count(*) FILTER (state <> 'unknown') AS told, nullif(sum(work)::DOUBLE, 0) AS work,
           sum(work) FILTER (size > 8)::DOUBLE AS large_work, sum(work) FILTER (outcome = 'completed')::DOUBLE AS completed_work,
           sum(work) FILTER (outcome = 'killed')::DOUBLE AS killed_work, sum(work) FILTER (outcome = 'failed')::DOUBLE AS failed_work
    FROM sized
)
SELECT jobs, sized_jobs, unit, span_s / 86400 AS days, sized_jobs * 86400 / span_s AS jobs_a_day, size_mean, size_p50, size_max,
       100.0 * ones / nullif(sized_jobs, 0) AS one_pct, 100.0 * large / nullif(sized_jobs, 0) AS over_8_pct, 100 * coalesce(large_work, 0) / work AS over_8_work_pct,
       run_mean_s, run_p50_s, run_p90_s, run_max_s, wait_mean_s, wait_p50_s, wait_p95_s,
       CASE WHEN told > 0 THEN 100.0 * completed / sized_jobs END AS completed_pct, CASE WHEN told > 0 THEN 100.0 * killed / sized_jobs END AS killed_pct,
       CASE WHEN told > 0 THEN 100.0 * failed / sized_jobs END AS failed_pct,
       CASE WHEN told > 0 THEN 100 * coalesce(completed_work, 0) / work END AS completed_work_pct, CASE WHEN told > 0 THEN 100 * coalesce(killed_work, 0) / work END AS killed_work_pct,
       CASE WHEN told > 0 THEN 100 * coalesce(failed_work, 0) / work END AS failed_work_pct, work / span_s AS load_mean
FROM figures, whole
WHERE jobs > 0
