-- The attempts that held something, from when to when in seconds since 1970, and what is needed to tell why they ended. over: it has ended. job is the id that users see: 12_3 of a task.
SELECT a.number, a.job, coalesce(n.array_job || '_' || n.array_task, a.job) AS shown, a.attempt, n.name, a."user", a.account, n.qos, a.state, a.source_state,
       coalesce(a.gpus, 0) AS gpus, a.gpu_type, a.priority, n.array_job, TRY_CAST(n.array_task AS BIGINT) AS array_task, n.time_limit_s,
       epoch(coalesce(a.queued_ts, a.start_ts)) AS queued_s, epoch(coalesce(a.eligible_ts, a.queued_ts, a.start_ts)) AS eligible_s, epoch(a.start_ts) AS start_s, epoch(a.held_until_ts) AS end_s,
       a.state NOT IN ('pending', 'running', 'suspended') AS over, a.job IN (SELECT job FROM job_outputs WHERE cluster = $cluster) AS has_log, s.preempted_by
FROM base_attempts AS a JOIN numbered_jobs AS n ON n.job = a.job AND n.cluster = $cluster
JOIN (SELECT job, attempt, preempted_by FROM attempts WHERE cluster = $cluster) AS s ON s.job = a.job AND s.attempt = a.attempt
WHERE a.start_ts IS NOT NULL
ORDER BY a.number
