-- title: Waits while suitable GPUs were free
-- section: delays
-- order: 60
-- question: What held attempts back although the replay finds free GPUs for them?
-- population: the scheduler hours of delay_by_size: {delays_while_free} attempt{delays_while_free||s}. If the queue was sampled during an attempt's wait, the time is split in proportion to the reasons in the samples. Otherwise, if the scheduler recorded a licence, an administrator, a reservation or missing nodes as the reason, all of the time counts there: an upper bound, as the record has no times. Slurm keeps a limit as the reason while the job waits for others (34 % and 11 % of the samples in such waits on two recorded clusters), so this time is due to the limit or to priority; limits on GPUs that are loaded (sacctmgr show assoc, show qos) are replayed instead, as fair share. All other time is split by replay: behind an attempt of the same queue with a higher priority, or not (priorities are from the jobs' last records; none is found for sources without priorities). CPUs, memory and backfill reservations are not replayed.
-- needs: placements
-- column: held_by | - | the kind of the scheduler's reason: any kind in samples; else quota or priority, license, admin, reservation, nodes_unavailable_or_planned; priority by replay; else not stated
-- column: told_by | - | source of the reason: samples, replay, the scheduler's reason, or neither
-- column: attempts | attempts | attempts with such time; an attempt may be in several rows
-- column: hours | h | the time; for a reason, an upper bound
-- column: samples | samples | samples of the queue (squeue, gpuctl sample) taken during such waits, at instants with the cause scheduler: those with this reason; in rows without samples, those that would get this reason
-- column: agree_pct | % | confidence of rows without samples: share of the samples whose reason is of this kind (for priority: priority); empty without samples
WITH sampled AS (
    SELECT s.job, s.attempt, s.behind, coalesce(r.category, 'unknown') AS category
    FROM base_sampled_causes AS s LEFT JOIN base_reasons AS r ON r.reason = split_part(s.reason, ',', 1)
    WHERE s.cause = 'scheduler'
),
labelled AS (
    SELECT d.job, d.attempt, d.scheduler_s, d.behind_s, EXISTS (FROM sampled AS s WHERE s.job = d.job AND s.attempt = d.attempt) AS is_sampled,
           CASE WHEN r.category = 'quota' THEN 'quota or priority'
                WHEN r.category IN ('license', 'admin', 'reservation', 'nodes_unavailable_or_planned') THEN r.category END AS label
    FROM base_delays AS d LEFT JOIN base_reasons AS r ON r.reason = split_part(d.source_reason, ',', 1)
    WHERE d.scheduler_s > 0
),
parts AS (
    -- what accounting and the replay tell, whether there are samples or not
    SELECT job, attempt, is_sampled, 'priority' AS held_by, 'replay' AS told_by, behind_s AS seconds FROM labelled WHERE behind_s > 0 AND label IS NULL
    UNION ALL
    SELECT job, attempt, is_sampled, coalesce(label, 'not stated'), CASE WHEN label IS NULL THEN 'neither' ELSE 'reason' END, scheduler_s - CASE WHEN label IS NULL THEN behind_s ELSE 0 END AS rest
    FROM labelled WHERE rest > 0
),
split AS (
    SELECT job, attempt, category AS held_by, 'samples' AS told_by, any_value(scheduler_s) * count(*) / any_value(n) AS seconds, count(*) AS samples
    FROM (SELECT *, count(*) OVER (PARTITION BY job, attempt) AS n FROM sampled) JOIN labelled USING (job, attempt)
    GROUP BY job, attempt, category
),
confidence AS (
    SELECT p.held_by, p.told_by, count(*) AS samples,
           CASE WHEN p.held_by <> 'not stated' THEN 100.0 * count(*) FILTER (list_contains(string_split(p.held_by, ' or '), s.category)) / count(*) END AS agree_pct
    FROM parts AS p JOIN sampled AS s USING (job, attempt)
    WHERE p.told_by = 'reason' OR s.behind = (p.held_by = 'priority')
    GROUP BY p.held_by, p.told_by
),
told AS (
    SELECT held_by, told_by, count(*) FILTER (NOT is_sampled) AS attempts, coalesce(sum(seconds::DECIMAL(28, 9)) FILTER (NOT is_sampled), 0)::DOUBLE / 3600 AS hours, NULL AS samples
    FROM parts GROUP BY ALL
    UNION ALL
    SELECT held_by, told_by, count(*), sum(seconds::DECIMAL(28, 9))::DOUBLE / 3600, sum(samples)::BIGINT FROM split GROUP BY ALL
)
SELECT held_by, told_by, t.attempts, t.hours, coalesce(t.samples, c.samples, 0) AS samples, c.agree_pct
FROM told AS t LEFT JOIN confidence AS c USING (held_by, told_by)
WHERE t.attempts > 0 OR c.samples > 0
ORDER BY t.hours DESC, held_by, told_by
