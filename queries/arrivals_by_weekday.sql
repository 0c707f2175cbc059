-- title: Submissions by day of the week
-- section: workload
-- order: 30
-- question: On which days are jobs submitted?
-- population: Jobs with a submission time, on the log's own clock; none if times count from an arbitrary origin. Rates are per day from the first to the last day with a submission; both count as whole days. Work is size times run time.
-- column: weekday | - | 1 (Monday) to 7 (Sunday)
-- column: jobs | jobs | jobs submitted on that day
-- column: jobs_pct | % | share of all
-- column: jobs_a_day | jobs/day | mean number of jobs submitted per day
-- column: work_pct | % | share of the work
-- chart: profile on=page x=weekday y=jobs_a_day y_title="submissions" title="Submissions per day, by day of the week (1 = Monday, 7 = Sunday)"
WITH dated AS (
    SELECT * FROM base_workload WHERE NOT EXISTS (SELECT 1 FROM clusters WHERE cluster = $cluster AND epoch = 'relative')
),
ends AS (SELECT date_trunc('day', min(local_ts)) AS low, date_trunc('day', max(local_ts)) AS high FROM dated),
days AS (
    SELECT isodow(slot)::INTEGER AS weekday, count(*) AS seen
    FROM (SELECT unnest(generate_series(low, high, INTERVAL 1 DAY)) AS slot FROM ends WHERE low IS NOT NULL) GROUP BY ALL
),
counted AS (
    SELECT isodow(local_ts)::INTEGER AS weekday, count(*) AS jobs, sum((size * run_s)::DECIMAL(38, 6))::DOUBLE AS work FROM dated GROUP BY ALL
)
SELECT weekday, coalesce(jobs, 0) AS jobs, 100.0 * coalesce(jobs, 0) / sum(jobs) OVER () AS jobs_pct, coalesce(jobs, 0) / seen AS jobs_a_day,
       100 * coalesce(work, 0) / nullif(sum(work) OVER (ORDER BY weekday ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), 0) AS work_pct
FROM days LEFT JOIN counted USING (weekday)
ORDER BY weekday
