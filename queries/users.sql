-- title: Users
-- section: overview
-- order: 40
-- question: Who used the GPUs, how well, and how many GPU-hours did each user lose?
-- population: {jobs} job{jobs||s}; {attempts} attempt{attempts||s} less {attempts_not_run} with neither a start nor a run time. Lost is as in gpu_hours_lost: GPU-hours of unsuccessful attempts. A large loss is not proof of fault. GPU-hours are empty if no source states the GPUs of any attempt. A job is idle if its mean GPU utilization is below {idle_below} % (--idle-below).
-- first_columns: 11
-- key_columns: user, jobs, gpu_hours, node_hours, lost_gpu_hours, lost_node_hours, own_lost_pct, wait_p95_min, util_mean_pct, idle_gpu_hours
-- column: user | - | who submitted; empty if the source names no user
-- column: jobs | jobs | jobs submitted
-- column: gpu_hours | GPU-h | held by all attempts, from allocation to release, as in overview
-- column: node_hours | node-h | held by attempts whose GPUs no source states: nodes times the time held; a node shared by several attempts counts once for each; empty if there are none
-- column: lost_gpu_hours | GPU-h | held by unsuccessful attempts: the sum of failed, killed and retried; empty if no source states how the attempts ended
-- column: lost_node_hours | node-h | node_hours of unsuccessful attempts; empty if no source states how they ended
-- column: lost_pct | % | share of the lost GPU-hours of all users
-- column: own_lost_pct | % | share of this user's own GPU-hours
-- column: failed_h | GPU-h | held by the last attempt of jobs that failed, ran out of memory or lost a node
-- column: killed_h | GPU-h | held by the last attempt of jobs that were killed, cancelled after their start, ended by their time limit or preempted
-- column: retried_h | GPU-h | held by attempts that another attempt of the job followed
-- column: failed_jobs | jobs | jobs that failed, ran out of memory or lost a node
-- column: wait_p50_min | min | median wait of the attempts that started
-- column: wait_p95_min | min | 95th percentile of the same waits
-- column: measured_jobs | jobs | jobs with GPU utilization; this and the following columns are empty without telemetry
-- column: util_mean_pct | % | mean GPU utilization of these jobs' GPU-minutes
-- column: util_p10_pct | % | 10th percentile of these jobs' mean GPU utilization
-- column: idle_jobs | jobs | jobs whose mean GPU utilization is below the limit
-- column: idle_gpu_hours | GPU-h | held by those jobs
SELECT name AS "user", * EXCLUDE (name)
FROM base_user_figures
ORDER BY lost_gpu_hours DESC NULLS LAST, lost_node_hours DESC NULLS LAST, gpu_hours DESC NULLS LAST, node_hours DESC NULLS LAST, jobs DESC, name
