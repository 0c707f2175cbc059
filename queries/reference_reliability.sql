-- title: Published values of reliability
-- section: reference
-- order: 98
-- reference: reliability
-- question: What have others measured, and of which population?
-- population: published: each row has its study, the place in it and its population; values are from notes on the papers unless the row says otherwise, and populations differ, so that no value is a target. Ours: failure_rates, availability, interruptions, mttf_by_size and ettr. Further references: kokolis25, llama3, delta.
-- needs: placements
-- column: study | - | study and its source
-- column: place | - | table, section or abstract; empty: the notes name none
-- column: population | - | what was observed
-- column: measure | - | what is compared
-- column: unit | - | of both values
-- column: published | - | their value
-- column: ours | - | this cluster's; empty: gpuctl measures no such thing
-- column: finding | - | where the value comes from, if not from two notes, and known contradictions
WITH ended AS (SELECT sum(attempts) FILTER (cause <> 'all') AS every, sum(attempts) FILTER (starts_with(cause, 'infrastructure')) AS infra,
                 sum(attempts) FILTER (starts_with(cause, 'infrastructure') OR cause IN ('user_program', 'unknown')) AS failed,
                 sum(gpu_hours) FILTER (starts_with(cause, 'infrastructure')) AS infra_hours,
                 sum(gpu_hours) FILTER (starts_with(cause, 'infrastructure') OR cause IN ('user_program', 'unknown')) AS failed_hours
          FROM result_interruptions),
largest AS (SELECT ettr FROM result_ettr ORDER BY gpus * run_h DESC, run LIMIT 1),
host AS (SELECT 1000 / nullif(per_1000_node_days, 0) AS days FROM result_failure_rates WHERE "by" = 'all' AND "group" = 'all')
SELECT p.study, p.place, p.population, p.measure, p.unit, p.published::DOUBLE AS published,
       CASE p.ours WHEN 'ettr' THEN (SELECT 100 * ettr FROM largest)
                   WHEN 'host' THEN (SELECT days FROM host)
                   WHEN 'jobs' THEN (SELECT 100.0 * infra / nullif(failed, 0) FROM ended)
                   WHEN 'hours' THEN (SELECT 100 * infra_hours / nullif(failed_hours, 0) FROM ended) END AS ours,
       p.finding
