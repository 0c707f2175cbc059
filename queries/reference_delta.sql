-- title: Comparison with Delta (Cui et al., arXiv 2503.11901)
-- section: reference
-- order: 97
-- reference: delta
-- question: Do GPUs meet errors as often as those of Delta?
-- population: published: 448 A100 over 895 days and 608 H100 (GH200) over 146 days, 11.7 million GPU-hours at NCSA; XIDs of a node, device and code within 5 s are one event, as ours. Version 3 of the paper, its values from notes on it, except the ratio; GPU-hours between errors are computed from its counts. Ours: xids, of all GPU types together, over the capacity in GPU-hours; availability.
-- needs: placements
-- column: measure | - | what is compared
-- column: population | - | GPUs and days observed
-- column: unit | - | of both values
-- column: published | - | their value
-- column: ours | - | this cluster's; empty: no such event, or gpuctl measures no such thing
-- column: finding | - | known contradictions within the source; empty: none known
WITH hours AS (SELECT gpu_hours AS h FROM result_goodput_loss WHERE kind = 'all')
SELECT p.measure, p.population, p.unit, p.published::DOUBLE AS published,
       CASE WHEN p.codes IS NOT NULL THEN (SELECT h FROM hours) / (SELECT nullif(sum(events), 0) FROM result_xids WHERE list_contains(p.codes, xid))
            WHEN p.measure = 'availability of nodes' THEN (SELECT up_pct FROM result_availability WHERE period = 'all') END AS ours,
       p.finding
FROM (VALUES
    (1, 'GPU-hours between uncorrectable memory errors', '448 A100, 895 days', 'GPU-h', 283271, [48, 94, 95], NULL),
    (2, 'GPU-hours between uncorrectable memory errors', '608 H100, 146 days', 'GPU-h', 88768, [48, 94, 95], '3.2 times as often as on the A100, as the abstract states'),
    (3, 'GPU-hours between MMU errors', '448 A100, 895 days', 'GPU-h', 1086, [31], '8,863 errors: most are of programs'),
    (4, 'GPU-hours between GSP errors', '448 A100, 895 days', 'GPU-h', 2495, [119, 120], '3,857 errors; on 608 H100 3 in 146 days'),
    (5, 'GPU-hours between NVLink errors', '448 A100, 895 days', 'GPU-h', 5007, [74], '1,922 errors'),
    (6, 'GPU-hours between PMU errors', '448 A100, 895 days', 'GPU-h', 124974, [122, 123], '77 errors'),
    (7, 'hours between errors in the system', 'H100', 'h', 1.9, NULL, 'as printed; A100: 1.4'),
    (8, 'availability of nodes', 'H100', '%', 99.3, NULL, 'A100: 99.4'),
    (9, 'spare nodes for 99.9 %', 'simulated', '%', 5, NULL, 'version 1 of the paper: 5 to 20 %'),
    (10, 'node-hours between hardware errors', '1,168 GPUs with A40, 2.5 years', 'node-h', 800, NULL, 'version 1, from one note'),
    (11, 'node-hours between double-bit errors', '1,168 GPUs with A40, 2.5 years', 'node-h', 26000, NULL, 'version 1, from one note'),
    (12, 'NVLink errors that jobs survived', '1,168 GPUs with A40, 2.5 years', '%', 66.7, NULL, 'version 1, from one note'),
    (13, 'hours between NVLink errors in the system', '1,168 GPUs with A40, 2.5 years', 'h', 6.9, NULL, 'version 1, from one note'),
    (14, 'longest recovery from a GSP error', '1,168 GPUs with A40, 2.5 years', 'h', 23, NULL, 'version 1, from one note')
) AS p(nr, measure, population, unit, published, codes, finding)
ORDER BY p.nr
