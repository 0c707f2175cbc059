-- title: Waiting while GPUs that fit were free
-- section: delays
-- question: What held attempts back although the replay finds GPUs for them?
-- population: the scheduler hours of delay_by_size: {delays_while_free} attempts. Where the scheduler named a licence, an administrator, a reservation or missing nodes as the attempt's reason, all of this time counts there, an upper bound: it does not say when that held. Slurm goes on naming a limit while the job waits for others (on two recorded clusters, 34 % and 11 % of the samples in such waits named one), so that this time is of the limit or of priority; limits on GPUs that are loaded (sacctmgr show assoc, show qos) are replayed instead, as fair share. Else it is split by replay: behind an attempt of the same queue with a higher priority, or not (priorities are those of the jobs' last records; none is found for sources that tell none). CPUs, memory and the reservations of backfill are not replayed.
-- needs: placements
-- column: held_by | - | the kind of the scheduler's reason: quota or priority, license, admin, reservation, nodes_unavailable_or_planned; priority by replay; else not told
-- column: told_by | - | replay, the scheduler's reason, or neither
-- column: attempts | attempts | attempts with such a time; one may be in several rows
-- column: hours | h | the time; for a reason, an upper bound
-- column: samples | samples | instants at which the queue was sampled, in such waits and with the cause scheduler (squeue, gpuctl sample)
-- column: agree_pct | % | confidence: share of those samples whose reason is of that kind; empty without samples
WITH labelled AS (
    SELECT d.job, d.attempt, d.scheduler_s, d.behind_s,
           CASE WHEN r.category = 'quota' THEN 'quota or priority'
                WHEN r.category IN ('license', 'admin', 'reservation', 'nodes_unavailable_or_planned') THEN r.category END AS label
    FROM base_delays AS d LEFT JOIN base_reasons AS r ON r.reason = split_part(d.source_reason, ',', 1)
    WHERE d.scheduler_s > 0
),
parts AS (
    SELECT job, attempt, 'priority' AS held_by, 'replay' AS told_by, behind_s AS seconds FROM labelled WHERE behind_s > 0 AND label IS NULL
    UNION ALL
    SELECT job, attempt, coalesce(label, 'not told'), CASE WHEN label IS NULL THEN 'neither' ELSE 'reason' END, scheduler_s - CASE WHEN label IS NULL THEN behind_s ELSE 0 END AS rest
    FROM labelled WHERE rest > 0
),
sampled AS (
    SELECT s.job, s.attempt, s.behind, coalesce(r.category, 'unknown') AS category
    FROM base_sampled_causes AS s LEFT JOIN base_reasons AS r ON r.reason = split_part(s.reason, ',', 1)
    WHERE s.cause = 'scheduler'
),
confidence AS (
    SELECT p.held_by, p.told_by, count(*) AS samples,
           CASE WHEN p.held_by <> 'not told' THEN 100.0 * count(*) FILTER (list_contains(string_split(p.held_by, ' or '), s.category)) / count(*) END AS agree_pct
    FROM parts AS p JOIN sampled AS s USING (job, attempt)
    WHERE p.told_by = 'reason' OR s.behind = (p.held_by = 'priority')
    GROUP BY p.held_by, p.told_by
)
SELECT held_by, told_by, count(*) AS attempts, sum(seconds) / 3600 AS hours, coalesce(any_value(c.samples), 0) AS samples,
       any_value(c.agree_pct) AS agree_pct
FROM parts LEFT JOIN confidence AS c USING (held_by, told_by)
GROUP BY ALL
ORDER BY hours DESC, held_by
