-- Attempts, from queueing to release, that span a change of a clock whose stamps carry no zone.
WITH zone AS (
    SELECT timezone AS name FROM clusters WHERE cluster = $cluster AND clock = 'wall'
)
SELECT count(*) AS attempts
FROM (SELECT coalesce(queued_ts, start_ts) AS from_ts, held_until_ts AS to_ts FROM base_attempts) CROSS JOIN zone
WHERE epoch(to_ts - from_ts) <> epoch(timezone(zone.name, to_ts) - timezone(zone.name, from_ts))
