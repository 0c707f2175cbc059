-- title: Submissions by hour of the day
-- section: workload
-- order: 20
-- question: At what time of day are jobs submitted?
-- population: Jobs with a submission time, on the log's own clock; none if times count from an arbitrary origin. Rates are per hour between the first and the last submission, in whole hours.
-- column: hour | h | hour of the day, 0 to 23
-- column: jobs | jobs | jobs submitted in that hour
-- column: jobs_pct | % | share of all
-- column: jobs_an_hour | jobs/h | mean over all days
-- column: working_day | jobs/h | mean over Mondays to Fridays
-- column: weekend | jobs/h | mean over Saturdays and Sundays
-- chart: profile x=hour page.y=jobs_an_hour,working_day,weekend terminal.y="working_day:Monday to Friday,weekend:Saturday and Sunday" y_title="submissions"
--   title="Submissions per hour, by hour of the day"
WITH dated AS (
    SELECT * FROM base_workload WHERE NOT EXISTS (SELECT 1 FROM clusters WHERE cluster = $cluster AND epoch = 'relative')
),
ends AS (SELECT date_trunc('hour', min(local_ts)) AS low, date_trunc('hour', max(local_ts)) AS high FROM dated),
hours AS (
    SELECT extract(hour FROM slot)::INTEGER AS hour, count(*) AS seen, count(*) FILTER (isodow(slot) < 6) AS seen_working, count(*) FILTER (isodow(slot) >= 6) AS seen_weekend
    FROM (SELECT unnest(generate_series(low, high, INTERVAL 1 HOUR)) AS slot FROM ends WHERE low IS NOT NULL) GROUP BY ALL
),
counted AS (
    SELECT extract(hour FROM local_ts)::INTEGER AS hour, count(*) AS jobs, count(*) FILTER (isodow(local_ts) < 6) AS working, count(*) FILTER (isodow(local_ts) >= 6) AS weekend
    FROM dated GROUP BY ALL
)
SELECT hour, coalesce(jobs, 0) AS jobs, 100.0 * coalesce(jobs, 0) / sum(jobs) OVER () AS jobs_pct, coalesce(jobs, 0) / seen AS jobs_an_hour,
       coalesce(working, 0) / nullif(seen_working, 0) AS working_day, coalesce(c.weekend, 0) / nullif(seen_weekend, 0) AS weekend
FROM hours LEFT JOIN counted AS c USING (hour)
ORDER BY hour
