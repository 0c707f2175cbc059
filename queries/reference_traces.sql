-- title: Comparison with public traces
-- section: reference
-- order: 90
-- reference: traces
-- question: How does this cluster differ from Helios, Acme, Philly and PAI?
-- population: published: AcmeTrace, data/cluster_summary.csv (InternLM, CC-BY-4.0), jobs with GPUs in any state, of Helios (SenseTime, 2020), Seren and Kalos (Acme, 2023), Philly (Microsoft, 2017) and PAI (Alibaba, 2020); empty if it has no value. Run times of Kalos include the wait. ours: jobs with GPUs, as in the table workload.
-- column: measure | - | what is measured
-- column: unit | - | unit of the values
-- column: ours | - | this trace's value; empty if the trace has no such jobs or data
-- column: helios | - | published value for Helios, four clusters
-- column: seren | - | published value for Seren (Acme)
-- column: kalos | - | published value for Kalos (Acme)
-- column: philly | - | published value for Philly
-- column: pai | - | published value for PAI
WITH published(rank, measure, unit, ours, helios, seren, kalos, philly, pai) AS (
    VALUES
        (1, 'jobs', 'jobs', 'jobs', 3362981, 1031550, 62413, 112956, 1260920),
        (2, 'jobs with GPUs', 'jobs', 'sized_jobs', 1580464, 663813, 19907, 112956, 1037085),
        (3, 'GPUs of a job, mean', 'GPUs', 'size_mean', 3.716, 5.68, 26.77, 1.928, 0.683),
        (4, 'GPUs of a job, median', 'GPUs', 'size_p50', 1, 1, 1, 1, 0.5),
        (5, 'GPUs of a job, most', 'GPUs', 'size_max', 2048, 1024, 1024, 128, 8),
        (6, 'run time, mean', 's', 'run_mean_s', 6651.681, 1414.335, 1259.689, 18006.055, 4787.109),
        (7, 'run time, median', 's', 'run_p50_s', 206, 122, 124, 874, 480.667),
        (8, 'run time, longest', 's', 'run_max_s', 4320009, 1209604, 625740, 4240676, 626371),
        (9, 'wait, mean', 's', 'wait_mean_s', 862.047, 445.984, 214.179, 3760.604, 401.742),
        (10, 'wait, median', 's', 'wait_p50_s', 0, 1, 17, 189, 9),
        (11, 'jobs that completed', '%', 'completed_pct', 62.4, 49.7, 54.1, 60.4, NULL),
        (12, 'jobs that were cancelled', '%', 'killed_pct', 22.1, 7.5, 6.2, 9, NULL),
        (13, 'jobs that failed', '%', 'failed_pct', 15.5, 42.9, 39.7, 30.5, NULL),
        (14, 'GPU time of jobs that completed', '%', 'completed_work_pct', 51.3, 21.2, 31.3, 32.1, NULL),
        (15, 'GPU time of jobs that were cancelled', '%', 'killed_work_pct', 39.4, 66.4, 60.7, 29.4, NULL),
        (16, 'GPU time of jobs that failed', '%', 'failed_work_pct', 9.3, 12.4, 8, 38.6, NULL)
),
measured(measure, value) AS (
    UNPIVOT (
        SELECT w.jobs::DOUBLE AS jobs, w.sized_jobs::DOUBLE AS sized_jobs, o.gpus::DOUBLE AS gpus, o.machines::DOUBLE AS machines, w.size_mean, w.size_p50, w.size_max::DOUBLE AS size_max,
               w.run_mean_s, w.run_p50_s, w.run_max_s, w.wait_mean_s, w.wait_p50_s, w.completed_pct, w.killed_pct, w.failed_pct, w.completed_work_pct, w.killed_work_pct, w.failed_work_pct
        FROM result_workload AS w, result_overview AS o WHERE w.unit = 'GPUs'
    ) ON COLUMNS(*) INTO NAME measure VALUE value
)
SELECT p.measure, p.unit, m.value AS ours, p.helios::DOUBLE AS helios, p.seren::DOUBLE AS seren, p.kalos::DOUBLE AS kalos, p.philly::DOUBLE AS philly, p.pai::DOUBLE AS pai
FROM published AS p LEFT JOIN measured AS m ON m.measure = p.ours
ORDER BY p.rank
