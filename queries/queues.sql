-- title: Queues
-- section: overview
-- order: 30
-- question: How many GPU-hours does each queue use, how long does it wait, and how much is lost?
-- population: {jobs} job{jobs||s}, {attempts} attempt{attempts||s}. GPU-hours are GPUs times the time they were held, from allocation to release, as in overview; without attempts, GPUs times the chosen duration. They are empty if a queue has none known. Sorted by GPU-hours, else by node-hours, then by jobs. Lost is as in gpu_hours_lost: GPU-hours of unsuccessful attempts. A job is idle if its mean GPU utilization is below {idle_below} % (--idle-below).
-- first_columns: 12
-- key_columns: queue, jobs, users, gpu_hours, node_hours, quota_gpus, wait_p95_min, own_lost_pct, util_mean_pct
-- column: queue | - | queue or virtual cluster
-- column: jobs | jobs | jobs submitted to it
-- column: users | users | distinct users; empty if the source names none
-- column: gpu_hours | GPU-h | held by all attempts of its jobs
-- column: gpu_hours_pct | % | share of all queues' GPU-hours
-- column: node_hours | node-h | held by attempts whose GPUs no source states: nodes times the time held; a node shared by several attempts counts once for each; empty if there are none
-- column: node_hours_pct | % | share of all queues' node-hours
-- column: quota_gpus | GPUs | its quota; empty if unknown, or if the log fits any quota above some number of GPUs
-- column: limit_gpus | GPUs | most GPUs it may hold: its quota, or the maximum of a YARN queue; empty if unlimited or unknown
-- column: quota_source | - | given (--quotas), configured (in the logs) or inferred (best explains starts and waits, unlike much larger quotas); empty if unlimited or unknown
-- column: wait_p50_min | min | median wait of its attempts
-- column: wait_p95_min | min | 95th percentile of its attempts' waits
-- column: lost_gpu_hours | GPU-h | held by unsuccessful attempts: the sum of failed, killed and retried; empty if no source states how the attempts ended
-- column: lost_node_hours | node-h | node_hours of unsuccessful attempts; empty if no source states how they ended
-- column: lost_pct | % | share of the lost GPU-hours of all queues
-- column: own_lost_pct | % | share of this queue's own GPU-hours
-- column: failed_h | GPU-h | held by the last attempt of jobs that failed, ran out of memory or lost a node
-- column: killed_h | GPU-h | held by the last attempt of jobs that were killed, cancelled after their start, ended by their time limit or preempted
-- column: retried_h | GPU-h | held by attempts that another attempt of the job followed
-- column: failed_jobs | jobs | jobs that failed, ran out of memory or lost a node
-- column: measured_jobs | jobs | jobs with GPU utilization; this and the following columns are empty without telemetry
-- column: util_mean_pct | % | mean GPU utilization of these jobs' GPU-minutes
-- column: util_p10_pct | % | 10th percentile of these jobs' mean GPU utilization
-- column: idle_jobs | jobs | jobs whose mean GPU utilization is below the limit
-- column: idle_gpu_hours | GPU-h | held by those jobs
WITH hours AS (
    SELECT name AS queue, gpu_hours, node_hours FROM base_queue_figures
),
shares AS (
    SELECT queue, gpu_hours, sum((gpu_hours * 3600)::DECIMAL(28, 6)) OVER ()::DOUBLE / 3600 AS all_hours, node_hours,
           sum((node_hours * 3600)::DECIMAL(28, 6)) OVER ()::DOUBLE / 3600 AS all_node_hours
    FROM hours
)
SELECT j.queue, count(*) AS jobs, nullif(count(DISTINCT j."user"), 0) AS users,
       any_value(h.gpu_hours) AS gpu_hours, 100 * any_value(h.gpu_hours) / nullif(any_value(h.all_hours), 0) AS gpu_hours_pct,
       any_value(h.node_hours) AS node_hours, 100 * any_value(h.node_hours) / nullif(any_value(h.all_node_hours), 0) AS node_hours_pct,
       any_value(q.quota_gpus) AS quota_gpus, nullif(any_value(q.limit_gpus), 'infinity') AS limit_gpus, any_value(q.quota_source) AS quota_source,
       any_value(f.wait_p50_min) AS wait_p50_min, any_value(f.wait_p95_min) AS wait_p95_min, any_value(f.lost_gpu_hours) AS lost_gpu_hours, any_value(f.lost_node_hours) AS lost_node_hours,
       any_value(f.lost_pct) AS lost_pct, any_value(f.own_lost_pct) AS own_lost_pct, any_value(f.failed_h) AS failed_h,
       any_value(f.killed_h) AS killed_h, any_value(f.retried_h) AS retried_h, any_value(f.failed_jobs) AS failed_jobs,
       any_value(f.measured_jobs) AS measured_jobs, any_value(f.util_mean_pct) AS util_mean_pct, any_value(f.util_p10_pct) AS util_p10_pct,
       any_value(f.idle_jobs) AS idle_jobs, any_value(f.idle_gpu_hours) AS idle_gpu_hours
FROM base_jobs AS j
JOIN shares AS h USING (queue)
LEFT JOIN base_quotas AS q USING (queue)
LEFT JOIN base_queue_figures AS f ON f.name = j.queue
GROUP BY j.queue
ORDER BY nullif(any_value(h.gpu_hours), 0) DESC NULLS LAST, node_hours DESC NULLS LAST, jobs DESC, j.queue
