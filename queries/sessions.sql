-- title: Interactive sessions and batch jobs
-- section: utilization
-- order: 64
-- question: How much do interactive sessions hold, and how much of that is idle at night?
-- population: jobs that held GPUs, by the way in which they were started: according to the command line and name in accounting, else inferred from their steps. Night: 22:00 to 06:00 in the log's time zone.
-- detail: yes
-- needs: attempts
-- column: started_as | - | batch; interactive: salloc, srun --pty, jupyter (inferred from the name or command line), salloc or srun (inferred: no batch step); srun: without a terminal; empty: not known
-- column: jobs | jobs | jobs that held GPUs
-- column: users | users | their users
-- column: gpu_hours | GPU-h | held by them
-- column: night_gpu_hours | GPU-h | of these, at night
-- column: measured_jobs | jobs | jobs with GPU utilization; the following columns are empty without telemetry
-- column: gpu_util_mean | % | their mean GPU utilization, weighted by GPU-hours
-- column: night_idle_gpu_hours | GPU-h | part of night_gpu_hours in hours in which all GPUs of a job were at exactly 0 %
SELECT u.started_as, count(*) AS jobs, count(DISTINCT u."user") AS users, sum(n.gpu_hours::DECIMAL(28, 9))::DOUBLE AS gpu_hours,
       sum(n.night_gpu_hours::DECIMAL(28, 9))::DOUBLE AS night_gpu_hours, count(u.gpu_util_mean) AS measured_jobs,
       sum((u.gpu_util_mean * n.gpu_hours)::DECIMAL(28, 9))::DOUBLE / nullif(sum(n.gpu_hours::DECIMAL(28, 9)) FILTER (u.gpu_util_mean IS NOT NULL)::DOUBLE, 0) AS gpu_util_mean,
       sum(n.night_idle_gpu_hours::DECIMAL(28, 9))::DOUBLE AS night_idle_gpu_hours
FROM base_request_use AS u JOIN base_night_use AS n USING (job)
GROUP BY u.started_as
ORDER BY gpu_hours DESC, u.started_as
