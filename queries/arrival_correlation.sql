-- title: Regularity of arrivals
-- section: workload
-- order: 80
-- question: Do busy hours, days and weeks follow one another?
-- population: Jobs with a submission time, counted in whole spans of time (aligned to 1970) after the span of the first submission and before the span of the last. Index of dispersion: variance of the counts over their mean; 1 for a Poisson process. Autocorrelation: of hourly counts with the counts that many hours later.
-- column: measure | - | index of dispersion, or autocorrelation
-- column: lag | - | span over which submissions are counted, or lag
-- column: lag_h | h | the same as a number
-- column: value | - | its value
-- column: spans | spans | number of spans counted
WITH widths(width) AS (VALUES (60), (3600), (86400)),
counted AS (SELECT width, floor(submit_s / width)::BIGINT AS slot, count(*) AS jobs FROM base_workload, widths GROUP BY ALL),
ends AS (SELECT width, min(slot) + 1 AS low, max(slot) - 1 AS high FROM counted GROUP BY width),
moments AS (
    SELECT e.width, any_value(high) - any_value(low) + 1 AS n, coalesce(sum(jobs) FILTER (slot BETWEEN low AND high), 0)::DOUBLE AS total,
           coalesce(sum(jobs * jobs) FILTER (slot BETWEEN low AND high), 0)::DOUBLE AS squares
    FROM ends AS e JOIN counted USING (width) GROUP BY e.width
),
hourly AS (SELECT slot, jobs - m.total / m.n AS x FROM counted AS c JOIN ends AS e USING (width) JOIN moments AS m USING (width) WHERE width = 3600 AND slot BETWEEN low AND high),
mean AS (SELECT total / n AS mean, n, squares - total * total / n AS variance FROM moments WHERE width = 3600 AND n > 0),
-- hours without a job are not rows: with them, the sum over all hours is that over rows and what is left of the mean
lagged AS (
    SELECT lag, coalesce(sum(((a.x + m.mean) * (b.x + m.mean))::DECIMAL(38, 6)), 0)::DOUBLE AS products
    FROM (VALUES (1), (2), (6), (12), (24), (48), (168), (336)) AS lags(lag) CROSS JOIN mean AS m LEFT JOIN hourly AS a ON true LEFT JOIN hourly AS b ON b.slot = a.slot + lag
    GROUP BY lag
),
sums AS (
    SELECT lag, coalesce(sum(jobs) FILTER (slot <= high - lag), 0)::DOUBLE AS early, coalesce(sum(jobs) FILTER (slot >= low + lag), 0)::DOUBLE AS late
    FROM (VALUES (1), (2), (6), (12), (24), (48), (168), (336)) AS lags(lag), counted AS c JOIN ends AS e USING (width) WHERE width = 3600 AND slot BETWEEN low AND high GROUP BY lag
)
SELECT 'index of dispersion' AS measure, CASE width WHEN 60 THEN '1 min' WHEN 3600 THEN '1 h' ELSE '24 h' END AS lag, width / 3600 AS lag_h, (squares / n - (total / n) ** 2) / (total / n) AS value, n AS spans FROM moments WHERE n > 5 AND total > 0
UNION ALL
SELECT 'autocorrelation', lag || ' h', lag, (products - mean * (early + late) + (n - lag) * mean * mean) / variance, n - lag
FROM lagged JOIN sums USING (lag) CROSS JOIN mean WHERE n > lag + 2 AND variance > 0
ORDER BY measure DESC, lag_h
