-- title: Totals stated by the sources
-- section: quality
-- order: 15
-- question: Do the computed GPU-hours agree with the totals that the sources state?
-- population: finished attempts (YARN: applications) for which a source states its own total; one row per kind of total. For sreport: the cluster, each user of an account or, in a report without users, each account, over the period of the report, regardless of filters; compared if the log covers 95 % of that period.
-- column: total | - | the source's own total
-- column: compared | rows | attempts, applications or figures of sreport compared
-- column: stated_gpu_hours | GPU-h | the source's total
-- column: gpu_hours | GPU-h | the same attempts, as the other tables count them
-- column: difference_gpu_hours | GPU-h | gpu_hours less stated_gpu_hours
-- column: differing | rows | rows that differ by more than 60 GPU-seconds (sreport: its rounding) and 0.5 % of the source's total
-- column: largest_job | - | the job (sreport: the user) with the largest difference among these
-- column: largest_gpu_hours | GPU-h | its difference, gpu_hours less stated_gpu_hours
-- column: covered_pct | % | sreport only: share of its period between the first submission and the end of the log
WITH each AS (
    SELECT total, job, attempt, stated_gpu_s, gpu_s, gpu_s - stated_gpu_s AS difference_s,
           abs(gpu_s - stated_gpu_s) > greatest(60, 0.005 * stated_gpu_s) AS differs, NULL::DOUBLE AS covered
    FROM base_stated_totals
    WHERE gpu_s IS NOT NULL
    UNION ALL
    SELECT printf('sreport: %s, %s to %s UTC', CASE report WHEN 'cluster' THEN 'the cluster' WHEN 'account' THEN 'each account' ELSE 'each user of an account' END,
                  strftime(timezone('UTC', from_ts), '%Y-%m-%d %H:%M'), strftime(timezone('UTC', to_ts), '%Y-%m-%d %H:%M')),
           coalesce(login, account), NULL, stated_gpu_s, CASE WHEN covered >= 0.95 THEN gpu_s END,
           CASE WHEN covered >= 0.95 THEN gpu_s - stated_gpu_s END,
           covered >= 0.95 AND abs(gpu_s - stated_gpu_s) > greatest(60, rounding_s, 0.005 * stated_gpu_s), covered
    FROM base_stated_usage
),
largest AS (
    SELECT total, job, difference_s FROM each WHERE differs
    QUALIFY row_number() OVER (PARTITION BY total ORDER BY abs(difference_s) DESC, job, attempt) = 1
)
SELECT total, count(gpu_s) AS compared, sum(stated_gpu_s::DECIMAL(28, 6))::DOUBLE / 3600 AS stated_gpu_hours,
       sum(gpu_s::DECIMAL(28, 6))::DOUBLE / 3600 AS gpu_hours, sum(each.difference_s::DECIMAL(28, 6))::DOUBLE / 3600 AS difference_gpu_hours,
       count(*) FILTER (differs) AS differing, any_value(largest.job) AS largest_job, any_value(largest.difference_s) / 3600 AS largest_gpu_hours,
       100 * any_value(covered) AS covered_pct
FROM each LEFT JOIN largest USING (total)
GROUP BY total
ORDER BY total
