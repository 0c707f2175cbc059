-- The spans of time that charges are of: periods of $charge_by in $period_zone (NULL: the zone of the log), cut where prices change.
WITH zone AS (SELECT coalesce($period_zone, timezone) AS name, CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS c_name FROM clusters WHERE cluster = $cluster),
span AS (SELECT date_trunc($charge_by, timezone(zone.name, min(held_from_ts))) AS first, timezone(zone.name, max(held_until_ts)) AS last FROM unfiltered_attempts CROSS JOIN zone GROUP BY zone.name),
starts AS (
    SELECT unnest(generate_series(first, last, CAST('1 ' || $charge_by AS INTERVAL))) AS local FROM span
    UNION
    SELECT unnest([from_date, to_date])::TIMESTAMP FROM base_prices
)
SELECT row_number() OVER (ORDER BY local) AS cut, epoch_us(timezone(zone.name, local)) AS from_us,
       lead(from_us) OVER (ORDER BY local) AS until_us, epoch(timezone(zone.c_name, timezone(zone.name, local))) AS from_c,
       lead(from_c) OVER (ORDER BY local) AS until_c, local, date_trunc($charge_by, local) AS period
FROM starts CROSS JOIN zone
WHERE local IS NOT NULL