FROM (VALUES
    (1, 'MegaScale, NSDI 2024', NULL, 'over 10,000 GPUs, weeks', 'effective training time, at least', '%', 90, 'ettr', 'ours: the run that held the most GPU-hours'),
    (2, 'MegaScale, NSDI 2024', NULL, 'over 10,000 GPUs, weeks', 'faults that a machine found, at least', '%', 90, NULL, NULL),
    (3, 'MegaScale, NSDI 2024', NULL, 'over 10,000 GPUs, weeks', 'diagnosis, at most', 'min', 10, NULL, NULL),
    (4, 'MegaScale, NSDI 2024', NULL, 'over 10,000 GPUs, weeks', 'time to catch up after a failure, at most', 'min', 15, NULL, NULL),
    (5, 'MegaScale, NSDI 2024', NULL, 'over 10,000 GPUs, weeks', 'repairs of a run, at least', 'repairs', 100, NULL, NULL),
    (6, 'ByteRobust, SOSP 2025', NULL, '9,600 GPUs, three months', 'cumulative ETTR', '%', 97, 'ettr', 'from the text of the paper; ours: the run that held the most GPU-hours'),
    (7, 'ByteRobust, SOSP 2025', 'census of jobs', '778,135 jobs', 'interruptions by CUDA errors', '%', 36.1, NULL, 'a symptom: no cause'),
    (8, 'ByteRobust, SOSP 2025', 'census of jobs', '778,135 jobs', 'interruptions to change code or data', '%', 17.3, NULL, NULL),
    (9, 'ByteRobust, SOSP 2025', 'census of jobs', '778,135 jobs', 'hangs', '%', 9.9, NULL, NULL),
    (10, 'ByteRobust, SOSP 2025', 'census of jobs', '778,135 jobs', 'interruptions by a loss that is no number', '%', 0.3, NULL, NULL),
    (11, 'Aegis, NSDI 2025', NULL, 'hosts with A100, Alibaba', 'MTTF of a host', 'days', 400, 'host', 'from one note; 2.5 failures in 1000 node-days'),
    (12, 'Aegis, NSDI 2025', NULL, 'hosts with H100, Alibaba', 'MTTF of a host', 'days', 200, 'host', 'from one note; 5 failures in 1000 node-days'),
    (13, 'Aegis, NSDI 2025', NULL, 'Alibaba', 'critical failures of a week, at least', 'failures', 100, NULL, 'from one note; at most 230'),
    (14, 'Aegis, NSDI 2025', NULL, 'Alibaba', 'critical failures of a GPU', '%', 45.6, NULL, 'from one note'),
    (15, 'Aegis, NSDI 2025', NULL, 'Alibaba', 'failed tasks that failed within 10 min', '%', 73, NULL, 'from one note'),
    (16, 'Aegis, NSDI 2025', NULL, 'Alibaba', 'failures of distributed tasks that were not of the network', '%', 71, NULL, 'from one note'),
    (17, 'C4, HPCA 2025', 'abstract', 'Alibaba', 'overhead of errors that was saved', 'points', 30, NULL, 'from the abstract'),
    (18, 'C4, HPCA 2025', NULL, 'Alibaba', 'job time spent on diagnosis before, at least', '%', 30, NULL, NULL),
    (19, 'Acme, NSDI 2024', 'table 3', 'failed jobs on Seren and Kalos (A100), six months of 2023', 'failed jobs that infrastructure ended', '%', 11, 'jobs', 'recalled: the text of the paper was not at hand'),
    (20, 'Acme, NSDI 2024', 'table 3', 'failed jobs on Seren and Kalos (A100), six months of 2023', 'GPU time of failed jobs that infrastructure ended', '%', 82, 'hours', 'recalled: the text of the paper was not at hand'),
    (21, 'Acme, NSDI 2024', 'table 3', 'failed jobs on Seren and Kalos (A100), six months of 2023', 'mean run to an NVLink error', 'min', 868, NULL, 'recalled; of failed jobs alone: no MTTF'),
    (22, 'Acme, NSDI 2024', 'table 3', 'failed jobs on Seren and Kalos (A100), six months of 2023', 'mean run to a CUDA error', 'min', 923, NULL, 'recalled; of failed jobs alone: no MTTF'),
    (23, 'Acme, NSDI 2024', 'table 3', 'failed jobs on Seren and Kalos (A100), six months of 2023', 'mean run to a node failure', 'min', 1289, NULL, 'recalled; of failed jobs alone: no MTTF'),
    (24, 'Acme, NSDI 2024', 'table 3', 'failed jobs on Seren and Kalos (A100), six months of 2023', 'mean run to an ECC error', 'min', 1303, NULL, 'recalled; of failed jobs alone: no MTTF'),
    (25, 'Minder, NSDI 2025', NULL, 'ByteDance', 'faults by ECC errors', '%', 25.7, NULL, 'from one note'),
    (26, 'Minder, NSDI 2025', NULL, 'ByteDance', 'faults by CUDA errors', '%', 15, NULL, 'from one note; a symptom'),
    (27, 'Minder, NSDI 2025', NULL, 'ByteDance', 'faults by GPU errors', '%', 10, NULL, 'from one note'),
    (28, 'Minder, NSDI 2025', NULL, 'ByteDance', 'faults by PCIe errors', '%', 8.6, NULL, 'from one note'),
    (29, 'Minder, NSDI 2025', NULL, 'ByteDance', 'faults of a single machine', '%', 99, NULL, 'from one note'),
    (30, 'Minder, NSDI 2025', NULL, 'ByteDance', 'faults of a task', '1/day', 2, NULL, 'from one note'),
    (31, 'OPT-175B logbook', 'notes by Lockwood', '992 to 1,024 A100', 'MTTF of the run', 'h', 7.5, NULL, '105 restarts'),
    (32, 'OPT-175B logbook', 'notes by Lockwood', '992 to 1,024 A100', 'share of the time that the run was up', '%', 59, NULL, NULL),
    (33, 'Lablup, 2026', NULL, '504 B200, 55 to 73 days', 'failures of GPUs that 751 metrics found', '%', 100, NULL, 'from the text: 10 of 10'),
    (34, 'Lablup, 2026', NULL, '504 B200, 55 to 73 days', 'false alarms', '1/day', 0.84, NULL, 'from the text'),
    (35, 'Lablup, 2026', NULL, '504 B200, 55 to 73 days', 'retry chains that succeeded', '%', 33, NULL, 'from the text: 12 chains'),
    (36, 'Lablup, 2026', NULL, '504 B200, 55 to 73 days', 'median gap between retries', 'min', 11, NULL, 'from the text'),
    (37, 'Lablup, 2026', NULL, '63 nodes with 504 B200', 'exclusions of the three worst nodes, at least', '%', 50, NULL, 'from the text'),
    (38, 'A100 memory, arXiv 2508.03513', 'abstract', 'Delta, Polaris, Perlmutter', 'GPUs observed', 'GPUs', 10693, NULL, 'from the abstract: 67.77 million GPU-hours'),
    (39, 'Titan, SC 2020', 'abstract', '18,688 K20X, six years', 'lifetimes observed, over', 'GPU-years', 100000, NULL, 'the abstract says years')
) AS p(nr, study, place, population, measure, unit, published, ours, finding)
ORDER BY p.nr
