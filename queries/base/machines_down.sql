-- When nodes were not to be had (UTC); an event without an end lasts to the end of the log.
SELECT e.machine, e.from_ts, coalesce(e.to_ts, c.last_ts) AS to_ts
FROM machine_events AS e CROSS JOIN (SELECT last_ts FROM clusters WHERE cluster = $cluster) AS c
WHERE e.cluster = $cluster AND e.from_ts < coalesce(e.to_ts, c.last_ts)
ORDER BY e.machine, e.from_ts
