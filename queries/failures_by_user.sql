-- title: Lost GPU-hours by user
-- section: failures
-- order: 70
-- question: Which users lost GPU-hours lost in unsuccessful attempts, and why did they fail?
-- population: {attempts} attempt{attempts||s}, of which {attempts_over} finished and {failures} of these failed, as in failure_reasons. Lost is as in gpu_hours_lost: GPU-hours of attempts that were retried, and of the last attempts of jobs that failed or were killed, cancelled after their start, preempted or ended by their time limit. A large loss is not proof of fault. Users who lost nothing and have no failed attempt are left out.
-- needs: attempts
-- key_columns: user, lost_gpu_hours, lost_pct, jobs, failed_jobs, failed_pct, top_reason
-- column: user | - | who submitted; empty if the source names no user
-- column: lost_gpu_hours | GPU-h | held by unsuccessful attempts, for any reason
-- column: lost_pct | % | share of the lost GPU-hours of all users
-- column: jobs | jobs | jobs with finished attempts
-- column: failed_jobs | jobs | jobs with a failed attempt
-- column: trials | attempts | failed attempts
-- column: failed_pct | % | share of the finished attempts
-- column: rtf_p50_min | min | median run time to failure
-- column: gpu_hours | GPU-h | held by the failed attempts alone
-- column: gpu_hours_pct | % | share of all failed attempts' total
-- column: top_reason | - | the most frequent reason
-- column: top_reason_pct | % | share of this user's failed attempts with this reason
WITH reasons AS (
    SELECT "user", arg_max(title, (n, title)) AS top_reason, max(n) AS n
    FROM (SELECT "user", title, count(*) AS n FROM base_failures GROUP BY ALL)
    GROUP BY ALL
),
counted AS (
    SELECT a."user", count(DISTINCT a.job) AS jobs, count(DISTINCT f.job) AS failed_jobs, count(f.job) AS trials, 100.0 * count(f.job) / count(*) AS failed_pct,
           quantile_cont(f.rtf_s, 0.5) / 60 AS rtf_p50_min, CASE WHEN count(f.job) > 0 THEN sum(f.gpu_hours::DECIMAL(28, 9))::DOUBLE ELSE 0 END AS gpu_hours
    FROM base_attempts AS a LEFT JOIN base_failures AS f USING (job, attempt)
    WHERE a.state NOT IN ('unknown', 'pending', 'running', 'suspended')
    GROUP BY ALL
),
lost AS (
    SELECT "user", sum(gpu_s) AS gpu_s
    FROM unfiltered_held SEMI JOIN base_jobs USING (job)
    WHERE outcome IN ('retried', 'killed', 'failed')
    GROUP BY ALL
)
SELECT c."user" AS "user", l.gpu_s::DOUBLE / 3600 AS lost_gpu_hours, 100 * l.gpu_s::DOUBLE / nullif(sum(l.gpu_s) OVER ()::DOUBLE, 0) AS lost_pct,
       c.jobs, c.failed_jobs, c.trials, c.failed_pct, c.rtf_p50_min, c.gpu_hours,
       100 * c.gpu_hours / nullif(sum(c.gpu_hours::DECIMAL(28, 9)) OVER ()::DOUBLE, 0) AS gpu_hours_pct, r.top_reason, 100.0 * r.n / c.trials AS top_reason_pct
FROM counted AS c
LEFT JOIN lost AS l ON l."user" IS NOT DISTINCT FROM c."user"
LEFT JOIN reasons AS r ON r."user" IS NOT DISTINCT FROM c."user"
WHERE c.trials > 0 OR l.gpu_s > 0
ORDER BY l.gpu_s DESC NULLS LAST, c.trials DESC, c."user"
