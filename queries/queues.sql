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
SELECT f.name AS queue, coalesce(j.jobs, 0) AS jobs, j.users, h.gpu_hours, 100 * h.gpu_hours / nullif(h.all_hours, 0) AS gpu_hours_pct,
       h.node_hours, 100 * h.node_hours / nullif(h.all_node_hours, 0) AS node_hours_pct, q.quota_gpus, nullif(q.limit_gpus, 'infinity') AS limit_gpus, q.quota_source,
       f.wait_p50_min, f.wait_p95_min, f.lost_gpu_hours, f.lost_node_hours, f.lost_pct, f.own_lost_pct, f.failed_h, f.killed_h, f.retried_h, f.failed_jobs,
       f.measured_jobs, f.util_mean_pct, f.util_p10_pct, f.idle_jobs, f.idle_gpu_hours
FROM base_queue_figures AS f
JOIN shares AS h ON h.queue = f.name
LEFT JOIN (SELECT queue, count(*) AS jobs, nullif(count(DISTINCT "user"), 0) AS users FROM base_jobs GROUP BY queue) AS j ON j.queue = f.name
LEFT JOIN base_quotas AS q ON q.queue = f.name
ORDER BY nullif(h.gpu_hours, 0) DESC NULLS LAST, h.node_hours DESC NULLS LAST, jobs DESC, queue
