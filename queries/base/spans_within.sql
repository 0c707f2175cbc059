-- Instead of spans with --since or --until: those of the chosen jobs, whenever they were submitted, cut off at both times.
WITH zone AS (
    SELECT CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS name FROM clusters WHERE cluster = $cluster
),
ends AS (
    SELECT epoch_us($since::TIMESTAMPTZ) AS since_us, epoch_us($until::TIMESTAMPTZ) AS end_us,
           epoch(timezone(zone.name, $since::TIMESTAMPTZ)) AS since_c, epoch(timezone(zone.name, $until::TIMESTAMPTZ)) AS end_c
    FROM zone
)
SELECT s.* REPLACE (CASE WHEN from_us < since_us THEN since_us ELSE from_us END AS from_us, CASE WHEN until_us > end_us THEN end_us ELSE until_us END AS until_us,
                    CASE WHEN from_us < since_us THEN since_c ELSE held_from_c END AS held_from_c, CASE WHEN until_us > end_us THEN end_c ELSE held_until_c END AS held_until_c)
FROM unfiltered_spans AS s SEMI JOIN matching_jobs USING (job) CROSS JOIN ends
WHERE (since_us IS NULL OR until_us > since_us OR (until_us = since_us AND from_us = since_us)) AND (end_us IS NULL OR from_us < end_us)
