-- title: Comparison with Table 7 of the Philly paper
-- section: reference
-- order: 20
-- reference: atc19
-- question: Do attempts fail for the same reasons as on Philly?
-- population: published: 39,776 trials of 75 days on Philly, 2017 (Jeon et al., USENIX ATC 2019); this trace: {failures} failed attempt{failures||s} of this trace, {failures_with_log} of them with a log. The public Philly trace has no logs, so none of its failures has a signature. Reasons that are not in Table 7 are gpuctl's own.
-- needs: attempts
-- first_columns: 7
-- column: reason | - | name in Table 7, else gpuctl's own
-- column: published_trials_pct | % | share of the trials, published
-- column: trials_pct | % | this trace
-- column: published_p50_min | min | median run time to failure, published
-- column: p50_min | min | this trace
-- column: published_p90_min | min | 90th percentile, published
-- column: p90_min | min | this trace
-- column: published_p95_min | min | 95th percentile, published
-- column: p95_min | min | this trace
-- column: published_rtf_pct | % | share of the run time to failure, published
-- column: rtf_pct | % | this trace
-- column: published_over_4_pct | % | share of the trials that requested more than 4 GPUs, published
-- column: over_4_pct | % | this trace
-- column: published_gpu_minutes_pct | % | share of run time to failure x demand, published
-- column: gpu_minutes_pct | % | this trace
WITH published(rank, reason, title, trials, p50, p90, p95, rtf_pct, of_1, of_2_to_4, over_4, gpu_minutes_pct) AS (
    VALUES
        (1, 'cpu_out_of_memory', 'CPU out of memory', 12076, 13.45, 17.73, 33.97, 6.62, 11465, 235, 376, 8.05),
        (2, 'incorrect_inputs', 'Incorrect inputs', 9690, 1.87, 404.83, 2095.73, 30.43, 5844, 2638, 1208, 24.21),
        (3, 'semantic_error', 'Semantic error', 2943, 2.72, 376.0, 1436.88, 9.22, 1603, 494, 846, 17.06),
        (4, 'core_dump', 'Core dump', 2912, 0.85, 72.75, 431.65, 3.35, 1936, 496, 480, 3.02),
        (5, 'invalid_memory_access', 'Invalid mem access', 2602, 1.03, 403.5, 1357.38, 3.82, 712, 774, 1116, 4.75),
        (6, 'checkpoint_error', 'Model ckpt error', 1995, 181.67, 3728.93, 8196.02, 21.73, 743, 384, 868, 16.33),
        (7, 'cuda_failure', 'CUDA failure', 1484, 1.32, 19.87, 82.17, 0.62, 133, 1153, 198, 0.72),
        (8, 'syntax_error', 'Syntax error', 1132, 0.58, 5.02, 12.0, 0.19, 780, 184, 168, 0.26),
        (9, 'traceback', 'Traceback from crash', 777, 1.02, 894.33, 1394.07, 2.34, 356, 277, 144, 1.74),
        (10, 'mpi_error', 'MPI error', 634, 1.62, 3015.27, 5143.98, 3.7, 456, 54, 124, 1.24),
        (11, 'gpu_out_of_memory', 'GPU out of memory', 487, 18.53, 353.62, 2740.28, 1.08, 237, 70, 180, 2.1),
        (12, 'mpi_runtime_failure', 'MPI runtime failure', 478, 1389.48, 13778.6, 18090.88, 14.63, 240, 141, 97, 15.34),
        (13, 'permission_error', 'Permission error', 299, 1.0, 8.15, 15.85, 0.07, 56, 202, 41, 0.03),
        (14, 'import_error', 'Import error', 148, 0.67, 4.58, 10.73, 0.06, 108, 30, 10, 0.02),
        (15, 'job_preempted', 'Job preempted', 147, 559.08, 2682.85, 5892.23, 1.66, 25, 95, 27, 4.73),
        (16, 'cuda_init_failed', 'CUDA init failed', 141, 1.08, 2.18, 4.63, 0.03, 16, 66, 59, 0.13),
        (17, 'model_diverged', 'Model diverged', 84, 1.48, 44.37, 76.53, 0.01, 78, 5, 1, 0.01),
        (18, 'cuda_version_mismatch', 'CUDA ver. mismatch', 49, 0.83, 1.65, 1.67, 0.0, 1, 1, 47, 0.0),
        (19, 'gpu_ecc_error', 'GPU ECC error', 10, 26.82, 671.92, 2035.02, 0.03, 1, 5, 4, 0.05),
        (20, 'output_node_error', 'Output node error', 3, 0.85, 0.95, 0.95, 0.0, 3, 0, 0, 0.0),
        (21, 'cannot_load_libs', 'Cannot load libs', 1, 0.12, 0.12, 0.12, 0.0, 1, 0, 0, 0.0),
        (22, 'no_signature', 'No signature', 1684, 1.87, 28.0, 95.17, 0.42, 1235, 294, 155, 0.21)
),
measured AS (SELECT DISTINCT f.reason, r.* EXCLUDE (reason), r.reason AS title FROM base_failures AS f JOIN result_failure_reasons AS r ON r.reason = f.title)
SELECT coalesce(p.title, m.title) AS reason, 100.0 * p.trials / 39776 AS published_trials_pct, m.trials_pct,
       p.p50::DOUBLE AS published_p50_min, m.rtf_p50_min AS p50_min, p.p90::DOUBLE AS published_p90_min, m.rtf_p90_min AS p90_min,
       p.p95::DOUBLE AS published_p95_min, m.rtf_p95_min AS p95_min, p.rtf_pct::DOUBLE AS published_rtf_pct, m.rtf_total_pct AS rtf_pct,
       100.0 * p.over_4 / p.trials AS published_over_4_pct, 100.0 * m.trials_over_4 / m.trials AS over_4_pct,
       p.gpu_minutes_pct::DOUBLE AS published_gpu_minutes_pct, m.gpu_minutes_pct
FROM published AS p FULL JOIN measured AS m USING (reason)
ORDER BY p.rank NULLS LAST, m.trials DESC, reason
