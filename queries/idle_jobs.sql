-- title: Idle jobs
-- section: utilization
-- order: 45
-- question: Which jobs left their GPUs idle?
-- population: jobs whose mean GPU utilization is below {idle_below} % (--idle-below), as counted in the tables users, queues and accounts; jobs without telemetry are left out, as their utilization is unknown. If telemetry covers only part of an attempt, that part counts; gpu_hours are all GPU-hours that the job held.
-- detail: yes
-- needs: telemetry
-- column: job | - | the source's job id
-- column: user | - | who submitted it
-- column: queue | - | queue or virtual cluster
-- column: state | - | final state
-- column: num_gpus | GPUs | GPUs of the first attempt
-- column: start_ts | UTC | first attempt's start
-- column: gpu_hours | GPU-h | held by all attempts
-- column: gpu_minutes | GPU-min | samples of its GPUs' utilization, one per GPU and minute
-- column: util_mean_pct | % | mean GPU utilization of these samples
WITH used AS (
    SELECT job, sum(samples) AS samples, sum(total) / sum(samples) / 1e6 AS mean_pct FROM base_job_use GROUP BY job
),
held AS (
    SELECT job, sum(gpu_s)::DOUBLE / 3600 AS hours FROM unfiltered_held GROUP BY job
)
SELECT job, j."user" AS "user", j.queue AS queue, j.state AS state, j.gpus AS num_gpus, j.start_ts AS start_ts,
       h.hours AS gpu_hours, u.samples::BIGINT AS gpu_minutes, u.mean_pct AS util_mean_pct
FROM base_jobs AS j JOIN used AS u USING (job) LEFT JOIN held AS h USING (job)
WHERE u.mean_pct < $idle_below
ORDER BY gpu_hours DESC NULLS LAST, job
