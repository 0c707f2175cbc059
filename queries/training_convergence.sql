-- title: Training time to the lowest loss
-- section: training
-- order: 10
-- question: When do jobs come within 0.1 % of their lowest loss, and how much GPU time follows?
-- population: {training_usable} of the {training_jobs} job{training_jobs||s} whose output shows training: jobs with a loss at three or more points ({training_few} {training_few|has|have} fewer, {training_other} {training_other|prints|print} only accuracies and similar figures, {training_silent} only epochs or steps; {training_unknown} more {training_unknown|is|are} not among the scheduler's jobs). The loss is the validation loss where there is one ({training_valid} job{training_valid||s}), else the training loss. Within 0.1 %: at most lowest + 0.001 x |lowest|. A point is an epoch; in {training_steps} job{training_steps||s}, which {training_steps|prints|print} fewer than three epochs, a printed line. {training_nan} job{training_nan||s} {training_nan|has|have} points that are not finite; these are never the lowest. The time of a point comes from timestamps of its lines ({training_stamps} job{training_stamps||s}) or progress bars ({training_elapsed}); else it is inferred by spreading points evenly over the GPU time ({training_even}). Output that a resumed job prints again replaces its earlier output; the time of all attempts counts.
-- needs: training progress
-- key_columns: state, jobs, all_epochs_pct, lowest_p50_pct, near_p50_pct, near_by_40_pct, after_gpu_hours, after_gpu_hours_pct
-- column: state | - | final state; 'all' is every job
-- column: jobs | jobs | jobs with a usable loss curve
-- column: all_epochs_pct | % | share that reached the lowest loss at their last epoch
-- column: lowest_p50_pct | % | epochs until the lowest loss, as a share of the epochs run, median
-- column: lowest_mean_pct | % | the same, mean
-- column: near_p50_pct | % | epochs until within 0.1 % of the lowest loss, as a share of the epochs run, median
-- column: near_mean_pct | % | the same, mean
-- column: near_by_40_pct | % | share of the jobs that came within 0.1 % in the first 40 % of their epochs
-- column: jobs_timed | jobs | jobs whose GPU time is known
-- column: after_mean_pct | % | GPU time after coming within 0.1 %, as a share of the job's GPU time, mean over jobs
-- column: after_gpu_hours | GPU-h | total GPU time after coming within 0.1 %
-- column: after_gpu_hours_pct | % | share of these jobs' GPU time
SELECT CASE WHEN grouping(state) = 1 THEN 'all' ELSE state END AS state, count(*) AS jobs,
       100.0 * count(*) FILTER (lowest_point = points) / count(*) AS all_epochs_pct,
       100 * median(lowest_point / points) AS lowest_p50_pct, 100 * sum((lowest_point / points)::DECIMAL(28, 12))::DOUBLE / nullif(count(lowest_point / points), 0) AS lowest_mean_pct,
       100 * median(near_point / points) AS near_p50_pct, 100 * sum((near_point / points)::DECIMAL(28, 12))::DOUBLE / nullif(count(near_point / points), 0) AS near_mean_pct,
       100.0 * count(*) FILTER (near_point <= 0.4 * points) / count(*) AS near_by_40_pct,
       count(after_gpu_s) AS jobs_timed,
       100 * sum((after_gpu_s / nullif(gpu_s, 0))::DECIMAL(28, 12))::DOUBLE / nullif(count(after_gpu_s / nullif(gpu_s, 0)), 0) AS after_mean_pct,
       sum(after_gpu_s::DECIMAL(28, 9))::DOUBLE / 3600 AS after_gpu_hours,
       100 * sum(after_gpu_s::DECIMAL(28, 9))::DOUBLE / nullif(sum(gpu_s::DECIMAL(28, 9)) FILTER (after_gpu_s IS NOT NULL)::DOUBLE, 0) AS after_gpu_hours_pct
FROM base_training
WHERE usable
GROUP BY GROUPING SETS ((state), ())
HAVING count(*) > 0
ORDER BY grouping(state), jobs DESC, state
