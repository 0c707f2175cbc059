-- title: Failures by category
-- section: failures
-- order: 40
-- question: Do attempts fail because of the infrastructure, the AI engine or the user?
-- population: {failures} failed attempt{failures||s} (trials): finished attempts whose state is failed, out of memory, node failure, time limit or preempted; {failures_with_log} of them have a log in the store. Not counted: {attempts_killed} attempt{attempts_killed||s} ended by a user or an administrator, and {attempts_end_unknown} whose end is unknown. A reason with several possible origins has several categories; a signature may be narrower than its reason.
-- needs: attempts
-- key_columns: category, trials, trials_pct, jobs, users, gpu_hours, gpu_hours_pct, top_reason
-- column: category | - | infrastructure, ai_engine (framework, CUDA, GPU), user, or several possible ones; 'not known' without a signature; 'all' is the total
-- column: trials | attempts | failed attempts
-- column: trials_pct | % | share of all failed attempts
-- column: jobs | jobs | their jobs
-- column: users | users | users of those jobs
-- column: rtf_p50_min | min | median run time to failure
-- column: rtf_p95_min | min | 95th percentile
-- column: gpu_hours | GPU-h | held by these attempts
-- column: gpu_hours_pct | % | share of all failed attempts' total
-- column: top_reason | - | the most frequent reason
WITH total AS (SELECT count(*) AS trials, sum(gpu_hours::DECIMAL(28, 9))::DOUBLE AS gpu_hours FROM base_failures),
named AS (SELECT *, coalesce(category, 'not known') AS kind FROM base_failures)
SELECT CASE WHEN grouping(kind) = 1 THEN 'all' ELSE kind END AS category, count(*) AS trials, 100.0 * count(*) / any_value(t.trials) AS trials_pct,
       count(DISTINCT job) AS jobs, count(DISTINCT "user") AS users,
       quantile_cont(rtf_s, 0.5) / 60 AS rtf_p50_min, quantile_cont(rtf_s, 0.95) / 60 AS rtf_p95_min,
       sum(f.gpu_hours::DECIMAL(28, 9))::DOUBLE AS gpu_hours, 100 * sum(f.gpu_hours::DECIMAL(28, 9))::DOUBLE / nullif(any_value(t.gpu_hours), 0) AS gpu_hours_pct,
       mode(title ORDER BY title) AS top_reason
FROM named AS f CROSS JOIN total AS t
GROUP BY GROUPING SETS ((kind), ())
HAVING count(*) > 0
ORDER BY grouping(kind), trials DESC, kind
