-- The attempts of one cluster that ended without success, what its scheduler says of each, and where each ran. A user's or administrator's own ending is no failure.
-- rtf_s is the run time to failure: how long it held its GPUs; an attempt that the next one of its job overlaps counts to that one's start, as elsewhere.
WITH failed AS (
    SELECT a.job, a.attempt, a.queue, a."user", a.gpus, a.size_bucket, a.servers, a.start_ts, a.end_ts, a.start_c, a.state, a.job_state, a.is_last, a.gpu_s,
           a.exit_code, a.exit_signal, epoch(a.end_ts) AS end_s,
           CASE WHEN a.start_ts IS NOT NULL AND a.released_ts IS NOT NULL THEN round(a.held_until_c - a.start_c, 6)
                WHEN a.start_ts IS NULL THEN a.run_s END AS rtf_s,
           CASE WHEN a.gpus IS NULL THEN 'unknown' WHEN a.gpus = 0 THEN '0' WHEN a.gpus <= 1 THEN '1' WHEN a.gpus <= 4 THEN '2-4' ELSE '>4' END AS size_class
    FROM base_attempts AS a
    WHERE a.state IN ('failed', 'out_of_memory', 'node_fail', 'timeout', 'preempted')
),
source AS (SELECT source_format LIKE 'slurm%' AS is_slurm FROM clusters WHERE cluster = $cluster),
own_words AS (
    -- of Slurm's reasons, most say why a job waited; those of other sources are messages of their own
    SELECT a.job, a.attempt, 0 AS rank, coalesce(a.reason, CASE WHEN f.is_last THEN j.reason END) AS text
    FROM attempts AS a JOIN failed AS f USING (job, attempt) JOIN base_jobs AS j USING (job) CROSS JOIN source
    LEFT JOIN base_reasons AS r ON source.is_slurm AND r.reason = split_part(coalesce(a.reason, CASE WHEN f.is_last THEN j.reason END), ',', 1)
    WHERE a.cluster = $cluster AND coalesce(r.category, 'end_reason') = 'end_reason'
),
containers_words AS (
    -- 0: it ended well; -105, -106, -107: its own master, or YARN at the end of the application, ended it
    SELECT c.job, c.attempt, 1 AS rank, c.reason AS text
    FROM containers AS c JOIN failed AS f USING (job, attempt)
    WHERE c.cluster = $cluster AND coalesce(c.exit_code, 1) NOT IN (0, -105, -106, -107)
),
machine_words AS (
    -- what befell a node while the attempt ran, or so soon after that a health check may have found what ended it
    SELECT p.job, p.attempt, 2 AS rank, e.reason || ' (machine ' || p.machine || ')' AS text
    FROM base_placements AS p JOIN failed AS f USING (job, attempt)
    JOIN base_machine_events AS e ON e.machine = p.machine AND e.from_c >= p.start_c AND e.from_c <= p.held_until_c + 300
),
gpu_words AS (
    -- XIDs up to 10 minutes before the end; 45, and 43 at the end itself, follow from the end. Of a user's XID it must be known who held the GPU.
    SELECT x.job, x.attempt, 3 AS rank,
           printf('NVRM: Xid (%s): %d, %s [GPU %s of %s, %d s before the end; by its time]', CASE x.origin WHEN 'log' THEN 'kernel log' ELSE 'exporter' END, x.code,
                  coalesce(x.text, 'no text'), coalesce(x.gpu::VARCHAR, '?'), x.machine, round(f.end_s - epoch(x.ts))::BIGINT) AS text
    FROM (SELECT unnest(jobs) AS job, unnest(attempts) AS attempt, len(jobs) AS holders, * EXCLUDE (jobs, attempts) FROM gpu_faults WHERE cluster = $cluster AND signal = 'xid') AS x
    JOIN failed AS f USING (job, attempt)
    WHERE f.end_s - epoch(x.ts) BETWEEN -60 AND 600 AND x.code <> 45 AND NOT (x.code = 43 AND abs(f.end_s - epoch(x.ts)) <= 5)
      AND (x.holders = 1 OR f.servers > 1 OR x.code NOT IN (13, 31, 43))
),
words AS (
    SELECT job, attempt, list(text ORDER BY rank, text)[1:8] AS texts
    FROM (SELECT DISTINCT job, attempt, rank, text FROM (
        FROM own_words UNION ALL FROM containers_words UNION ALL FROM machine_words UNION ALL FROM gpu_words
    ) WHERE trim(text) <> '')
    GROUP BY ALL
),
outputs AS (
    -- a log that names no attempt is of the last one, and of those that its lines are of
    SELECT o.job, coalesce(o.attempt, j.attempts - 1) AS attempt FROM job_outputs AS o JOIN base_jobs AS j USING (job) WHERE o.cluster = $cluster
    UNION SELECT job, attempt FROM base_line_attempts
)
SELECT f.* EXCLUDE (gpu_s), CASE WHEN f.rtf_s IS NOT NULL THEN f.gpu_s END / 3600 AS gpu_hours, coalesce(p.machines, []::VARCHAR[]) AS machines, coalesce(w.texts, []::VARCHAR[]) AS texts, o.job IS NOT NULL AS has_log
FROM failed AS f LEFT JOIN base_gang_machines AS p USING (job, attempt) LEFT JOIN words AS w USING (job, attempt) LEFT JOIN outputs AS o USING (job, attempt)
ORDER BY f.job, f.attempt
