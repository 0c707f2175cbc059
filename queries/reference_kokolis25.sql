-- title: Comparison with Meta's research clusters (Kokolis et al., HPCA 2025)
-- section: reference
-- order: 95
-- reference: kokolis25
-- question: Does infrastructure fail as often as on RSC-1 and RSC-2?
-- population: published: RSC-1 (16,000 A100) and RSC-2 (8,000), 11 months of 2023 and 2024, nodes of 8 GPUs; the rates are of jobs over 128 GPUs that ended by NODE_FAIL, or FAILED with a critical check from 10 minutes before the end to 5 after. The values are from notes on the paper, not from its text. Ours: failure_rates, mttf_by_size, interruptions and goodput_loss.
-- needs: placements
-- column: measure | - | what is compared
-- column: place | - | section or figure of the paper
-- column: unit | - | of both values
-- column: published | - | their value
-- column: ours | - | this cluster's
-- column: finding | - | known contradictions within the source; empty: none known
WITH ours AS (SELECT per_1000_node_days AS rate FROM result_failure_rates WHERE "by" = 'all' AND "group" = 'all'),
sizes AS (SELECT gpus, coalesce(mttf_h, model_mttf_h) AS mttf_h FROM result_mttf_by_size),
ended AS (SELECT sum(attempts) FILTER (cause <> 'all') AS every, sum(attempts) FILTER (starts_with(cause, 'infrastructure')) AS infra,
                 sum(attempts) FILTER (cause = 'completed') AS completed, sum(attempts) FILTER (cause = 'preempted') AS preempted,
                 sum(attempts) FILTER (cause = 'time_limit') AS at_limit,
                 sum(gpu_hours) FILTER (cause <> 'all') AS hours, sum(gpu_hours) FILTER (starts_with(cause, 'infrastructure')) AS infra_hours
          FROM result_interruptions),
lost AS (SELECT sum(gpu_hours) FILTER (kind = 'lost_second_order') AS second, sum(gpu_hours) FILTER (kind IN ('lost_second_order', 'lost_infrastructure')) AS together FROM result_goodput_loss)
SELECT p.measure, p.place, p.unit, p.published::DOUBLE AS published,
       CASE WHEN p.gpus IS NOT NULL THEN s.mttf_h
            WHEN starts_with(p.measure, 'failures of') THEN (SELECT rate FROM ours)
            WHEN p.measure = 'jobs that completed' THEN (SELECT 100.0 * completed / nullif(every, 0) FROM ended)
            WHEN p.measure = 'jobs that were preempted' THEN (SELECT 100.0 * preempted / nullif(every, 0) FROM ended)
            WHEN p.measure = 'jobs that met their time limit' THEN (SELECT 100.0 * at_limit / nullif(every, 0) FROM ended)
            WHEN p.measure = 'jobs that hardware ended' THEN (SELECT 100.0 * infra / nullif(every, 0) FROM ended)
            WHEN p.measure = 'run time of jobs that hardware ended' THEN (SELECT 100 * infra_hours / nullif(hours, 0) FROM ended)
            WHEN p.measure = 'lost goodput that is second order' THEN (SELECT 100 * second / nullif(together, 0) FROM lost) END AS ours,
       p.finding
FROM (VALUES
    (1, 'failures of RSC-1', 'section III', '1/1000 node-days', 6.5, NULL, 'of jobs over 128 GPUs'),
    (2, 'failures of RSC-2', 'section III', '1/1000 node-days', 2.34, NULL, 'of jobs over 128 GPUs'),
    (3, 'MTTF of 8 GPUs', 'figure 7', 'h', 1144.8, 8, 'measured, of all jobs: 21.0 failures in 1000 node-days, not the 6.5 of section III'),
    (4, 'MTTF of 1024 GPUs', 'figure 7', 'h', 7.9, 1024, 'measured: 23.7 failures in 1000 node-days; 6.5 give 28.8 h'),
    (5, 'MTTF of 16384 GPUs', 'figure 7', 'h', 1.8, 16384, 'projected from 6.5, from which it follows'),
    (6, 'MTTF of 100000 GPUs', 'text', 'h', 0.25, 100000, 'stated as 15 minutes; 6.5 give 17.7 minutes'),
    (7, 'MTTF of 131072 GPUs', 'figure 7', 'h', 0.23, 131072, 'projected from 6.5, from which it follows'),
    (8, 'jobs that completed', 'RSC-1', '%', 60, NULL, 'states of jobs; ours: of attempts'),
    (9, 'jobs that were preempted', 'RSC-1', '%', 10, NULL, 'states of jobs; ours: of attempts'),
    (10, 'jobs that hardware ended', 'RSC-1', '%', 0.2, NULL, 'ours: attempts that infrastructure ended'),
    (11, 'run time of jobs that hardware ended', 'RSC-1', '%', 18.7, NULL, 'ours: GPU-hours of attempts that infrastructure ended'),
    (12, 'lost goodput that is second order', 'RSC-1', '%', 16, NULL, 'by preemptions after failures; checkpoints each hour are assumed'),
    (13, 'ETTR of 2048 to 4096 GPUs, at least', 'RSC-1', '-', 0.9, NULL, 'runs of over a day at the highest priority'),
    (14, 'ETTR of 16000 GPUs, checkpoints each 60 min', 'model', '-', 0.7, NULL, 'the linear formula gives 0.684'),
    (15, 'ETTR of 16000 GPUs, checkpoints each 5 min', 'model', '-', 0.93, NULL, 'the linear formula gives 0.932'),
    (16, 'ETTR at the rate of RSC-2, checkpoints each 21 min', 'figure 10', '-', 0.5, NULL, 'as read from the figure; the linear formula gives 0.69: not reproduced'),
    (17, 'hardware failures with a second cause', 'RSC-1', '%', 3, NULL, '5 % on RSC-2'),
    (18, 'PCIe errors without an XID', 'RSC-1', '%', 57, NULL, '37 % on RSC-2'),
    (19, 'PCIe errors with XID 79', 'RSC-1', '%', 43, NULL, '63 % on RSC-2'),
    (20, 'jobs that failed', 'RSC-1', '%', 24, NULL, 'states of jobs; gpuctl tells programs from machines'),
    (21, 'jobs with NODE_FAIL', 'RSC-1', '%', 0.1, NULL, 'states of jobs'),
    (22, 'jobs that were requeued', 'RSC-1', '%', 2, NULL, 'states of jobs'),
    (23, 'jobs that ran out of memory', 'RSC-1', '%', 0.1, NULL, 'states of jobs'),
    (24, 'jobs that met their time limit', 'RSC-1', '%', 0.6, NULL, 'states of jobs; ours: of attempts'),
    (25, 'requeues of one job of 1024 GPUs', 'RSC-1', 'requeues', 35, NULL, 'the most; they preempted 548 jobs')
) AS p(nr, measure, place, unit, published, gpus, finding) LEFT JOIN sizes AS s ON s.gpus = p.gpus
ORDER BY p.nr
