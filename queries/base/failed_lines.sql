-- The kept lines of the logs of failed attempts number $from_row to $to_row. Of an attempt that others follow in its log, ordinary lines are counted to its last kept line, and whether it went on
-- to work is not known.
WITH lines AS (
    SELECT l.*, coalesce(l.attempt, s.attempt, j.attempts - 1) AS of_attempt, s.attempt < j.attempts - 1 AS followed
    FROM job_logs AS l JOIN base_jobs AS j USING (job) LEFT JOIN base_line_attempts AS s ON s.job = l.job AND s.stream = l.stream AND s.line_no = l.line_no
    WHERE l.cluster = $cluster
)
SELECT f.row, l.signature, l.line_no, l.text, l.rank,
       coalesce(l.ordinary_after, 0) - CASE WHEN followed THEN min(coalesce(l.ordinary_after, 0)) OVER (PARTITION BY f.row, l.stream) ELSE 0 END AS ordinary_after,
       coalesce(l.work_after, false) AND followed IS NOT TRUE AS work_after, coalesce(l.count, 1) AS times, l.stream, epoch(l.ts) AS ts
FROM lines AS l JOIN base_failed AS f ON f.job = l.job AND f.attempt = l.of_attempt
WHERE f.row BETWEEN $from_row AND $to_row
ORDER BY f.row, l.stream, l.line_no
