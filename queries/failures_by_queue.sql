-- title: Failures by queue
-- section: failures
-- order: 60
-- question: In which queues do attempts fail, why, and at what cost?
-- population: {attempts_over} finished attempt{attempts_over||s}, {failures} of which failed, as in failure_reasons; queues without a failed attempt are left out.
-- needs: attempts
-- key_columns: queue, jobs, failed_jobs, failed_pct, gpu_hours, gpu_hours_pct, top_reason
-- column: queue | - | queue or virtual cluster
-- column: jobs | jobs | jobs with finished attempts
-- column: failed_jobs | jobs | jobs with a failed attempt
-- column: trials | attempts | failed attempts
-- column: failed_pct | % | share of the finished attempts
-- column: rtf_p50_min | min | median run time to failure
-- column: gpu_hours | GPU-h | held by the failed attempts
-- column: gpu_hours_pct | % | share of all failed attempts' total
-- column: top_reason | - | the most frequent reason
-- column: top_reason_pct | % | share of the queue's failed attempts with this reason
WITH reasons AS (
    SELECT queue, arg_max(title, (n, title)) AS top_reason, max(n) AS n
    FROM (SELECT queue, title, count(*) AS n FROM base_failures GROUP BY ALL)
    GROUP BY ALL
),
counted AS (
    SELECT a.queue, count(DISTINCT a.job) AS jobs, count(DISTINCT f.job) AS failed_jobs, count(f.job) AS trials, 100.0 * count(f.job) / count(*) AS failed_pct,
           quantile_cont(f.rtf_s, 0.5) / 60 AS rtf_p50_min, sum(f.gpu_hours::DECIMAL(28, 9))::DOUBLE AS gpu_hours
    FROM base_attempts AS a LEFT JOIN base_failures AS f USING (job, attempt)
    WHERE a.state NOT IN ('unknown', 'pending', 'running', 'suspended')
    GROUP BY ALL
)
SELECT c.queue, c.jobs, c.failed_jobs, c.trials, c.failed_pct, c.rtf_p50_min, c.gpu_hours,
       100 * c.gpu_hours / nullif(sum(c.gpu_hours::DECIMAL(28, 9)) OVER ()::DOUBLE, 0) AS gpu_hours_pct, r.top_reason, 100.0 * r.n / c.trials AS top_reason_pct
FROM counted AS c LEFT JOIN reasons AS r ON r.queue IS NOT DISTINCT FROM c.queue
WHERE c.trials > 0
ORDER BY c.gpu_hours DESC NULLS LAST, c.trials DESC, c.queue
