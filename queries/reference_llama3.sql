-- title: Comparison with the interruptions of Llama 3 405B
-- section: reference
-- order: 96
-- reference: llama3
-- question: Is a large run interrupted as often, and by the same components?
-- population: published: 419 unexpected interruptions in 54 days of training on 16,384 H100 (The Llama 3 Herd of Models, 2024, table 5); the paper also counts 47 planned ones. Rates are computed from these counts: 2,048 nodes x 54 days. Ours: failure_rates and mttf_by_size (16,384 GPUs with --sizes 16384).
-- needs: placements
-- column: measure | - | what is compared
-- column: place | - | table of the paper
-- column: unit | - | of both values
-- column: published | - | their value
-- column: ours | - | this cluster's; empty: other components are distinguished
-- column: finding | - | known contradictions within the source; empty: none known
WITH ours AS (SELECT "by", "group", failures, per_1000_node_days, per_gpu_year, sum(failures) OVER (PARTITION BY "by") AS total FROM result_failure_rates)
SELECT p.measure, 'table 5' AS place, p.unit, p.published::DOUBLE AS published,
       CASE p.measure WHEN 'interruptions' THEN (SELECT per_1000_node_days FROM ours WHERE "by" = 'all' AND "group" = 'all')
            WHEN 'interruptions of a GPU' THEN (SELECT per_gpu_year FROM ours WHERE "by" = 'all' AND "group" = 'all')
            WHEN 'MTTF of 16384 GPUs' THEN (SELECT coalesce(mttf_h, model_mttf_h) FROM result_mttf_by_size WHERE gpus = 16384)
            ELSE (SELECT 100.0 * sum(failures) / nullif(any_value(total), 0) FROM ours WHERE "by" = 'component' AND "group" = p.component) END AS ours,
       p.finding
FROM (VALUES
    (1, 'interruptions', '1/1000 node-days', 3.79, NULL, 'all causes but planned ones; 95 % interval 3.43 to 4.17'),
    (2, 'interruptions of a GPU', '1/GPU-year', 0.173, NULL, 'all causes but planned ones'),
    (3, 'share of GPUs of any kind', '%', 64.0, NULL, '268 of 419; the 58.7 % of the text is the sum of printed shares'),
    (4, 'share of faulty GPUs', '%', 35.3, 'GPU', '148 of 419; the table prints 30.1 %'),
    (5, 'share of HBM3 memory', '%', 17.2, 'memory', '72 of 419'),
    (6, 'share of software', '%', 12.9, NULL, '54 of 419'),
    (7, 'share of switches and cables', '%', 8.4, 'network link', '35 of 419'),
    (8, 'share of host maintenance', '%', 7.6, NULL, '32 of 419: unplanned'),
    (9, 'share of GPU SRAM', '%', 4.5, NULL, '19 of 419'),
    (10, 'share of GSP', '%', 4.1, NULL, '17 of 419'),
    (11, 'share of NICs', '%', 1.7, NULL, '7 of 419'),
    (12, 'share of NCCL timeouts', '%', 1.7, NULL, '7 of 419: a symptom, the cause is not known'),
    (13, 'share of silent corruption', '%', 1.4, NULL, '6 of 419'),
    (14, 'share of cooling of GPUs', '%', 1.4, 'cooling', '6 of 419'),
    (15, 'share of power supplies', '%', 0.7, 'power', '3 of 419'),
    (16, 'share of disks', '%', 0.7, 'disk', '3 of 419'),
    (17, 'MTTF of 16384 GPUs', 'h', 3.09, NULL, '54 days over 419; 95 % interval 2.81 to 3.41'),
    (18, 'planned interruptions', '1/1000 node-days', 0.42, NULL, '47: counted apart'),
    (19, 'effective training time, at least', '%', 90, NULL, NULL),
    (20, 'share of chassis', '%', 0.5, NULL, '2 of 419'),
    (21, 'share of IO boards', '%', 0.5, NULL, '2 of 419'),
    (22, 'share of dependencies', '%', 0.5, NULL, '2 of 419'),
    (23, 'share of CPUs', '%', 0.5, NULL, '2 of 419'),
    (24, 'share of memory of the host', '%', 0.5, NULL, '2 of 419')
) AS p(nr, measure, unit, published, component, finding)
ORDER BY p.nr
