-- The attempts of one cluster. GPUs were held from held_from to held_until: before start_ts, too, where a source says that the nodes booted for it first. Seconds to the microsecond of the times they are made of; *_c are seconds on the clock that the log counts durations on (clusters.clock).
-- ran: that it held GPUs is known; gpu_s: GPU-seconds that it held, from allocation to release, container by container where YARN's logs have containers. All GPU-hours of analyses are sums of it.
-- outcome: succeeded | retried | killed | failed | other | unknown (no source states how the job ended).
-- node_s: node-seconds of attempts whose GPUs no source states; a node that several attempts share counts for each of them.
-- A calendar is asked only where it must be: of a million attempts it takes a second for each time.
WITH zone AS (
    SELECT CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS name, source_format LIKE 'slurm%' AS is_slurm FROM clusters WHERE cluster = $cluster
),
times AS NOT MATERIALIZED (
    SELECT a.* EXCLUDE (reason), 
           -- of YARN, the reason tells how it ended, not why it waited
           CASE WHEN zone.is_slurm THEN coalesce(a.reason, CASE WHEN a.attempt = j.attempts - 1 THEN j.reason END) END AS source_reason,
           j.queue, j."user", j.account, j.state AS job_state, j.gpus AS job_gpus, j.nodes AS job_nodes, j.gpu_type, j.gpu_type_request, j.priority, j.size_bucket AS job_size_bucket,
           a.attempt = j.attempts - 1 OR list_contains(a.quirks, 'resized') AS is_last,
           -- a change of a running job's size begins an attempt, but no try and no wait
           coalesce(list_contains(z.resized, a.attempt - 1), false) AS goes_on,
           a.attempt - coalesce(len(list_filter(z.resized, lambda n: n < a.attempt)), 0) AS try,
           CASE WHEN zone.name = 'UTC' THEN epoch(a.queued_ts) ELSE epoch(timezone(zone.name, a.queued_ts)) END AS queued_c,
           CASE WHEN zone.name = 'UTC' THEN epoch(coalesce(a.eligible_ts, a.queued_ts)) ELSE epoch(timezone(zone.name, coalesce(a.eligible_ts, a.queued_ts))) END AS eligible_c,
           CASE WHEN zone.name = 'UTC' THEN epoch(a.start_ts) ELSE epoch(timezone(zone.name, a.start_ts)) END AS start_c,
           least(a.allocated_ts, a.start_ts) AS got_ts,
           CASE WHEN zone.name = 'UTC' THEN epoch(a.released_ts) ELSE epoch(timezone(zone.name, a.released_ts)) END AS released_c
    FROM attempts AS a JOIN base_jobs AS j USING (job) CROSS JOIN zone
    LEFT JOIN (SELECT job, list(attempt) AS resized FROM attempts WHERE cluster = $cluster AND list_contains(quirks, 'resized') GROUP BY job) AS z USING (job)
    WHERE a.cluster = $cluster
),
-- YARN gives and takes containers one by one; base_holdings has those of the attempts that are by_container
given AS (
    SELECT c.job, c.attempt, sum((c.gpus * (epoch_us(c.end_ts) - epoch_us(c.allocated_ts)) / 1000000)::DECIMAL(28, 6))::DOUBLE AS ended_gpu_s,
           coalesce(sum(c.gpus) FILTER (c.end_ts IS NULL), 0) AS open_gpus, coalesce(sum(c.gpus * epoch(c.allocated_ts)) FILTER (c.end_ts IS NULL), 0) AS open_from
    FROM containers AS c
    WHERE c.cluster = $cluster AND c.gpus > 0 AND c.allocated_ts IS NOT NULL AND c.source_state IS DISTINCT FROM 'RESERVED'
      AND c.job IN (SELECT job FROM yarn_built WHERE cluster = $cluster)
    GROUP BY ALL
),
log AS (
    SELECT max(greatest(submit_ts, start_ts, end_ts)) AS ts FROM base_jobs
),
-- what still ran is known to have run until the last time that its own source tells, or that the queue was seen with it
shown AS NOT MATERIALIZED (
    SELECT times.*, CASE WHEN released_ts IS NULL THEN greatest(e.end_ts, s.seen_ts) END AS shown_ts
    FROM times LEFT JOIN base_source_ends AS e USING (source) LEFT JOIN base_last_samples AS s USING (job)
),
log_end AS (
    SELECT greatest((SELECT ts FROM log), max(start_ts), max(end_ts), max(shown_ts)) AS ts FROM shown
),
ordered AS (
    SELECT shown.* EXCLUDE (released_c, got_ts, shown_ts, cluster) REPLACE (CASE WHEN NOT goes_on THEN round(wait_s, 6) END AS wait_s, round(run_s, 6) AS run_s),
           log_end.ts AS log_end_ts,
           -- least() of what is known; without a start nothing is known to have been held
           CASE WHEN start_ts IS NOT NULL THEN got_ts END AS held_from_ts,
           CASE WHEN start_ts IS NULL THEN NULL WHEN got_ts = start_ts THEN start_c WHEN zone.name = 'UTC' THEN epoch(got_ts) ELSE epoch(timezone(zone.name, got_ts)) END AS held_from_c,
           coalesce(released_ts, shown_ts, log_end.ts) AS held_until_ts,
           greatest(CASE WHEN released_ts IS NOT NULL THEN released_c ELSE epoch(timezone(zone.name, coalesce(shown_ts, log_end.ts))) END, start_c) AS held_until_c,
           -- some sources state how long it ran and not when: SWF without waits
           start_ts IS NOT NULL OR shown.run_s IS NOT NULL AS ran,
           given.job IS NOT NULL AND start_ts IS NOT NULL AND shown.gpus IS NOT NULL AND NOT list_has_any(shown.quirks, ['gpus_partial', 'gpus_estimated']) AS by_container,
           CASE WHEN by_container THEN coalesce(ended_gpu_s, 0) + greatest(open_gpus * epoch(held_until_ts) - open_from, 0)
                ELSE shown.gpus * CASE WHEN start_ts IS NOT NULL THEN held_until_c - held_from_c ELSE shown.run_s END END AS gpu_s,
           CASE WHEN shown.gpus IS NULL
                THEN coalesce(nullif(servers, 0), nullif(job_nodes, 0)) * CASE WHEN start_ts IS NOT NULL THEN held_until_c - held_from_c ELSE shown.run_s END END AS node_s,
           CASE WHEN shown.gpus IS NULL THEN 'unknown' WHEN shown.gpus = 0 THEN '0' WHEN shown.gpus <= 1 THEN '1' WHEN shown.gpus <= 4 THEN '2-4'
                WHEN shown.gpus <= 8 THEN '5-8' ELSE '>8' END AS size_bucket,
           CASE WHEN NOT is_last THEN 'retried' WHEN state = 'running' THEN 'other' WHEN job_state = 'completed' THEN 'succeeded'
                WHEN job_state IN ('killed', 'timeout', 'preempted') THEN 'killed'
                WHEN job_state IN ('failed', 'out_of_memory', 'node_fail') THEN 'failed'
                WHEN job_state = 'unknown' THEN 'unknown' ELSE 'other' END AS outcome
    FROM shown CROSS JOIN zone CROSS JOIN log_end LEFT JOIN given USING (job, attempt)
    ORDER BY job, attempt
)
-- numbered in this order: other tables name an attempt by one number
SELECT *, (row_number() OVER ())::INTEGER - 1 AS number FROM ordered
