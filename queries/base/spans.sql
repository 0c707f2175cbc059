-- When each attempt held its GPUs, from allocation to release, where that is known: one row an attempt, of containers of YARN one a container.
-- *_us are microseconds since 1970, *_c seconds on the clock that the log counts durations on: their differences are the seconds held, as in base_held.
-- nodes: those held by attempts whose GPUs no source states. With --since or --until, spans_within.sql stands for these rows.
SELECT job, attempt, "user", queue, account, size_bucket, state, outcome, gpus, CASE WHEN gpus IS NULL THEN coalesce(nullif(servers, 0), nullif(job_nodes, 0)) END AS nodes,
       epoch_us(held_from_ts) AS from_us, greatest(epoch_us(held_until_ts), epoch_us(start_ts)) AS until_us, held_from_c, held_until_c
FROM base_attempts
WHERE start_ts IS NOT NULL AND NOT by_container
UNION ALL
SELECT h.job, h.attempt, a."user", h.queue, a.account, a.size_bucket, a.state, a.outcome, h.gpus, NULL,
       epoch_us(h.held_from_ts), epoch_us(h.held_until_ts), h.held_from_c, h.held_until_c
FROM base_holdings AS h JOIN (SELECT job, attempt, "user", account, size_bucket, state, outcome FROM base_attempts) AS a USING (job, attempt)
