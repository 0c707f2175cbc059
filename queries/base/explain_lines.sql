-- The kept lines of the logs of job $job, and where each log is.
SELECT coalesce(l.attempt, s.attempt, greatest(j.attempts - 1, 0)) AS attempt, l.stream, l.line_no, l.text, l.signature, coalesce(l.count, 1) AS count
FROM job_logs AS l JOIN base_jobs AS j USING (job) LEFT JOIN base_line_attempts AS s ON s.job = l.job AND s.stream = l.stream AND s.line_no = l.line_no
WHERE l.cluster = $cluster AND l.job = $job
ORDER BY attempt, l.stream, l.line_no
