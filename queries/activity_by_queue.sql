-- title: GPUs held and used over time, by queue
-- section: overview
-- order: 56
-- question: When did each queue hold GPUs and wait for them, and how well were they used?
-- population: {attempts} attempt{attempts||s} less {attempts_without_start} without a start, by period (--by), {period_zone}; one row per period in which the queue held GPUs or submitted jobs. Of an attempt, each period has the part that was held in it, so the periods add up. Jobs and waits are in the period in which the job was submitted.
-- needs: attempts
-- detail: yes
-- column: ts | UTC | start of the period
-- column: period | - | the period: 2026-10, 2026-W44 (ISO weeks), 2026-Q4, a day or an hour
-- column: queue | - | queue or virtual cluster
-- column: jobs | jobs | jobs submitted in this period
-- column: gpu_hours | GPU-h | held in this period; empty if no source states the GPUs
-- column: node_hours | node-h | held in this period by attempts whose GPUs no source states; empty if there are none
-- column: lost_gpu_hours | GPU-h | part of gpu_hours that unsuccessful attempts held, as in gpu_hours_lost; empty if no source states how they ended
-- column: wait_p50_min | min | median wait of the attempts of jobs submitted in this period
-- column: wait_p95_min | min | 95th percentile of the same waits
-- column: util_mean_pct | % | mean GPU utilization of the GPUs held, by telemetry; empty without telemetry
-- column: idle_gpu_hours | GPU-h | part of gpu_hours that jobs held whose mean GPU utilization, over all of their telemetry, is below --idle-below; empty without telemetry
SELECT ts, period, name AS "queue", jobs, gpu_hours, node_hours, lost_gpu_hours, wait_p50_min, wait_p95_min, util_mean_pct, idle_gpu_hours
FROM base_queue_activity
ORDER BY ts, name
