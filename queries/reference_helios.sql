-- title: Comparison with Helios (SenseTime, 2020)
-- section: reference
-- order: 30
-- reference: helios
-- question: How close are this trace's figures to those of the four clusters of Helios?
-- population: published: HeliosArtifact, analysis/1_compare with Philly trace/helios_cluster_summary.csv (S-Lab, MIT); jobs with GPUs in any state, April to September 2020; its authors count TIMEOUT and NODE_FAIL as failed. Shares of GPU time are computed from its GPU-seconds by state. ours: jobs with GPUs, as in the table workload.
-- column: place | - | source of the published value
-- column: group_name | - | cluster or jobs that the value describes
-- column: measure | - | what is measured
-- column: unit | - | unit of both values
-- column: published | - | the published value
-- column: ours | - | this trace's value; empty if the trace has no such jobs or data
-- column: difference | - | ours - published
-- column: finding | - | known contradictions within the source; empty: none known
WITH published(rank, place, group_name, measure, unit, published, ours, finding) AS (
    VALUES
        (1, 'helios_cluster_summary.csv', 'Venus', 'jobs', 'jobs', 246708, 'jobs', NULL),
        (2, 'helios_cluster_summary.csv', 'Venus', 'jobs with GPUs', 'jobs', 125303, 'sized_jobs', NULL),
        (3, 'helios_cluster_summary.csv', 'Venus', 'GPUs of the cluster', 'GPUs', 1022, 'gpus', 'a mean: quotas of the released days go from 968 to 1,264 GPUs'),
        (4, 'helios_cluster_summary.csv', 'Venus', 'GPUs of a job, mean', 'GPUs', 6.736, 'size_mean', NULL),
        (5, 'helios_cluster_summary.csv', 'Venus', 'GPUs of a job, median', 'GPUs', 1, 'size_p50', NULL),
        (6, 'helios_cluster_summary.csv', 'Venus', 'run time, mean', 's', 13040.598, 'run_mean_s', NULL),
        (7, 'helios_cluster_summary.csv', 'Venus', 'run time, median', 's', 204, 'run_p50_s', NULL),
        (8, 'helios_cluster_summary.csv', 'Venus', 'wait, mean', 's', 1253.288, 'wait_mean_s', NULL),
        (9, 'helios_cluster_summary.csv', 'Venus', 'wait, median', 's', 0, 'wait_p50_s', NULL),
        (10, 'helios_cluster_summary.csv', 'Venus', 'jobs that completed', '%', 52.6, 'completed_pct', NULL),
        (11, 'helios_cluster_summary.csv', 'Venus', 'jobs that were cancelled', '%', 27.2, 'killed_pct', NULL),
        (12, 'helios_cluster_summary.csv', 'Venus', 'jobs that failed', '%', 20.2, 'failed_pct', NULL),
        (13, 'helios_cluster_summary.csv', 'Venus', 'GPU time of jobs that completed', '%', 51.62, 'completed_work_pct', NULL),
        (14, 'helios_cluster_summary.csv', 'Venus', 'GPU time of jobs that were cancelled', '%', 39.85, 'killed_work_pct', NULL),
        (15, 'helios_cluster_summary.csv', 'Venus', 'GPU time of jobs that failed', '%', 8.52, 'failed_work_pct', NULL),
        (16, 'helios_cluster_summary.csv', 'Earth', 'jobs', 'jobs', 872886, 'jobs', NULL),
        (17, 'helios_cluster_summary.csv', 'Earth', 'jobs with GPUs', 'jobs', 427148, 'sized_jobs', NULL),
        (18, 'helios_cluster_summary.csv', 'Earth', 'GPUs of the cluster', 'GPUs', 997, 'gpus', NULL),
        (19, 'helios_cluster_summary.csv', 'Earth', 'GPUs of a job, mean', 'GPUs', 2.101, 'size_mean', NULL),
        (20, 'helios_cluster_summary.csv', 'Earth', 'GPUs of a job, median', 'GPUs', 1, 'size_p50', NULL),
        (21, 'helios_cluster_summary.csv', 'Earth', 'run time, mean', 's', 5130.609, 'run_mean_s', NULL),
        (22, 'helios_cluster_summary.csv', 'Earth', 'run time, median', 's', 234, 'run_p50_s', NULL),
        (23, 'helios_cluster_summary.csv', 'Earth', 'wait, mean', 's', 319.483, 'wait_mean_s', NULL),
        (24, 'helios_cluster_summary.csv', 'Earth', 'wait, median', 's', 0, 'wait_p50_s', NULL),
        (25, 'helios_cluster_summary.csv', 'Earth', 'jobs that completed', '%', 73.5, 'completed_pct', NULL),
        (26, 'helios_cluster_summary.csv', 'Earth', 'jobs that were cancelled', '%', 13.6, 'killed_pct', NULL),
        (27, 'helios_cluster_summary.csv', 'Earth', 'jobs that failed', '%', 12.9, 'failed_pct', NULL),
        (28, 'helios_cluster_summary.csv', 'Earth', 'GPU time of jobs that completed', '%', 49.94, 'completed_work_pct', NULL),
        (29, 'helios_cluster_summary.csv', 'Earth', 'GPU time of jobs that were cancelled', '%', 41.91, 'killed_work_pct', NULL),
        (30, 'helios_cluster_summary.csv', 'Earth', 'GPU time of jobs that failed', '%', 8.15, 'failed_work_pct', NULL),
        (31, 'helios_cluster_summary.csv', 'Saturn', 'jobs', 'jobs', 1753078, 'jobs', NULL),
        (32, 'helios_cluster_summary.csv', 'Saturn', 'jobs with GPUs', 'jobs', 698896, 'sized_jobs', NULL),
        (33, 'helios_cluster_summary.csv', 'Saturn', 'GPUs of the cluster', 'GPUs', 2080, 'gpus', NULL),
        (34, 'helios_cluster_summary.csv', 'Saturn', 'GPUs of a job, mean', 'GPUs', 4.01, 'size_mean', NULL),
        (35, 'helios_cluster_summary.csv', 'Saturn', 'GPUs of a job, median', 'GPUs', 1, 'size_p50', NULL),
        (36, 'helios_cluster_summary.csv', 'Saturn', 'run time, mean', 's', 5252.927, 'run_mean_s', NULL),
        (37, 'helios_cluster_summary.csv', 'Saturn', 'run time, median', 's', 124, 'run_p50_s', NULL),
        (38, 'helios_cluster_summary.csv', 'Saturn', 'wait, mean', 's', 611.561, 'wait_mean_s', NULL),
        (39, 'helios_cluster_summary.csv', 'Saturn', 'wait, median', 's', 0, 'wait_p50_s', NULL),
        (40, 'helios_cluster_summary.csv', 'Saturn', 'jobs that completed', '%', 58.2, 'completed_pct', NULL),
        (41, 'helios_cluster_summary.csv', 'Saturn', 'jobs that were cancelled', '%', 27.2, 'killed_pct', NULL),
        (42, 'helios_cluster_summary.csv', 'Saturn', 'jobs that failed', '%', 14.5, 'failed_pct', NULL),
        (43, 'helios_cluster_summary.csv', 'Saturn', 'GPU time of jobs that completed', '%', 51.99, 'completed_work_pct', NULL),
        (44, 'helios_cluster_summary.csv', 'Saturn', 'GPU time of jobs that were cancelled', '%', 38.82, 'killed_work_pct', NULL),
        (45, 'helios_cluster_summary.csv', 'Saturn', 'GPU time of jobs that failed', '%', 9.2, 'failed_work_pct', NULL),
        (46, 'helios_cluster_summary.csv', 'Uranus', 'jobs', 'jobs', 490309, 'jobs', NULL),
        (47, 'helios_cluster_summary.csv', 'Uranus', 'jobs with GPUs', 'jobs', 329117, 'sized_jobs', NULL),
        (48, 'helios_cluster_summary.csv', 'Uranus', 'GPUs of the cluster', 'GPUs', 2119, 'gpus', NULL),
        (49, 'helios_cluster_summary.csv', 'Uranus', 'GPUs of a job, mean', 'GPUs', 4.038, 'size_mean', NULL),
        (50, 'helios_cluster_summary.csv', 'Uranus', 'GPUs of a job, median', 'GPUs', 1, 'size_p50', NULL),
        (51, 'helios_cluster_summary.csv', 'Uranus', 'run time, mean', 's', 9163.725, 'run_mean_s', NULL),
        (52, 'helios_cluster_summary.csv', 'Uranus', 'run time, median', 's', 280, 'run_p50_s', NULL),
        (53, 'helios_cluster_summary.csv', 'Uranus', 'wait, mean', 's', 1949.182, 'wait_mean_s', NULL),
        (54, 'helios_cluster_summary.csv', 'Uranus', 'wait, median', 's', 0, 'wait_p50_s', NULL),
        (55, 'helios_cluster_summary.csv', 'Uranus', 'jobs that completed', '%', 60.7, 'completed_pct', NULL),
        (56, 'helios_cluster_summary.csv', 'Uranus', 'jobs that were cancelled', '%', 20.1, 'killed_pct', NULL),
        (57, 'helios_cluster_summary.csv', 'Uranus', 'jobs that failed', '%', 19.2, 'failed_pct', NULL),
        (58, 'helios_cluster_summary.csv', 'Uranus', 'GPU time of jobs that completed', '%', 50.95, 'completed_work_pct', NULL),
        (59, 'helios_cluster_summary.csv', 'Uranus', 'GPU time of jobs that were cancelled', '%', 38.66, 'killed_work_pct', NULL),
        (60, 'helios_cluster_summary.csv', 'Uranus', 'GPU time of jobs that failed', '%', 10.4, 'failed_work_pct', NULL),
        (61, 'helios_cluster_summary.csv', 'all four', 'jobs', 'jobs', 3362981, 'jobs', NULL),
        (62, 'helios_cluster_summary.csv', 'all four', 'jobs with GPUs', 'jobs', 1580464, 'sized_jobs', NULL),
        (63, 'helios_cluster_summary.csv', 'all four', 'GPUs of the cluster', 'GPUs', 6220, 'gpus', 'the four clusters add up to 6,218'),
        (64, 'helios_cluster_summary.csv', 'all four', 'GPUs of a job, mean', 'GPUs', 3.716, 'size_mean', NULL),
        (65, 'helios_cluster_summary.csv', 'all four', 'GPUs of a job, median', 'GPUs', 1, 'size_p50', NULL),
        (66, 'helios_cluster_summary.csv', 'all four', 'run time, mean', 's', 6651.681, 'run_mean_s', NULL),
        (67, 'helios_cluster_summary.csv', 'all four', 'run time, median', 's', 206, 'run_p50_s', NULL),
        (68, 'helios_cluster_summary.csv', 'all four', 'wait, mean', 's', 862.047, 'wait_mean_s', NULL),
        (69, 'helios_cluster_summary.csv', 'all four', 'wait, median', 's', 0, 'wait_p50_s', NULL),
        (70, 'helios_cluster_summary.csv', 'all four', 'jobs that completed', '%', 62.4, 'completed_pct', NULL),
        (71, 'helios_cluster_summary.csv', 'all four', 'jobs that were cancelled', '%', 22.1, 'killed_pct', NULL),
        (72, 'helios_cluster_summary.csv', 'all four', 'jobs that failed', '%', 15.5, 'failed_pct', NULL),
        (73, 'helios_cluster_summary.csv', 'all four', 'GPU time of jobs that completed', '%', 51.28, 'completed_work_pct', NULL),
        (74, 'helios_cluster_summary.csv', 'all four', 'GPU time of jobs that were cancelled', '%', 39.38, 'killed_work_pct', NULL),
        (75, 'helios_cluster_summary.csv', 'all four', 'GPU time of jobs that failed', '%', 9.34, 'failed_work_pct', NULL)
),
measured(measure, value) AS (
    UNPIVOT (
        SELECT w.jobs::DOUBLE AS jobs, w.sized_jobs::DOUBLE AS sized_jobs, o.gpus::DOUBLE AS gpus, o.machines::DOUBLE AS machines, w.size_mean, w.size_p50, w.size_max::DOUBLE AS size_max,
               w.run_mean_s, w.run_p50_s, w.run_max_s, w.wait_mean_s, w.wait_p50_s, w.completed_pct, w.killed_pct, w.failed_pct, w.completed_work_pct, w.killed_work_pct, w.failed_work_pct
        FROM result_workload AS w, result_overview AS o WHERE w.unit = 'GPUs'
    ) ON COLUMNS(*) INTO NAME measure VALUE value
)
SELECT p.place, p.group_name, p.measure, p.unit, p.published::DOUBLE AS published, m.value AS ours, m.value - p.published AS difference, p.finding
FROM published AS p LEFT JOIN measured AS m ON m.measure = p.ours
ORDER BY p.rank
