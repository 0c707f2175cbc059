-- title: Attempts and retries
-- section: failures
-- order: 10
-- question: How often are jobs of each size retried, and how often without success?
-- population: {jobs} job{jobs||s} less {jobs_without_attempts} without an attempt, by the GPUs of the first attempt.
-- needs: attempts
-- column: size_bucket | GPUs | GPUs of the job; 'all' is every size
-- column: jobs | jobs | jobs with at least one attempt
-- column: attempts | attempts | attempts of these jobs
-- column: retries_mean | attempts | attempts after the first, per job; resizing a running job is not a retry
-- column: retried_pct | % | share of jobs that were retried
-- column: retried_passed_pct | % | share of the retried jobs that passed in the end
-- column: failed_pct | % | share that failed, ran out of memory or lost a node, among jobs with a known final state
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS jobs,
       sum(attempts)::BIGINT AS attempts, avg(tries - 1) AS retries_mean,
       100.0 * count(*) FILTER (tries > 1) / count(*) AS retried_pct,
       100.0 * count(*) FILTER (tries > 1 AND state = 'completed') / nullif(count(*) FILTER (tries > 1), 0) AS retried_passed_pct,
       100.0 * count(*) FILTER (state IN ('failed', 'out_of_memory', 'node_fail')) / nullif(count(*) FILTER (state NOT IN ('unknown', 'pending', 'running', 'suspended')), 0) AS failed_pct
FROM base_jobs
WHERE attempts > 0
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
