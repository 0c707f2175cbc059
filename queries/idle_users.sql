-- title: Idle GPU-hours by user
-- section: utilization
-- order: 44
-- question: Who held GPUs at 0 %, and how well are the GPUs of each user used?
-- population: {measured_jobs} of {gpu_jobs} job{gpu_jobs||s} with GPUs: those with a mean in job_gpu_usage, which is withheld where telemetry covers too little of a job, or where it is not known which GPUs it held. {telemetry_note}. Users without such a job are left out.
-- needs: mean gpu utilization of jobs
-- column: user | - | who submitted; empty where the source names no user
-- column: measured_jobs | jobs | jobs with a mean
-- column: gpu_hours | GPU-h | held by all attempts of these jobs
-- column: util_mean_pct | % | their mean GPU utilization, weighted by gpu_hours
-- column: gpus_unused | GPUs | GPUs of their last attempts that were never used
-- column: idle_gpu_hours | GPU-h | of gpu_hours, those at exactly 0 % for at least the time of --idle-after; of a summary (jobstats), those of gpus_unused
-- column: own_idle_pct | % | idle_gpu_hours over gpu_hours
-- column: idle_pct | % | share of the idle GPU-hours of all users
WITH used AS (
    SELECT j."user" AS "user", count(*) AS measured_jobs, sum(u.gpu_hours::DECIMAL(28, 9))::DOUBLE AS gpu_hours,
           sum((u.gpu_util_mean * u.gpu_hours)::DECIMAL(28, 9))::DOUBLE / nullif(sum(u.gpu_hours::DECIMAL(28, 9))::DOUBLE, 0) AS util_mean_pct,
           sum(u.gpus_unused)::BIGINT AS gpus_unused, sum(u.idle_gpu_h::DECIMAL(28, 9))::DOUBLE AS idle_gpu_hours
    FROM job_gpu_usage AS u JOIN base_jobs AS j USING (job)
    WHERE u.cluster = $cluster AND u.gpu_util_mean IS NOT NULL
    GROUP BY ALL
)
SELECT *, 100 * idle_gpu_hours / nullif(gpu_hours, 0) AS own_idle_pct, 100 * idle_gpu_hours / nullif(sum(idle_gpu_hours) OVER (), 0) AS idle_pct
FROM used
ORDER BY idle_gpu_hours DESC NULLS LAST, gpu_hours DESC, "user"
