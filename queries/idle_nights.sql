-- title: GPUs held idle at night
-- section: utilization
-- order: 65
-- question: Which jobs held GPUs at night without using them?
-- population: jobs with GPU telemetry whose GPUs were all at exactly 0 % for whole hours of a night, 22:00 to 06:00 in the log's time zone; an hour in which a job used one of its GPUs does not count. Batch jobs are included.
-- detail: yes
-- needs: telemetry
-- column: job | - | the source's job id
-- column: user | - | who submitted it
-- column: account | - | the account to which it is charged
-- column: started_as | - | batch, salloc, srun --pty, jupyter, srun, as in sessions; empty: not known
-- column: num_gpus | GPUs | GPUs that it held
-- column: start_ts | UTC | start of its last attempt
-- column: gpu_hours | GPU-h | held by all attempts
-- column: night_gpu_hours | GPU-h | of these, at night
-- column: night_idle_gpu_hours | GPU-h | part of night_gpu_hours in hours in which all of its GPUs were at exactly 0 %
SELECT job, u."user" AS "user", u.account AS account, u.started_as AS started_as, u.gpus AS num_gpus, u.start_ts AS start_ts, n.gpu_hours AS gpu_hours, n.night_gpu_hours AS night_gpu_hours,
       n.night_idle_gpu_hours AS night_idle_gpu_hours
FROM base_night_use AS n JOIN base_request_use AS u USING (job)
WHERE n.night_idle_gpu_hours > 0
ORDER BY n.night_idle_gpu_hours DESC, job
