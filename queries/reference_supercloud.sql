-- title: Comparison with MIT SuperCloud (2021)
-- section: reference
-- order: 80
-- reference: supercloud
-- question: How close are this trace's figures to those of SuperCloud?
-- population: published: MIT SuperCloud Dataset, its README, the output of its notebook, and the sizes of the jobs of HPCA 2022 (jobs with GPUs that ran for more than 30 s). ours: jobs with GPUs, as in the table workload.
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
        (1, 'README', 'all jobs', 'jobs', 'jobs', 460497, 'jobs', 'the log that its notebook reads has 395,914'),
        (2, 'notebook', 'all jobs', 'jobs', 'jobs', 395914, 'jobs', 'the README counts 460,497'),
        (3, 'README', 'jobs with GPUs', 'jobs with GPUs', 'jobs', 98177, 'sized_jobs', 'the log that its notebook reads has 98,176'),
        (4, 'notebook', 'jobs with GPUs', 'jobs with GPUs', 'jobs', 98176, 'sized_jobs', 'the README counts 98,177'),
        (5, 'README', 'labelled jobs', 'jobs with a known model', 'jobs', 3425, NULL, 'its table adds up to 3,430'),
        (6, 'HPCA 2022', '1 GPUs', 'share of jobs with GPUs over 30 s', '%', 84.16, 'size 1', NULL),
        (7, 'HPCA 2022', '2 GPUs', 'share of jobs with GPUs over 30 s', '%', 13.51, 'size 2', NULL),
        (8, 'HPCA 2022', '3-8 GPUs', 'share of jobs with GPUs over 30 s', '%', 1.65, 'size 3-8', NULL),
        (9, 'HPCA 2022', '>8 GPUs', 'share of jobs with GPUs over 30 s', '%', 0.67, 'size >8', NULL)
),
measured(measure, value) AS (
    UNPIVOT (
        SELECT w.jobs::DOUBLE AS jobs, w.sized_jobs::DOUBLE AS sized_jobs, o.gpus::DOUBLE AS gpus, o.machines::DOUBLE AS machines, w.size_mean, w.size_p50, w.size_max::DOUBLE AS size_max,
               w.run_mean_s, w.run_p50_s, w.run_max_s, w.wait_mean_s, w.wait_p50_s, w.completed_pct, w.killed_pct, w.failed_pct, w.completed_work_pct, w.killed_work_pct, w.failed_work_pct
        FROM result_workload AS w, result_overview AS o WHERE w.unit = 'GPUs'
    ) ON COLUMNS(*) INTO NAME measure VALUE value
),
sizes AS (
    SELECT 'size ' || bucket AS measure, 100.0 * count(*) / sum(count(*)) OVER () AS value
    FROM (SELECT CASE WHEN size <= 1 THEN '1' WHEN size <= 2 THEN '2' WHEN size <= 8 THEN '3-8' ELSE '>8' END AS bucket
          FROM base_workload WHERE unit = 'GPUs' AND size > 0 AND run_s > 30)
    GROUP BY bucket
)
SELECT p.place, p.group_name, p.measure, p.unit, p.published::DOUBLE AS published, m.value AS ours, m.value - p.published AS difference, p.finding
FROM published AS p LEFT JOIN (FROM measured UNION ALL FROM sizes) AS m ON m.measure = p.ours
ORDER BY p.rank
