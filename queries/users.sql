-- title: Users
-- section: overview
-- order: 40
-- question: Who used the GPUs, and whose GPU-hours were lost?
-- population: {jobs} jobs; {attempts} attempts less {attempts_without_start} without a start. Lost is as in gpu_hours_lost: GPU-hours of attempts that did not end in success. Who loses much need not be to blame. GPU-hours are empty where no source tells the GPUs of any of a user's attempts.
-- column: user | - | who submitted; empty where the source names nobody
-- column: jobs | jobs | jobs submitted
-- column: gpu_hours | GPU-h | held by all attempts
-- column: lost_gpu_hours | GPU-h | held by attempts that did not end in success: the sum of the three kinds
-- column: lost_pct | % | share of all users' lost GPU-hours
-- column: own_lost_pct | % | share of this user's own GPU-hours
-- column: failed_h | GPU-h | lost by the last attempt of jobs that failed, ran out of memory or lost a machine
-- column: killed_h | GPU-h | lost by the last attempt of jobs that were killed, cancelled after their start, ran into their time limit or were preempted
-- column: retried_h | GPU-h | lost by attempts that were followed by another one
WITH held AS (
    SELECT "user", (gpus * (held_until_c - held_from_c) / 3600)::DECIMAL(28, 9) AS hours,
           CASE WHEN NOT is_last THEN 'retried' WHEN state = 'running' THEN 'other'
                WHEN job_state IN ('killed', 'timeout', 'preempted') THEN 'killed'
                WHEN job_state IN ('failed', 'out_of_memory', 'node_fail') THEN 'failed' ELSE 'other' END AS outcome
    FROM base_attempts
    WHERE start_ts IS NOT NULL
),
summed AS (
    SELECT "user", sum(hours) AS hours, coalesce(sum(hours) FILTER (outcome = 'failed'), 0) AS failed,
           coalesce(sum(hours) FILTER (outcome = 'killed'), 0) AS killed, coalesce(sum(hours) FILTER (outcome = 'retried'), 0) AS retried
    FROM held
    GROUP BY "user"
    HAVING count(hours) > 0
),
submitted AS (
    SELECT "user", count(*) AS jobs FROM base_jobs GROUP BY "user"
)
SELECT j."user" AS "user", j.jobs, s.hours::DOUBLE AS gpu_hours, (s.failed + s.killed + s.retried)::DOUBLE AS lost_gpu_hours,
       100 * (s.failed + s.killed + s.retried)::DOUBLE / nullif(sum(s.failed + s.killed + s.retried) OVER ()::DOUBLE, 0) AS lost_pct,
       100 * (s.failed + s.killed + s.retried)::DOUBLE / nullif(s.hours::DOUBLE, 0) AS own_lost_pct,
       s.failed::DOUBLE AS failed_h, s.killed::DOUBLE AS killed_h, s.retried::DOUBLE AS retried_h
FROM submitted AS j LEFT JOIN summed AS s ON s."user" IS NOT DISTINCT FROM j."user"
ORDER BY lost_gpu_hours DESC NULLS LAST, gpu_hours DESC NULLS LAST, j.jobs DESC, j."user"
