-- title: Why attempts failed
-- section: failures
-- order: 30
-- question: Why do attempts fail, after how long, and at what cost?
-- population: {failures} failed attempt{failures||s} (trials): finished attempts whose state is failed, out of memory, node failure, time limit or preempted; {failures_with_log} of them have a log in the store. Not counted: {attempts_killed} attempt{attempts_killed||s} ended by a user or an administrator, and {attempts_end_unknown} whose end is unknown. The reason comes from the log or from the scheduler; RTF (run time to failure) is how long the attempt held its GPUs, empty for {failures_without_rtf}. The columns are those of Table 7 of the Philly paper.
-- needs: attempts
-- first_columns: 10
-- key_columns: reason, category, trials, trials_pct, jobs, users, rtf_p50_min, gpu_minutes_pct
-- column: reason | - | reason by the signature in its log or by its scheduler; 'No signature': none matched; 'all' is every reason
-- column: category | - | possible origin: infrastructure, ai_engine (framework, CUDA, GPU), user
-- column: trials | attempts | attempts that failed for this reason
-- column: trials_pct | % | share of all failed attempts
-- column: jobs | jobs | their jobs
-- column: users | users | users of those jobs
-- column: rtf_p50_min | min | median run time to failure
-- column: rtf_p90_min | min | 90th percentile
-- column: rtf_p95_min | min | 95th percentile
-- column: rtf_total_pct | % | share of the run time to failure of all failed attempts
-- column: trials_1 | attempts | attempts that requested 1 GPU (or part of one)
-- column: trials_2_to_4 | attempts | attempts that requested 2 to 4 GPUs
-- column: trials_over_4 | attempts | attempts that requested more than 4 GPUs; the rest requested none, or the source does not state it
-- column: gpu_minutes | GPU-min | RTF x demand: run time to failure times GPUs
-- column: gpu_minutes_pct | % | share of all failed attempts' total
-- column: confidence_mean | - | mean confidence of these verdicts, 0 to 1; 0 if no signature was found
-- column: scheduler_only | attempts | attempts whose reason comes from the scheduler alone: no log, or no match in it
-- chart: bars on=page x=reason y=trials_pct,gpu_minutes_pct
--   title="Failed attempts and the GPU time they held, by reason"
WITH total AS (SELECT count(*) AS trials, sum(rtf_s::DECIMAL(28, 9))::DOUBLE AS rtf_s, sum((gpus * rtf_s)::DECIMAL(28, 9))::DOUBLE AS held_s FROM base_failures)
SELECT CASE WHEN grouping(f.reason) = 1 THEN 'all' ELSE any_value(f.title) END AS reason,
       CASE WHEN grouping(f.reason) = 0 THEN any_value(f.reason_category) END AS category,
       count(*) AS trials, 100.0 * count(*) / any_value(t.trials) AS trials_pct, count(DISTINCT f.job) AS jobs, count(DISTINCT f."user") AS users,
       quantile_cont(f.rtf_s, 0.5) / 60 AS rtf_p50_min, quantile_cont(f.rtf_s, 0.9) / 60 AS rtf_p90_min, quantile_cont(f.rtf_s, 0.95) / 60 AS rtf_p95_min,
       100 * sum(f.rtf_s::DECIMAL(28, 9))::DOUBLE / nullif(any_value(t.rtf_s), 0) AS rtf_total_pct,
       count(*) FILTER (f.size_class = '1') AS trials_1, count(*) FILTER (f.size_class = '2-4') AS trials_2_to_4,
       count(*) FILTER (f.size_class = '>4') AS trials_over_4,
       sum((f.gpus * f.rtf_s)::DECIMAL(28, 9))::DOUBLE / 60 AS gpu_minutes, 100 * sum((f.gpus * f.rtf_s)::DECIMAL(28, 9))::DOUBLE / nullif(any_value(t.held_s), 0) AS gpu_minutes_pct,
       sum(f.confidence::DECIMAL(28, 9))::DOUBLE / count(f.confidence) AS confidence_mean, count(*) FILTER (f.stream = 'scheduler') AS scheduler_only
FROM base_failures AS f CROSS JOIN total AS t
GROUP BY GROUPING SETS ((f.reason), ())
HAVING count(*) > 0
ORDER BY grouping(f.reason), f.reason = 'no_signature', trials DESC, reason
