-- How the training of job $job went, by the lines of its logs; one row an attempt and metric, the one with most points first.
SELECT coalesce(p.attempt, greatest(j.attempts - 1, 0)) AS attempt, p.metric, count(*) AS points, arg_min(p.loss, p.line_no) AS first_value,
       min(p.loss) FILTER (isfinite(p.loss)) AS lowest, arg_max(p.loss, p.line_no) AS last_value, count(*) FILTER (NOT isfinite(p.loss)) AS not_finite,
       max(p.epoch) AS last_epoch, max(p.epochs) AS epochs, max(p.step) AS last_step, max(p.steps) AS steps, max(p.line_no) AS line_no,
       arg_max(p.stream, p.line_no) AS stream
FROM progress AS p JOIN base_jobs AS j USING (job)
WHERE p.cluster = $cluster AND p.job = $job
GROUP BY ALL
ORDER BY attempt, points DESC, p.metric NULLS LAST
