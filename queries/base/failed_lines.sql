-- The kept lines of the logs of failed attempts number $from_row to $to_row; what a log does not say of which attempt it is counts for the last one.
SELECT f.row, l.signature, l.line_no, l.text, l.rank, coalesce(l.ordinary_after, 0) AS ordinary_after, coalesce(l.work_after, false) AS work_after,
       coalesce(l.count, 1) AS times, l.stream, epoch(l.ts) AS ts
FROM job_logs AS l JOIN base_jobs AS j USING (job)
JOIN base_failed AS f ON f.job = l.job AND f.attempt = coalesce(l.attempt, j.attempts - 1)
WHERE l.cluster = $cluster AND f.row BETWEEN $from_row AND $to_row
ORDER BY f.row, l.stream, l.line_no
