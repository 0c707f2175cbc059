-- How complete the GPU telemetry is: rows, minutes without any row, values that are NA, rows that repeat another one in everything, and rows of
-- a node and time of which another one has other values.
SELECT count(*) AS rows, min(ts) AS first_ts, max(ts) AS last_ts,
       (date_diff('minute', min(ts), max(ts)) + 1 - count(DISTINCT date_trunc('minute', ts)))::BIGINT AS missing,
       coalesce(sum(len(util) - list_count(util)), 0)::BIGINT AS na,
       count(*) - count(DISTINCT hash(machine, ts, util, mem_mb)) AS repeated,
       count(DISTINCT hash(machine, ts, util, mem_mb)) - count(DISTINCT hash(machine, ts)) AS contradicting,
       (SELECT count(*) - count(DISTINCT hash(machine, ts, cpu_pct, mem_total_kb, mem_free_kb)) FROM host_util WHERE cluster = $cluster) AS host_repeated
FROM gpu_samples
WHERE cluster = $cluster
