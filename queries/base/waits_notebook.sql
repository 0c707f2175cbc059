-- The waits of Fig. 3 as the notebook published with the Philly trace counts them, in minutes.
--
-- Going through a job's attempts, the delay is start - queue_time where both are known; queue_time is then this
-- attempt's end, known or not. The delay is appended for every attempt, so one with a missing time repeats the
-- delay before it. Zero delays are dropped, negative ones stay. The bucket is that of the job's first attempt.
WITH started AS (
    SELECT job, attempt, start_c, end_c, submit_c,
           lag(end_c) OVER by_job AS previous_end, row_number() OVER by_job AS nth,
           bool_or(end_c IS NULL) OVER (PARTITION BY job ORDER BY attempt ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
               AS lost
    FROM base_notebook_attempts
    WHERE start_c IS NOT NULL
    WINDOW by_job AS (PARTITION BY job ORDER BY attempt)
),
fresh AS (
    SELECT job, attempt, start_c - CASE WHEN nth = 1 THEN submit_c ELSE previous_end END AS delay_s
    FROM started
    WHERE NOT coalesce(lost, false) AND submit_c IS NOT NULL
),
appended AS (
    SELECT n.job, n.attempt,
           last_value(f.delay_s IGNORE NULLS) OVER (PARTITION BY n.job ORDER BY n.attempt
               ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS delay_s
    FROM base_notebook_attempts AS n LEFT JOIN fresh AS f USING (job, attempt)
)
SELECT job, attempt, j."user", j.queue, j.account, j.size_bucket, delay_s AS seconds, delay_s / 60 AS minutes
FROM appended JOIN base_jobs AS j USING (job)
WHERE delay_s IS NOT NULL AND delay_s <> 0
