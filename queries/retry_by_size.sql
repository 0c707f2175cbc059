-- title: Do retries help?
-- section: failures
-- order: 80
-- question: How often are jobs of each size retried, and do retries help?
-- population: {jobs} job{jobs||s} less {jobs_without_attempts} without an attempt, by the GPUs of the first attempt; a retry is any attempt after the first, whatever the outcome of the previous one. Mean retries and unsuccessful share are as in Figure 9 of the Philly paper.
-- needs: attempts
-- first_columns: 7
-- column: size_bucket | GPUs | GPUs of the job; 'all' is every size
-- column: jobs | jobs | jobs with at least one attempt
-- column: retries_mean | attempts | attempts after the first, per job
-- column: unsuccessful_pct | % | share that failed, ran out of memory or lost a node, among jobs with a known final state
-- column: retried_jobs | jobs | jobs that were retried
-- column: retried_passed_pct | % | share of the retried jobs that passed in the end
-- column: first_retry_passed_pct | % | share of finished first retries that passed
-- column: second_retry_passed_pct | % | the same for second retries
-- column: later_retry_passed_pct | % | the same for all later retries
-- column: retry_gpu_hours | GPU-h | held by retries
-- column: retry_failed_gpu_hours | GPU-h | held by retries that failed again
WITH tries AS (
    SELECT a.job, a.try, a.state, a.gpu_s::DECIMAL(28, 6) AS gpu_s, f.job IS NOT NULL AS failed,
           a.state NOT IN ('unknown', 'pending', 'running', 'suspended') AS is_over
    FROM base_attempts AS a LEFT JOIN base_failures AS f USING (job, attempt)
    WHERE a.try > 0
),
by_job AS (
    SELECT job, count(*) FILTER (try = 1 AND is_over) AS first, count(*) FILTER (try = 1 AND state = 'completed') AS first_passed,
           count(*) FILTER (try = 2 AND is_over) AS second, count(*) FILTER (try = 2 AND state = 'completed') AS second_passed,
           count(*) FILTER (try > 2 AND is_over) AS later, count(*) FILTER (try > 2 AND state = 'completed') AS later_passed,
           sum(gpu_s) AS gpu_s, sum(gpu_s) FILTER (failed) AS failed_s
    FROM tries
    GROUP BY job
)
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS jobs, avg(tries - 1) AS retries_mean,
       100.0 * count(*) FILTER (state IN ('failed', 'out_of_memory', 'node_fail')) / nullif(count(*) FILTER (state NOT IN ('unknown', 'pending', 'running', 'suspended')), 0) AS unsuccessful_pct,
       count(*) FILTER (tries > 1) AS retried_jobs,
       100.0 * count(*) FILTER (tries > 1 AND state = 'completed') / nullif(count(*) FILTER (tries > 1), 0) AS retried_passed_pct,
       100.0 * sum(first_passed) / nullif(sum(first), 0) AS first_retry_passed_pct, 100.0 * sum(second_passed) / nullif(sum(second), 0) AS second_retry_passed_pct,
       100.0 * sum(later_passed) / nullif(sum(later), 0) AS later_retry_passed_pct,
       coalesce(sum(gpu_s), 0)::DOUBLE / 3600 AS retry_gpu_hours, coalesce(sum(failed_s), 0)::DOUBLE / 3600 AS retry_failed_gpu_hours
FROM base_jobs LEFT JOIN by_job USING (job)
WHERE attempts > 0
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
