-- The periods of series: hours, or days, weeks, months and quarters in $period_zone (NULL: the zone of the log), over the time of the log, and not beyond --since and --until.
-- ts is where a period begins, and label its name; begin_us and end_us are what of it is covered. begin_c and end_c are these on the clock that the log counts durations on.
WITH zone AS (
    SELECT coalesce($period_zone, timezone) AS name, CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS c_name FROM clusters WHERE cluster = $cluster
),
span AS (
    SELECT greatest(first_ts, $since::TIMESTAMPTZ) AS first, least(last_ts, $until::TIMESTAMPTZ) AS last FROM base_log_span WHERE first_ts IS NOT NULL
),
-- hours are those of UTC: where clocks are put back, an hour of the zone comes twice
starts AS (
    SELECT unnest(generate_series(date_trunc('hour', make_timestamp(epoch_us(first))), make_timestamp(epoch_us(last)), INTERVAL 1 HOUR)) AS at, 'UTC' AS zone FROM span WHERE $by = 'hour'
    UNION ALL
    SELECT unnest(generate_series(date_trunc($by, timezone(zone.name, first)), timezone(zone.name, last), CAST('1 ' || $by AS INTERVAL))), zone.name FROM span CROSS JOIN zone WHERE $by <> 'hour'
),
cuts AS (
    SELECT timezone(s.zone, s.at) AS ts, timezone(s.zone, s.at + CAST('1 ' || $by AS INTERVAL)) AS next_ts, timezone(zone.name, timezone(s.zone, s.at)) AS local, zone.c_name
    FROM starts AS s CROSS JOIN zone
)
SELECT row_number() OVER (ORDER BY ts) AS cut, ts, epoch_us(ts) AS from_us, epoch_us(next_ts) AS until_us,
       epoch_us(greatest(ts, first)) AS begin_us, epoch_us(least(next_ts, last)) AS end_us,
       epoch(timezone(c_name, greatest(ts, first))) AS begin_c, epoch(timezone(c_name, least(next_ts, last))) AS end_c,
       CASE $by WHEN 'month' THEN strftime(local, '%Y-%m') WHEN 'week' THEN strftime(local, '%G-W%V') WHEN 'quarter' THEN printf('%d-Q%d', year(local), quarter(local))
                WHEN 'day' THEN strftime(local, '%Y-%m-%d') ELSE strftime(local, '%Y-%m-%d %H:00') END AS label
FROM cuts CROSS JOIN span
