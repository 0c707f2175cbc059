-- title: Outcome of retries, by reason
-- section: failures
-- order: 90
-- question: After a failure for this reason, did the retry pass, or fail for the same reason?
-- population: {failures} failed attempt{failures||s}, as in failure_reasons; a retry is the next attempt of the job. Without a signature, two failures have the same reason if their most informative lines share a template.
-- needs: attempts
-- first_columns: 8
-- column: reason | - | why the attempt failed; 'all' is every reason
-- column: trials | attempts | failed attempts
-- column: retried | attempts | failed attempts that another attempt of the job followed
-- column: retry_passed | attempts | retries that passed
-- column: retry_passed_pct | % | share that passed, among retries that passed or failed
-- column: same_reason | attempts | retries that failed for the same reason
-- column: same_reason_pct | % | share of the retries that passed or failed
-- column: other_reason | attempts | retries that failed for another or an unknown reason
-- column: undecided | attempts | retries that were killed, are still running, or have an unknown end
-- column: job_passed_pct | % | share of the retried attempts whose job passed in the end
-- column: retry_gpu_hours | GPU-h | held by the retries
-- column: same_reason_gpu_hours | GPU-h | held by retries that failed for the same reason
WITH tries AS (
    SELECT a.job, a.job_state, f.reason, f.title, f.template, lead(a.attempt) OVER by_job IS NOT NULL AS retried, lead(a.state) OVER by_job AS next_state,
           lead(f.reason) OVER by_job AS next_reason, lead(f.template) OVER by_job AS next_template,
           lead(a.gpu_s::DECIMAL(28, 6)) OVER by_job AS next_gpu_s -- exact: rows come in no order
    FROM base_attempts AS a LEFT JOIN base_failures AS f USING (job, attempt)
    WINDOW by_job AS (PARTITION BY a.job ORDER BY a.attempt)
),
outcomes AS (
    SELECT *, CASE WHEN NOT retried THEN NULL WHEN next_state = 'completed' THEN 'passed' WHEN next_reason IS NULL THEN 'undecided'
                   WHEN reason = next_reason AND (reason <> 'no_signature' OR template = next_template) THEN 'same' ELSE 'other' END AS outcome
    FROM tries
    WHERE reason IS NOT NULL
)
SELECT CASE WHEN grouping(reason) = 1 THEN 'all' ELSE any_value(title) END AS reason, count(*) AS trials, count(*) FILTER (retried) AS retried,
       count(*) FILTER (outcome = 'passed') AS retry_passed,
       100.0 * count(*) FILTER (outcome = 'passed') / nullif(count(*) FILTER (outcome IN ('passed', 'same', 'other')), 0) AS retry_passed_pct,
       count(*) FILTER (outcome = 'same') AS same_reason,
       100.0 * count(*) FILTER (outcome = 'same') / nullif(count(*) FILTER (outcome IN ('passed', 'same', 'other')), 0) AS same_reason_pct,
       count(*) FILTER (outcome = 'other') AS other_reason, count(*) FILTER (outcome = 'undecided') AS undecided,
       100.0 * count(*) FILTER (retried AND job_state = 'completed') / nullif(count(*) FILTER (retried), 0) AS job_passed_pct,
       coalesce(sum(next_gpu_s), 0)::DOUBLE / 3600 AS retry_gpu_hours, coalesce(sum(next_gpu_s) FILTER (outcome = 'same'), 0)::DOUBLE / 3600 AS same_reason_gpu_hours
FROM outcomes
GROUP BY GROUPING SETS ((outcomes.reason), ())
HAVING count(*) > 0
ORDER BY grouping(outcomes.reason), retry_gpu_hours DESC, trials DESC, reason
