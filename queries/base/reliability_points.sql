-- Steps and checkpoints that logs name, with the attempt: a stamp decides (the attempt that had started last); a line without one is of the stamped line before it, a loaded checkpoint and what follows it of the stamped line after it.
WITH lines AS (
    SELECT job, attempt, coalesce(stream, '') AS stream, line_no, ts, 'step' AS kind, step, NULL::DOUBLE AS value FROM progress WHERE cluster = $cluster AND step IS NOT NULL
    UNION ALL SELECT job, attempt, coalesce(stream, ''), line_no, ts, kind, step, value FROM training_marks WHERE cluster = $cluster
),
stamped AS (
    SELECT l.*, coalesce(l.attempt, CASE WHEN l.ts IS NOT NULL THEN coalesce(a.attempt, 0) END) AS known
    FROM lines AS l ASOF LEFT JOIN (FROM base_attempts WHERE start_ts IS NOT NULL) AS a ON l.job = a.job AND l.ts >= a.start_ts
),
anchored AS (
    SELECT *, CASE WHEN known IS NULL AND kind = 'loaded' THEN first_value(known IGNORE NULLS) OVER (PARTITION BY job, stream ORDER BY line_no ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) ELSE known END AS anchor
    FROM stamped
)
SELECT b.number, p.line_no, p.kind, p.step, p.value, epoch(p.ts) AS ts_s
FROM (SELECT *, last_value(anchor IGNORE NULLS) OVER (PARTITION BY job, stream ORDER BY line_no) AS of_attempt FROM anchored) AS p
JOIN base_attempts AS b ON b.job = p.job AND b.attempt = p.of_attempt
ORDER BY b.number, p.stream, p.line_no
