-- The reasons that the scheduler gave while the attempts of job $job waited (squeue), and what the replay finds at most of these instants.
SELECT s.attempt, s.reason, s.eligible, count(*) AS samples, min(s.at_c) AS first_c, max(s.at_c) AS last_c, mode(c.cause) AS cause
FROM base_queue_samples AS s LEFT JOIN base_sampled_causes AS c USING (job, attempt, at_c)
WHERE s.job = $job
GROUP BY ALL
ORDER BY s.attempt, first_c, s.reason
