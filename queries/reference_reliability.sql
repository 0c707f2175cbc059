-- title: Published values of reliability
-- section: reference
-- order: 98
-- reference: reliability
-- question: What have others measured, and of which population?
-- population: published: each row has its study and population; values are from notes on the papers unless the row says otherwise, and populations differ, so that no value is a target. Ours: failure_rates, availability, interruptions, mttf_by_size and ettr. Further references: kokolis25, llama3, delta.
-- needs: placements
-- column: study | - | study and its source
-- column: population | - | what was observed
-- column: measure | - | what is compared
-- column: unit | - | of both values
-- column: published | - | their value
-- column: ours | - | this cluster's; empty: gpuctl measures no such thing
-- column: finding | - | known contradictions within the source; empty: none known
WITH ended AS (SELECT sum(attempts) FILTER (cause <> 'all') AS every, sum(attempts) FILTER (starts_with(cause, 'infrastructure')) AS infra,
                 sum(attempts) FILTER (starts_with(cause, 'infrastructure') OR cause IN ('user_program', 'unknown')) AS failed,
                 sum(gpu_hours) FILTER (starts_with(cause, 'infrastructure')) AS infra_hours,
                 sum(gpu_hours) FILTER (starts_with(cause, 'infrastructure') OR cause IN ('user_program', 'unknown')) AS failed_hours
          FROM result_interruptions),
largest AS (SELECT ettr FROM result_ettr ORDER BY gpus * run_h DESC, run LIMIT 1),
host AS (SELECT 1000 / nullif(per_1000_node_days, 0) AS days FROM result_failure_rates WHERE "by" = 'all' AND "group" = 'all')
SELECT p.study, p.population, p.measure, p.unit, p.published::DOUBLE AS published,
       CASE p.ours WHEN 'ettr' THEN (SELECT 100 * ettr FROM largest)
                   WHEN 'host' THEN (SELECT days FROM host)
                   WHEN 'jobs' THEN (SELECT 100.0 * infra / nullif(failed, 0) FROM ended)
                   WHEN 'hours' THEN (SELECT 100 * infra_hours / nullif(failed_hours, 0) FROM ended) END AS ours,
       p.finding
FROM (VALUES
    (1, 'MegaScale, NSDI 2024', 'over 10,000 GPUs, weeks', 'effective training time, at least', '%', 90, 'ettr', 'ours: the run that held the most GPU-hours'),
    (2, 'MegaScale, NSDI 2024', 'over 10,000 GPUs, weeks', 'faults that a machine found, at least', '%', 90, NULL, NULL),
    (3, 'MegaScale, NSDI 2024', 'over 10,000 GPUs, weeks', 'diagnosis, at most', 'min', 10, NULL, 'caught up within 15 min; repaired over 100 times'),
    (4, 'ByteRobust, SOSP 2025', '9,600 GPUs, three months', 'cumulative ETTR', '%', 97, 'ettr', 'from the text of the paper; ours: the run that held the most GPU-hours'),
    (5, 'ByteRobust, SOSP 2025', '778,135 jobs', 'interruptions by CUDA errors', '%', 36.1, NULL, 'a symptom: no cause'),
    (6, 'ByteRobust, SOSP 2025', '778,135 jobs', 'interruptions to change code or data', '%', 17.3, NULL, NULL),
    (7, 'ByteRobust, SOSP 2025', '778,135 jobs', 'hangs', '%', 9.9, NULL, NULL),
    (8, 'Aegis, NSDI 2025', 'hosts with A100, Alibaba', 'MTTF of a host', 'days', 400, 'host', 'from one note; 2.5 failures in 1000 node-days'),
    (9, 'Aegis, NSDI 2025', 'hosts with H100, Alibaba', 'MTTF of a host', 'days', 200, 'host', 'from one note; 5 failures in 1000 node-days'),
    (10, 'Aegis, NSDI 2025', 'Alibaba', 'critical failures of a GPU', '%', 45.6, NULL, 'from one note'),
    (11, 'C4, HPCA 2025', 'Alibaba', 'job time spent on errors, before', '%', 30, NULL, 'overhead of errors, by the abstract'),
    (12, 'Acme, NSDI 2024', 'Seren and Kalos, six months', 'failed jobs that infrastructure ended', '%', 11, 'jobs', 'recalled, not checked against the paper'),
    (13, 'Acme, NSDI 2024', 'Seren and Kalos, six months', 'GPU time of failed jobs that infrastructure ended', '%', 82, 'hours', 'recalled, not checked against the paper'),
    (14, 'Acme, NSDI 2024, table 3', 'Seren and Kalos, six months', 'mean run to an NVLink error', 'min', 868, NULL, 'recalled; of failed jobs alone: no MTTF'),
    (15, 'Acme, NSDI 2024, table 3', 'Seren and Kalos, six months', 'mean run to a node failure', 'min', 1289, NULL, 'recalled; of failed jobs alone: no MTTF'),
    (16, 'Acme, NSDI 2024, table 3', 'Seren and Kalos, six months', 'mean run to an ECC error', 'min', 1303, NULL, 'recalled; of failed jobs alone: no MTTF'),
    (17, 'Minder, NSDI 2025', 'ByteDance', 'faults by ECC errors', '%', 25.7, NULL, 'from one note'),
    (18, 'Minder, NSDI 2025', 'ByteDance', 'faults of a single machine', '%', 99, NULL, 'from one note; two faults a day and task'),
    (19, 'OPT-175B logbook', '992 to 1,024 A100', 'MTTF of the run', 'h', 7.5, NULL, '105 restarts; 59 % of the time up'),
    (20, 'Lablup, 2026', '504 B200, 55 to 73 days', 'retry chains that succeeded', '%', 33, NULL, '12 chains'),
    (21, 'Lablup, 2026', '63 nodes with 504 B200', 'exclusions of the three worst nodes, at least', '%', 50, NULL, NULL),
    (22, 'A100 memory, arXiv 2508.03513', 'Delta, Polaris, Perlmutter', 'GPUs observed', 'GPUs', 10693, NULL, '67.77 million GPU-hours'),
    (23, 'Titan, SC 2020', '18,688 K20X, six years', 'lifetimes observed, over', 'GPU-years', 100000, NULL, 'the abstract says years')
) AS p(nr, study, population, measure, unit, published, ours, finding)
ORDER BY p.nr
