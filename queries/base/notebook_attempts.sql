-- The attempts' own stamps in seconds on the log's clock, as the published notebook reads them.
SELECT a.job, a.attempt, epoch(timezone(c.zone, a.start_ts)) AS start_c, epoch(timezone(c.zone, a.end_ts)) AS end_c,
       epoch(timezone(c.zone, j.submit_ts)) AS submit_c
FROM base_attempts AS a JOIN base_jobs AS j USING (job)
CROSS JOIN (SELECT CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS zone FROM clusters WHERE cluster = $cluster) AS c
