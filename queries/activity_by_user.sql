-- title: GPUs held and used over time, by user
-- section: overview
-- order: 54
-- question: When did each user hold GPUs, and how well were they used?
-- population: {attempts} attempt{attempts||s} less {attempts_without_start} without a start, by period (--by), UTC; one row per period in which the user held GPUs.
-- needs: attempts
-- detail: yes
-- column: ts | UTC | start of the period
-- column: user | - | who submitted; empty if the source names no user
-- column: gpu_hours | GPU-h | held in this period
-- column: util_mean_pct | % | mean GPU utilization of the GPUs held, by telemetry; empty without telemetry
SELECT ts, name AS "user", gpu_hours, util_mean_pct
FROM base_user_activity
ORDER BY ts, name
