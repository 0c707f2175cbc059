-- From the first submission or start to the last time that the log of the jobs tells; no length where it tells only one.
SELECT min(first_ts) AS first_ts, max(greatest(first_ts, last_ts)) AS last_ts
FROM (
    SELECT least(queued_ts, held_from_ts) AS first_ts, greatest(log_end_ts, held_until_ts) AS last_ts FROM base_attempts
    UNION ALL
    SELECT queued_ts, until_ts FROM base_never_started
)
