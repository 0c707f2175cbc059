-- title: Comparison with Alibaba PAI 2020
-- section: reference
-- order: 50
-- reference: pai
-- question: How close are this trace's figures to those of PAI?
-- population: published: trace cluster-trace-gpu-v2020 (Alibaba, CC-BY-4.0), its file pai_machine_spec; the row PAI of AcmeTrace's data/cluster_summary.csv; and a public case study over the whole pai_sensor_table, whose rows are averages over a worker's life. ours: jobs with GPUs, as in the table workload; GPU utilization is of GPUs and minutes, as in gpu_util_by_state, not of workers.
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
        (1, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'jobs', 'jobs', 1260920, 'jobs', NULL),
        (2, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'jobs with GPUs', 'jobs', 1037085, 'sized_jobs', NULL),
        (3, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'GPUs of a job, mean', 'GPUs', 0.683, 'size_mean', NULL),
        (4, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'GPUs of a job, median', 'GPUs', 0.5, 'size_p50', NULL),
        (5, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'GPUs of a job, most', 'GPUs', 8, 'size_max', NULL),
        (6, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'run time, mean', 's', 4787.109, 'run_mean_s', NULL),
        (7, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'run time, median', 's', 480.667, 'run_p50_s', NULL),
        (8, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'run time, longest', 's', 626371, 'run_max_s', NULL),
        (9, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'wait, mean', 's', 401.742, 'wait_mean_s', 'the trace''s notebook takes the wait from task start to instance start, its README from job start to task start'),
        (10, 'AcmeTrace data/cluster_summary.csv', 'jobs with GPUs', 'wait, median', 's', 9, 'wait_p50_s', 'the same'),
        (11, 'pai_machine_spec', 'machines', 'machines', 'machines', 1897, 'machines', NULL),
        (12, 'pai_machine_spec', 'machines', 'GPUs of the cluster', 'GPUs', 6742, 'gpus', NULL),
        (13, 'pai_machine_spec', 'MISC', 'GPUs of that type', 'GPUs', 2240, 'type MISC', NULL),
        (14, 'pai_machine_spec', 'P100', 'GPUs of that type', 'GPUs', 1596, 'type P100', NULL),
        (15, 'pai_machine_spec', 'V100M32', 'GPUs of that type', 'GPUs', 1080, 'type V100M32', 'tables disagree on names: V100M32 is V100 in some'),
        (16, 'pai_machine_spec', 'T4', 'GPUs of that type', 'GPUs', 994, 'type T4', NULL),
        (17, 'pai_machine_spec', 'V100', 'GPUs of that type', 'GPUs', 832, 'type V100', NULL),
        (18, 'case study over pai_sensor_table', 'workers', 'GPU utilization, mean', '%', 10.5, 'util_mean', 'machine_gpu of the trace passes 100 % (issue 231 of its repository)'),
        (19, 'case study over pai_sensor_table', 'workers', 'GPU utilization, median', '%', 1.5, 'util_p50', NULL),
        (20, 'case study over pai_sensor_table', 'workers', 'utilization of 0', '%', 34.5, 'util_idle', NULL)
),
measured(measure, value) AS (
    UNPIVOT (
        SELECT w.jobs::DOUBLE AS jobs, w.sized_jobs::DOUBLE AS sized_jobs, o.gpus::DOUBLE AS gpus, o.machines::DOUBLE AS machines, w.size_mean, w.size_p50, w.size_max::DOUBLE AS size_max,
               w.run_mean_s, w.run_p50_s, w.run_max_s, w.wait_mean_s, w.wait_p50_s, w.completed_pct, w.killed_pct, w.failed_pct, w.completed_work_pct, w.killed_work_pct, w.failed_work_pct
        FROM result_workload AS w, result_overview AS o WHERE w.unit = 'GPUs'
    ) ON COLUMNS(*) INTO NAME measure VALUE value
),
telemetry AS (
    UNPIVOT (SELECT mean_pct::DOUBLE AS util_mean, p50_pct::DOUBLE AS util_p50, idle_pct::DOUBLE AS util_idle FROM result_gpu_util_by_state WHERE gpus = 'all' AND state = 'all')
    ON COLUMNS(*) INTO NAME measure VALUE value
),
types AS (SELECT 'type ' || gpu_type AS measure, sum(gpus)::DOUBLE AS value FROM base_machines WHERE gpu_type IS NOT NULL GROUP BY ALL)
SELECT p.place, p.group_name, p.measure, p.unit, p.published::DOUBLE AS published, m.value AS ours, m.value - p.published AS difference, p.finding
FROM published AS p LEFT JOIN (FROM measured UNION ALL FROM telemetry UNION ALL FROM types) AS m ON m.measure = p.ours
ORDER BY p.rank
