-- title: GPUs held and used over time, by queue
-- section: overview
-- order: 56
-- question: When did each queue hold GPUs, and how well were they used?
-- population: {attempts} attempt{attempts||s} less {attempts_without_start} without a start, by period (--by), UTC; one row per period in which the queue held GPUs.
-- needs: attempts
-- detail: yes
-- column: ts | UTC | start of the period
-- column: queue | - | queue or virtual cluster
-- column: gpu_hours | GPU-h | held in this period
-- column: util_mean_pct | % | mean GPU utilization of the GPUs held, by telemetry; empty without telemetry
SELECT ts, name AS "queue", gpu_hours, util_mean_pct
FROM base_queue_activity
ORDER BY ts, name
