-- Of which attempt each kept line is, in logs that hold several (Slurm appends after a requeue). A stamp decides where the line has one: the attempt that had started last. A line without one
-- is of the attempt of the stamped line before it, or of a later one where Slurm's own word that it ended an attempt stands between; without either, of the next stamped line's. What none of them tells
-- counts for the last attempt.
WITH mixed AS (
    SELECT l.job, l.stream, l.line_no, max(l.ts) AS ts, any_value(j.attempts) AS attempts,
           -- one preemption is told of each step and of the job, on each node: what is told within a minute is one
           max(TRY_CAST(nullif(regexp_extract(l.text, '[*]{3} (?:JOB|STEP) .{1,80} CANCELLED AT ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8})', 1), '') AS TIMESTAMP)) AS told
    FROM job_logs AS l JOIN base_jobs AS j USING (job)
    WHERE l.cluster = $cluster AND l.attempt IS NULL AND j.attempts > 1
    GROUP BY ALL
    UNION ALL
    -- lines about training have stamps where those of errors have none
    SELECT p.job, p.stream, p.line_no, max(p.ts), any_value(j.attempts), NULL
    FROM (SELECT cluster, job, attempt, stream, line_no, ts FROM progress UNION ALL SELECT cluster, job, attempt, stream, line_no, ts FROM training_marks) AS p JOIN base_jobs AS j USING (job)
    WHERE p.cluster = $cluster AND p.attempt IS NULL AND j.attempts > 1 AND p.ts IS NOT NULL
    GROUP BY ALL
),
endings AS (
    SELECT *, told IS NOT NULL AND epoch(told) - coalesce(max(epoch(told)) OVER (PARTITION BY job, stream ORDER BY line_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), '-inf'::DOUBLE) > 60 AS ends
    FROM mixed
),
stamped AS (
    SELECT m.*, CASE WHEN m.ts IS NOT NULL THEN coalesce(a.attempt, 0) END AS by_stamp,
           -- other lines of one ending are of the attempt that it ended
           count(*) FILTER (ends) OVER before - (m.told IS NOT NULL AND NOT m.ends)::INTEGER AS ended
    FROM endings AS m ASOF LEFT JOIN (FROM base_attempts WHERE start_ts IS NOT NULL) AS a ON m.job = a.job AND m.ts >= a.start_ts
    WINDOW before AS (PARTITION BY m.job, m.stream ORDER BY m.line_no RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
near AS (
    SELECT *, last_value(by_stamp IGNORE NULLS) OVER (PARTITION BY job, stream ORDER BY line_no) AS earlier,
           first_value(by_stamp IGNORE NULLS) OVER (PARTITION BY job, stream ORDER BY line_no ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS later,
           max(ended) OVER (PARTITION BY job, stream) > 0 OR bool_or(ends) OVER (PARTITION BY job, stream) AS parted
    FROM stamped
)
SELECT job, stream, line_no, least(coalesce(by_stamp, greatest(earlier, CASE WHEN parted THEN ended END), later, attempts - 1), attempts - 1)::INTEGER AS attempt
FROM near
SEMI JOIN (FROM job_logs WHERE cluster = $cluster AND attempt IS NULL) USING (job, stream, line_no)
