-- From the first submission or start to the last time that the log of the jobs tells; no length where it tells only one.
-- first_ts is NULL if the log has no such time, and if series of periods over so long a time (years) would fill memory.
SELECT CASE WHEN years <= CASE $by WHEN 'hour' THEN 60 ELSE 1400 END THEN first_ts END AS first_ts, last_ts, years
FROM (
    SELECT *, (epoch(last_ts) - epoch(first_ts)) / (365.25 * 86400) AS years
    FROM (
        SELECT min(first_ts) AS first_ts, max(greatest(first_ts, last_ts)) AS last_ts
        FROM (
            SELECT least(queued_ts, held_from_ts) AS first_ts, greatest(log_end_ts, held_until_ts) AS last_ts FROM base_attempts
            UNION ALL
            SELECT queued_ts, until_ts FROM base_never_started
        )
    )
)
