-- title: Comparison with the spot trace of Alibaba (2026)
-- section: reference
-- order: 70
-- reference: spot
-- question: How close is this cluster to that of the spot trace?
-- population: published: cluster-trace of spot GPU instances (Alibaba, for research or study): README, paper, and issue 260 of its repository. ours: as in the table overview.
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
        (1, 'README', 'cluster', 'machines with GPUs', 'machines', 4278, 'gpu_machines', 'names of nodes go up to 4,340, with gaps'),
        (2, 'README', 'cluster', 'GPUs of the cluster', 'GPUs', 10412, 'gpus', NULL),
        (3, 'paper', 'A10', 'GPUs allocated', '%', 84.59, NULL, 'the jobs released ask for 133 % of the A10 on average (issue 260 of its repository)'),
        (4, 'issue 260', 'A10', 'GPUs asked for, of those there are', '%', 133, NULL, 'the paper has 84.6 % allocated')
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
