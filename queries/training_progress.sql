-- title: Training progress of each job
-- section: training
-- order: 20
-- question: How far did each job train, and when did its loss come near the lowest?
-- population: {training_jobs} job{training_jobs||s} whose output shows training; the figures of the loss are empty for the {training_unusable} without a loss at three or more points. Definitions as in training_convergence.
-- needs: training progress
-- detail: yes
-- column: job | - | job
-- column: state | - | final state
-- column: epochs | epochs | distinct epochs in its output
-- column: epochs_planned | epochs | epochs planned, if a line states them
-- column: lines | lines | lines that show training
-- column: points | points | points of the loss curve
-- column: point_unit | - | what a point is: an epoch, or a line, ordered by parts of an epoch or steps if printed
-- column: metric | - | the loss metric, as printed
-- column: first_loss | - | at the first point
-- column: lowest_loss | - | the lowest finite loss
-- column: last_loss | - | at the last point
-- column: not_finite | points | points whose loss is NaN or infinite
-- column: lowest_pct | % | epochs until the lowest loss, as a share of the epochs run
-- column: near_pct | % | epochs until within 0.1 % of it, as a share of the epochs run
-- column: gpu_hours | GPU-h | held by all attempts
-- column: after_gpu_hours | GPU-h | held after coming within 0.1 %
-- column: placed | - | how the time of a point was found: timestamps of the lines, elapsed time in progress bars, or even (inferred)
SELECT job, state, epochs, epochs_planned, lines, points, unit AS point_unit, metric, first_value AS first_loss, lowest_value AS lowest_loss,
       last_value AS last_loss, points_not_finite AS not_finite,
       CASE WHEN usable THEN 100 * lowest_point / points END AS lowest_pct, CASE WHEN usable THEN 100 * near_point / points END AS near_pct,
       gpu_s / 3600 AS gpu_hours, CASE WHEN usable THEN after_gpu_s END / 3600 AS after_gpu_hours, CASE WHEN usable AND after_gpu_s IS NOT NULL THEN placed END AS placed
FROM base_training
ORDER BY job
