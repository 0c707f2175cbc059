-- title: Comparison with Meta's research clusters (Kokolis et al., HPCA 2025)
-- section: reference
-- order: 95
-- reference: kokolis25
-- question: Does infrastructure fail as often as on RSC-1 and RSC-2?
-- population: published: RSC-1 (16,000 A100) and RSC-2 (8,000), 11 months of 2023 and 2024, nodes of 8 GPUs; the rates are of jobs over 128 GPUs that ended by NODE_FAIL, or FAILED with a critical check from 10 minutes before the end to 5 after. The values are from notes on the paper, not from its text. Ours: failure_rates and mttf_by_size.
-- needs: placements
-- column: measure | - | what is compared
-- column: place | - | section or figure of the paper
-- column: unit | - | of both values
-- column: published | - | their value
-- column: ours | - | this cluster's
-- column: finding | - | what is to be known of the published value
WITH ours AS (SELECT per_1000_node_days AS rate FROM result_failure_rates WHERE "by" = 'all' AND "group" = 'all'),
sizes AS (SELECT gpus, coalesce(mttf_h, model_mttf_h) AS mttf_h FROM result_mttf_by_size)
SELECT p.measure, p.place, p.unit, p.published::DOUBLE AS published, CASE WHEN p.gpus IS NULL THEN (SELECT rate FROM ours) ELSE s.mttf_h END AS ours, p.finding
FROM (VALUES
    (1, 'failures of RSC-1', 'section III', '1/1000 node-days', 6.5, NULL, 'of jobs over 128 GPUs'),
    (2, 'failures of RSC-2', 'section III', '1/1000 node-days', 2.34, NULL, 'of jobs over 128 GPUs'),
    (3, 'MTTF of 8 GPUs', 'figure 7', 'h', 1144.8, 8, 'measured, of all jobs: 21.0 failures in 1000 node-days, not the 6.5 of section III'),
    (4, 'MTTF of 1024 GPUs', 'figure 7', 'h', 7.9, 1024, 'measured: 23.7 failures in 1000 node-days; 6.5 give 28.8 h'),
    (5, 'MTTF of 16384 GPUs', 'figure 7', 'h', 1.8, 16384, 'projected from 6.5'),
    (6, 'MTTF of 131072 GPUs', 'figure 7', 'h', 0.23, 131072, 'projected from 6.5')
) AS p(nr, measure, place, unit, published, gpus, finding) LEFT JOIN sizes AS s ON s.gpus = p.gpus
ORDER BY p.nr
