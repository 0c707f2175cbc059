-- title: Failures by category, compared with Table 7 of the Philly paper
-- section: reference
-- order: 25
-- reference: atc19
-- question: Do the infrastructure, the AI engine and users cause as many failures as on Philly?
-- population: published: sums over the reasons of Table 7 (39,776 trials; Jeon et al., USENIX ATC 2019) by its categories; this trace: {failures} failed attempt{failures||s} of this trace, {failures_with_log} of them with a log. A reason with several possible origins counts in each, so shares add up to more than 100 %.
-- needs: attempts
-- column: category | - | possible origin: infrastructure, ai_engine (framework, CUDA, GPU), user; not known: no signature
-- column: published_trials_pct | % | share of the trials, published
-- column: trials_pct | % | this trace
-- column: published_rtf_pct | % | share of the run time to failure, published
-- column: rtf_pct | % | this trace
-- column: published_gpu_minutes_pct | % | share of run time to failure x demand, published
-- column: gpu_minutes_pct | % | this trace
WITH published(categories, trials, rtf_pct, gpu_minutes_pct) AS (
    VALUES
        ('ai_engine+user', 12076, 6.62, 8.05), ('infrastructure+user', 9690, 30.43, 24.21), ('infrastructure+user', 2943, 9.22, 17.06),
        ('ai_engine+user', 2912, 3.35, 3.02), ('user', 2602, 3.82, 4.75), ('infrastructure', 1995, 21.73, 16.33), ('ai_engine', 1484, 0.62, 0.72),
        ('infrastructure+user', 1132, 0.19, 0.26), ('infrastructure+ai_engine+user', 777, 2.34, 1.74), ('infrastructure', 634, 3.7, 1.24),
        ('ai_engine', 487, 1.08, 2.1), ('infrastructure', 478, 14.63, 15.34), ('user', 299, 0.07, 0.03), ('infrastructure+user', 148, 0.06, 0.02),
        ('infrastructure', 147, 1.66, 4.73), ('ai_engine', 141, 0.03, 0.13), ('user', 84, 0.01, 0.01), ('ai_engine', 49, 0.0, 0.0),
        ('ai_engine', 10, 0.03, 0.05), ('user', 3, 0.0, 0.0), ('ai_engine', 1, 0.0, 0.0), ('not known', 1684, 0.42, 0.21)
),
theirs AS (
    SELECT unnest(string_split(categories, '+')) AS category, trials, rtf_pct, gpu_minutes_pct FROM published
),
mine AS (
    SELECT unnest(string_split(coalesce(category, 'not known'), '+')) AS category, rtf_s, gpus * rtf_s AS gpu_s FROM base_failures
),
total AS (
    SELECT count(*) AS trials, sum(rtf_s::DECIMAL(28, 9))::DOUBLE AS rtf_s, sum((gpus * rtf_s)::DECIMAL(28, 9))::DOUBLE AS gpu_s FROM base_failures
),
ours AS (
    SELECT category, 100.0 * count(*) / nullif(any_value(t.trials), 0) AS trials_pct,
           100 * sum(m.rtf_s::DECIMAL(28, 9))::DOUBLE / nullif(any_value(t.rtf_s), 0) AS rtf_pct,
           100 * sum(m.gpu_s::DECIMAL(28, 9))::DOUBLE / nullif(any_value(t.gpu_s), 0) AS gpu_minutes_pct
    FROM mine AS m CROSS JOIN total AS t GROUP BY category
)
SELECT category, 100.0 * p.trials / 39776 AS published_trials_pct, o.trials_pct, p.rtf_pct AS published_rtf_pct, o.rtf_pct,
       p.gpu_minutes_pct AS published_gpu_minutes_pct, o.gpu_minutes_pct
FROM (
    SELECT category, sum(trials) AS trials, sum(rtf_pct)::DOUBLE AS rtf_pct, sum(gpu_minutes_pct)::DOUBLE AS gpu_minutes_pct FROM theirs GROUP BY category
) AS p FULL JOIN ours AS o USING (category)
ORDER BY list_position(['infrastructure', 'ai_engine', 'user', 'not known'], category) NULLS LAST, category
