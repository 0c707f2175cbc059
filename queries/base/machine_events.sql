-- When nodes were not to be had, in seconds on the log's clock; an event without an end lasts to the end of the log.
SELECT e.machine, e.state, e.reason, epoch(timezone(c.zone, e.from_ts)) AS from_c,
       epoch(timezone(c.zone, coalesce(e.to_ts, c.last_ts))) AS to_c
FROM machine_events AS e
CROSS JOIN (SELECT CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS zone, last_ts FROM clusters WHERE cluster = $cluster) AS c
WHERE e.cluster = $cluster AND e.from_ts < coalesce(e.to_ts, c.last_ts)
ORDER BY e.machine, e.from_ts
