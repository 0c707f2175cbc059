-- title: Comparison with Acme (Shanghai AI Laboratory, 2023)
-- section: reference
-- order: 40
-- reference: acme
-- question: How close are this trace's figures to those of Seren and Kalos?
-- population: published: AcmeTrace, data/cluster_summary.csv and the distributions below data/utilization/util_pkl (InternLM, CC-BY-4.0); jobs with GPUs in any state, March to August 2023; quartiles are the first value whose share reaches 25, 50 or 75 %. ours: jobs with GPUs, as in the table workload; GPU utilization is that of gpu_util_by_state, of GPUs that jobs held.
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
        (1, 'data/cluster_summary.csv', 'Seren', 'jobs', 'jobs', 1031550, 'jobs', 'the README counts 880,740 jobs of both clusters, this summary 1,093,963'),
        (2, 'data/cluster_summary.csv', 'Seren', 'jobs with GPUs', 'jobs', 663813, 'sized_jobs', 'the README counts 470,497 jobs with GPUs of both clusters, this summary 683,720'),
        (3, 'data/cluster_summary.csv', 'Seren', 'GPUs of a job, mean', 'GPUs', 5.68, 'size_mean', NULL),
        (4, 'data/cluster_summary.csv', 'Seren', 'GPUs of a job, median', 'GPUs', 1, 'size_p50', NULL),
        (5, 'data/cluster_summary.csv', 'Seren', 'GPUs of a job, most', 'GPUs', 1024, 'size_max', NULL),
        (6, 'data/cluster_summary.csv', 'Seren', 'run time, mean', 's', 1414.335, 'run_mean_s', NULL),
        (7, 'data/cluster_summary.csv', 'Seren', 'run time, median', 's', 122, 'run_p50_s', NULL),
        (8, 'data/cluster_summary.csv', 'Seren', 'run time, longest', 's', 1209604, 'run_max_s', NULL),
        (9, 'data/cluster_summary.csv', 'Seren', 'wait, mean', 's', 445.984, 'wait_mean_s', NULL),
        (10, 'data/cluster_summary.csv', 'Seren', 'wait, median', 's', 1, 'wait_p50_s', NULL),
        (11, 'data/cluster_summary.csv', 'Seren', 'jobs that completed', '%', 49.7, 'completed_pct', NULL),
        (12, 'data/cluster_summary.csv', 'Seren', 'jobs that were cancelled', '%', 7.5, 'killed_pct', NULL),
        (13, 'data/cluster_summary.csv', 'Seren', 'jobs that failed', '%', 42.9, 'failed_pct', NULL),
        (14, 'data/cluster_summary.csv', 'Seren', 'GPU time of jobs that completed', '%', 21.2, 'completed_work_pct', NULL),
        (15, 'data/cluster_summary.csv', 'Seren', 'GPU time of jobs that were cancelled', '%', 66.4, 'killed_work_pct', NULL),
        (16, 'data/cluster_summary.csv', 'Seren', 'GPU time of jobs that failed', '%', 12.4, 'failed_work_pct', NULL),
        (17, 'data/cluster_summary.csv', 'Kalos', 'jobs', 'jobs', 62413, 'jobs', NULL),
        (18, 'data/cluster_summary.csv', 'Kalos', 'jobs with GPUs', 'jobs', 19907, 'sized_jobs', NULL),
        (19, 'data/cluster_summary.csv', 'Kalos', 'GPUs of a job, mean', 'GPUs', 26.77, 'size_mean', NULL),
        (20, 'data/cluster_summary.csv', 'Kalos', 'GPUs of a job, median', 'GPUs', 1, 'size_p50', NULL),
        (21, 'data/cluster_summary.csv', 'Kalos', 'GPUs of a job, most', 'GPUs', 1024, 'size_max', NULL),
        (22, 'data/cluster_summary.csv', 'Kalos', 'run time, mean', 's', 1259.689, 'run_mean_s', 'the rows shown in the README have end - submission as duration, which holds the wait'),
        (23, 'data/cluster_summary.csv', 'Kalos', 'run time, median', 's', 124, 'run_p50_s', 'the rows shown in the README have end - submission as duration, which holds the wait'),
        (24, 'data/cluster_summary.csv', 'Kalos', 'run time, longest', 's', 625740, 'run_max_s', 'the rows shown in the README have end - submission as duration, which holds the wait'),
        (25, 'data/cluster_summary.csv', 'Kalos', 'wait, mean', 's', 214.179, 'wait_mean_s', NULL),
        (26, 'data/cluster_summary.csv', 'Kalos', 'wait, median', 's', 17, 'wait_p50_s', NULL),
        (27, 'data/cluster_summary.csv', 'Kalos', 'jobs that completed', '%', 54.1, 'completed_pct', NULL),
        (28, 'data/cluster_summary.csv', 'Kalos', 'jobs that were cancelled', '%', 6.2, 'killed_pct', NULL),
        (29, 'data/cluster_summary.csv', 'Kalos', 'jobs that failed', '%', 39.7, 'failed_pct', NULL),
        (30, 'data/cluster_summary.csv', 'Kalos', 'GPU time of jobs that completed', '%', 31.3, 'completed_work_pct', NULL),
        (31, 'data/cluster_summary.csv', 'Kalos', 'GPU time of jobs that were cancelled', '%', 60.7, 'killed_work_pct', NULL),
        (32, 'data/cluster_summary.csv', 'Kalos', 'GPU time of jobs that failed', '%', 8, 'failed_work_pct', NULL),
        (33, 'data/utilization/util_pkl', 'Seren', 'GPU utilization, 25th percentile', '%', 0, NULL, NULL),
        (34, 'data/utilization/util_pkl', 'Seren', 'GPU utilization, median', '%', 99, 'util_p50', NULL),
        (35, 'data/utilization/util_pkl', 'Seren', 'GPU utilization, 75th percentile', '%', 99, NULL, NULL),
        (36, 'data/utilization/util_pkl', 'Kalos', 'GPU utilization, 25th percentile', '%', 0, NULL, NULL),
        (37, 'data/utilization/util_pkl', 'Kalos', 'GPU utilization, median', '%', 98, 'util_p50', NULL),
        (38, 'data/utilization/util_pkl', 'Kalos', 'GPU utilization, 75th percentile', '%', 99, NULL, NULL),
        (39, 'data/utilization/util_pkl', 'Seren', 'SM activity, 25th percentile', '%', 0, NULL, NULL),
        (40, 'data/utilization/util_pkl', 'Seren', 'SM activity, median', '%', 50.2, NULL, NULL),
        (41, 'data/utilization/util_pkl', 'Seren', 'SM activity, 75th percentile', '%', 73.1, NULL, NULL),
        (42, 'data/utilization/util_pkl', 'Kalos', 'SM activity, 25th percentile', '%', 0, NULL, NULL),
        (43, 'data/utilization/util_pkl', 'Kalos', 'SM activity, median', '%', 33.5, NULL, NULL),
        (44, 'data/utilization/util_pkl', 'Kalos', 'SM activity, 75th percentile', '%', 72.9, NULL, NULL),
        (45, 'data/utilization/util_pkl', 'Seren', 'GPU memory used, of 80 GiB, 25th percentile', '%', 0, NULL, NULL),
        (46, 'data/utilization/util_pkl', 'Seren', 'GPU memory used, of 80 GiB, median', '%', 39.3, NULL, NULL),
        (47, 'data/utilization/util_pkl', 'Seren', 'GPU memory used, of 80 GiB, 75th percentile', '%', 60.9, NULL, NULL),
        (48, 'data/utilization/util_pkl', 'Kalos', 'GPU memory used, of 80 GiB, 25th percentile', '%', 0, NULL, NULL),
        (49, 'data/utilization/util_pkl', 'Kalos', 'GPU memory used, of 80 GiB, median', '%', 75.5, NULL, NULL),
        (50, 'data/utilization/util_pkl', 'Kalos', 'GPU memory used, of 80 GiB, 75th percentile', '%', 77.4, NULL, NULL),
        (51, 'data/utilization/util_pkl', 'Seren', 'GPU power, 25th percentile', 'W', 66.2, NULL, NULL),
        (52, 'data/utilization/util_pkl', 'Seren', 'GPU power, median', 'W', 96.5, NULL, NULL),
        (53, 'data/utilization/util_pkl', 'Seren', 'GPU power, 75th percentile', 'W', 291.1, NULL, NULL),
        (54, 'data/utilization/util_pkl', 'Kalos', 'GPU power, 25th percentile', 'W', 66.4, NULL, NULL),
        (55, 'data/utilization/util_pkl', 'Kalos', 'GPU power, median', 'W', 101.5, NULL, NULL),
        (56, 'data/utilization/util_pkl', 'Kalos', 'GPU power, 75th percentile', 'W', 372.2, NULL, NULL),
        (57, 'data/utilization/util_pkl', 'Seren', 'GPU temperature, 25th percentile', 'C', 31, NULL, NULL),
        (58, 'data/utilization/util_pkl', 'Seren', 'GPU temperature, median', 'C', 39, NULL, NULL),
        (59, 'data/utilization/util_pkl', 'Seren', 'GPU temperature, 75th percentile', 'C', 53, NULL, NULL),
        (60, 'data/utilization/util_pkl', 'Kalos', 'GPU temperature, 25th percentile', 'C', 30, NULL, NULL),
        (61, 'data/utilization/util_pkl', 'Kalos', 'GPU temperature, median', 'C', 40, NULL, NULL),
        (62, 'data/utilization/util_pkl', 'Kalos', 'GPU temperature, 75th percentile', 'C', 51, NULL, NULL),
        (63, 'data/utilization/util_pkl', 'Seren', 'CPU utilization of nodes, 25th percentile', '%', 0.6, NULL, NULL),
        (64, 'data/utilization/util_pkl', 'Seren', 'CPU utilization of nodes, median', '%', 8, NULL, NULL),
        (65, 'data/utilization/util_pkl', 'Seren', 'CPU utilization of nodes, 75th percentile', '%', 13.8, NULL, NULL),
        (66, 'data/utilization/util_pkl', 'Kalos', 'CPU utilization of nodes, 25th percentile', '%', 3.2, NULL, NULL),
        (67, 'data/utilization/util_pkl', 'Kalos', 'CPU utilization of nodes, median', '%', 20.1, NULL, NULL),
        (68, 'data/utilization/util_pkl', 'Kalos', 'CPU utilization of nodes, 75th percentile', '%', 27.7, NULL, NULL),
        (69, 'data/utilization/util_pkl', 'Seren', 'host memory used, 25th percentile', '%', 7.1, NULL, NULL),
        (70, 'data/utilization/util_pkl', 'Seren', 'host memory used, median', '%', 15, NULL, NULL),
        (71, 'data/utilization/util_pkl', 'Seren', 'host memory used, 75th percentile', '%', 23.9, NULL, NULL),
        (72, 'data/utilization/util_pkl', 'Kalos', 'host memory used, 25th percentile', '%', 5, NULL, NULL),
        (73, 'data/utilization/util_pkl', 'Kalos', 'host memory used, median', '%', 7.2, NULL, NULL),
        (74, 'data/utilization/util_pkl', 'Kalos', 'host memory used, 75th percentile', '%', 9.3, NULL, NULL)
),
measured(measure, value) AS (
    UNPIVOT (
        SELECT w.jobs::DOUBLE AS jobs, w.sized_jobs::DOUBLE AS sized_jobs, o.gpus::DOUBLE AS gpus, o.machines::DOUBLE AS machines, w.size_mean, w.size_p50, w.size_max::DOUBLE AS size_max,
               w.run_mean_s, w.run_p50_s, w.run_max_s, w.wait_mean_s, w.wait_p50_s, w.completed_pct, w.killed_pct, w.failed_pct, w.completed_work_pct, w.killed_work_pct, w.failed_work_pct
        FROM result_workload AS w, result_overview AS o WHERE w.unit = 'GPUs'
    ) ON COLUMNS(*) INTO NAME measure VALUE value
),
telemetry AS (SELECT 'util_p50' AS measure, p50_pct AS value FROM result_gpu_util_by_state WHERE gpus = 'all' AND state = 'all')
SELECT p.place, p.group_name, p.measure, p.unit, p.published::DOUBLE AS published, m.value AS ours, m.value - p.published AS difference, p.finding
FROM published AS p LEFT JOIN (FROM measured UNION ALL FROM telemetry) AS m ON m.measure = p.ours
ORDER BY p.rank
