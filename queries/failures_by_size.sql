-- title: Failures by gang size
-- section: failures
-- order: 50
-- question: Do larger gangs fail more often, and where do failures originate?
-- population: {attempts_over} finished attempt{attempts_over||s}, {failures} of which failed, as in failure_reasons, by the GPUs of the attempt.
-- needs: attempts
-- key_columns: size_bucket, attempts, trials, failed_pct, user_pct, infrastructure_pct, gpu_hours, top_reason
-- column: size_bucket | GPUs | GPUs of the attempt; 'all' is every size
-- column: attempts | attempts | finished attempts
-- column: trials | attempts | failed attempts
-- column: failed_pct | % | share that failed
-- column: user_pct | % | share of the failed attempts that only the user can have caused
-- column: infrastructure_pct | % | share of the failed attempts that the infrastructure may have caused
-- column: ai_engine_pct | % | share of the failed attempts that the AI engine may have caused
-- column: not_known_pct | % | share of the failed attempts without a signature
-- column: rtf_p50_min | min | median run time to failure
-- column: rtf_p95_min | min | 95th percentile
-- column: gpu_hours | GPU-h | held by the failed attempts
-- column: top_reason | - | the most frequent reason
SELECT CASE WHEN grouping(a.size_bucket) = 1 THEN 'all' ELSE a.size_bucket END AS size_bucket, count(*) AS attempts, count(f.job) AS trials,
       100.0 * count(f.job) / count(*) AS failed_pct,
       100.0 * count(*) FILTER (f.category = 'user') / nullif(count(f.job), 0) AS user_pct,
       100.0 * count(*) FILTER (contains(f.category, 'infrastructure')) / nullif(count(f.job), 0) AS infrastructure_pct,
       100.0 * count(*) FILTER (contains(f.category, 'ai_engine')) / nullif(count(f.job), 0) AS ai_engine_pct,
       100.0 * count(*) FILTER (f.job IS NOT NULL AND f.category IS NULL) / nullif(count(f.job), 0) AS not_known_pct,
       quantile_cont(f.rtf_s, 0.5) / 60 AS rtf_p50_min, quantile_cont(f.rtf_s, 0.95) / 60 AS rtf_p95_min, sum(f.gpu_hours::DECIMAL(28, 9))::DOUBLE AS gpu_hours,
       mode(f.title ORDER BY f.title) AS top_reason
FROM base_attempts AS a LEFT JOIN base_failures AS f USING (job, attempt)
WHERE a.state NOT IN ('unknown', 'pending', 'running', 'suspended')
GROUP BY GROUPING SETS ((a.size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(a.size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], a.size_bucket)
