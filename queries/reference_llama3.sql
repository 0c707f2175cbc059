-- title: Comparison with the interruptions of Llama 3 405B
-- section: reference
-- order: 96
-- reference: llama3
-- question: Is a large run interrupted as often, and by the same components?
-- population: published: 419 unexpected interruptions in 54 days of training on 16,384 H100 (The Llama 3 Herd of Models, 2024, table 5); the paper also counts 47 planned ones. Rates are computed from these counts: 2,048 nodes x 54 days. Ours: failure_rates.
-- needs: placements
-- column: measure | - | what is compared
-- column: place | - | table of the paper
-- column: unit | - | of both values
-- column: published | - | their value
-- column: ours | - | this cluster's; empty: other components are distinguished
-- column: finding | - | what is to be known of the published value
WITH ours AS (SELECT "by", "group", failures, per_1000_node_days, per_gpu_year, sum(failures) OVER (PARTITION BY "by") AS total FROM result_failure_rates)
SELECT p.measure, 'table 5' AS place, p.unit, p.published::DOUBLE AS published,
       CASE p.measure WHEN 'interruptions' THEN (SELECT per_1000_node_days FROM ours WHERE "by" = 'all' AND "group" = 'all')
            WHEN 'interruptions of a GPU' THEN (SELECT per_gpu_year FROM ours WHERE "by" = 'all' AND "group" = 'all')
            ELSE (SELECT 100.0 * sum(failures) / nullif(any_value(total), 0) FROM ours WHERE "by" = 'component' AND "group" = p.component) END AS ours,
       p.finding
FROM (VALUES
    (1, 'interruptions', '1/1000 node-days', 3.79, NULL, 'all causes but planned ones; 95 % interval 3.43 to 4.17'),
    (2, 'interruptions of a GPU', '1/GPU-year', 0.173, NULL, 'all causes but planned ones'),
    (3, 'share of faulty GPUs', '%', 35.3, 'GPU', '148 of 419; the table prints 30.1 %'),
    (4, 'share of HBM3 memory', '%', 17.2, 'memory', '72 of 419'),
    (5, 'share of switches and cables', '%', 8.4, 'network link', '35 of 419'),
    (6, 'share of software', '%', 12.9, NULL, '54 of 419')
) AS p(nr, measure, unit, published, component, finding)
ORDER BY p.nr
