-- title: Comparison with OpenB (Alibaba, 2023)
-- section: reference
-- order: 60
-- reference: openb
-- question: How close is this cluster to OpenB?
-- population: published: cluster-trace-gpu-v2023 (Alibaba), README and files as released with kubernetes-scheduler-simulator (HKUST, Apache-2.0). Its rows are pods, not jobs. ours: as in the tables overview and workload.
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
        (1, 'README and files', 'nodes', 'machines', 'machines', 1523, 'machines', NULL),
        (2, 'README and files', 'nodes', 'machines with GPUs', 'machines', 1213, 'gpu_machines', NULL),
        (3, 'README and files', 'nodes', 'GPUs of the cluster', 'GPUs', 6212, 'gpus', NULL),
        (4, 'README and files', 'pods', 'pods', 'jobs', 8152, 'jobs', 'pods in phase Running all have a deletion time (issue 218 of its repository)'),
        (5, 'README', 'pods with GPUs', 'pods bound to GPU types', '%', 33, NULL, 'gpu_spec is empty in the default file; the variants gpuspecNN have it')
),
measured(measure, value) AS (
    UNPIVOT (
        SELECT w.jobs::DOUBLE AS jobs, w.sized_jobs::DOUBLE AS sized_jobs, o.gpus::DOUBLE AS gpus, o.machines::DOUBLE AS machines, w.size_mean, w.size_p50, w.size_max::DOUBLE AS size_max,
               w.run_mean_s, w.run_p50_s, w.run_max_s, w.wait_mean_s, w.wait_p50_s, w.completed_pct, w.killed_pct, w.failed_pct, w.completed_work_pct, w.killed_work_pct, w.failed_work_pct
        FROM result_workload AS w, result_overview AS o WHERE w.unit = 'GPUs'
    ) ON COLUMNS(*) INTO NAME measure VALUE value
),
machines AS (SELECT 'gpu_machines' AS measure, count(*) FILTER (gpus > 0)::DOUBLE AS value FROM base_machines)
SELECT p.place, p.group_name, p.measure, p.unit, p.published::DOUBLE AS published, m.value AS ours, m.value - p.published AS difference, p.finding
FROM published AS p LEFT JOIN (FROM measured UNION ALL FROM machines) AS m ON m.measure = p.ours
ORDER BY p.rank
