-- title: Comparison with the Philly paper (Jeon et al., USENIX ATC 2019)
-- section: reference
-- order: 10
-- reference: atc19
-- question: How close are this trace's figures to the published ones?
-- population: published: the paper's 75 days, 96,260 jobs, 14 virtual clusters; ours: this trace. The public Philly trace is another, sanitised selection of the same cluster (117,325 jobs), so its figures differ from the paper's too. Figure 9 is read off a plot (± 0.02); the first two figures of section 4.1 are marked 'about'.
-- column: place | - | table or figure of the paper
-- column: measure | - | what is measured
-- column: group_name | - | jobs that the value describes
-- column: unit | - | unit of both values
-- column: published | - | the paper's value
-- column: ours | - | this trace's value; empty if the trace has no such jobs or data
-- column: difference | - | ours - published
WITH published(rank, place, measure, a, b, unit, value) AS (
    VALUES
        (100, 'Table 2', 'fair-share delay, share of waits', '2-4', '', '%', 40.6),
        (101, 'Table 2', 'fair-share delay, share of waits', '5-8', '', '%', 25.8),
        (102, 'Table 2', 'fair-share delay, share of waits', '>8', '', '%', 2.1),
        (110, 'Table 2', 'fragmentation delay, share of waits', '2-4', '', '%', 59.4),
        (111, 'Table 2', 'fragmentation delay, share of waits', '5-8', '', '%', 74.2),
        (112, 'Table 2', 'fragmentation delay, share of waits', '>8', '', '%', 97.9),
        (200, 'Table 3', 'mean GPU utilization', '1', 'completed', '%', 53.51), (201, 'Table 3', 'mean GPU utilization', '1', 'killed', '%', 37.02),
        (202, 'Table 3', 'mean GPU utilization', '1', 'failed', '%', 62.82), (203, 'Table 3', 'mean GPU utilization', '1', 'all', '%', 52.38),
        (210, 'Table 3', 'mean GPU utilization', '4', 'completed', '%', 51.13), (211, 'Table 3', 'mean GPU utilization', '4', 'killed', '%', 34.39),
        (212, 'Table 3', 'mean GPU utilization', '4', 'failed', '%', 50.95), (213, 'Table 3', 'mean GPU utilization', '4', 'all', '%', 45.18),
        (220, 'Table 3', 'mean GPU utilization', '8', 'completed', '%', 51.09), (221, 'Table 3', 'mean GPU utilization', '8', 'killed', '%', 60.63),
        (222, 'Table 3', 'mean GPU utilization', '8', 'failed', '%', 64.34), (223, 'Table 3', 'mean GPU utilization', '8', 'all', '%', 58.99),
        (230, 'Table 3', 'mean GPU utilization', '16', 'completed', '%', 44.88), (231, 'Table 3', 'mean GPU utilization', '16', 'killed', '%', 36.98),
        (232, 'Table 3', 'mean GPU utilization', '16', 'failed', '%', 39.02), (233, 'Table 3', 'mean GPU utilization', '16', 'all', '%', 40.39),
        (240, 'Table 3', 'mean GPU utilization', 'all', 'completed', '%', 52.43), (241, 'Table 3', 'mean GPU utilization', 'all', 'killed', '%', 42.98),
        (242, 'Table 3', 'mean GPU utilization', 'all', 'failed', '%', 60.43), (243, 'Table 3', 'mean GPU utilization', 'all', 'all', '%', 52.32),
        (300, 'Figure 6', 'GPU utilization on whole nodes, mean', '8', '1', '%', 56.9), (301, 'Figure 6', 'GPU utilization on whole nodes, median', '8', '1', '%', 73.12),
        (302, 'Figure 6', 'GPU utilization on whole nodes, mean', '16', '2', '%', 34.3),
        (400, 'Table 5', 'GPU utilization of 16-GPU jobs, mean', '16', '2', '%', 43.66), (401, 'Table 5', 'GPU utilization of 16-GPU jobs, median', '16', '2', '%', 43.69),
        (402, 'Table 5', 'GPU utilization of 16-GPU jobs, 90th percentile', '16', '2', '%', 91.77), (403, 'Table 5', 'GPU utilization of 16-GPU jobs, 95th percentile', '16', '2', '%', 97.06),
        (410, 'Table 5', 'GPU utilization of 16-GPU jobs, mean', '16', '4', '%', 40.94), (411, 'Table 5', 'GPU utilization of 16-GPU jobs, median', '16', '4', '%', 39.85),
        (412, 'Table 5', 'GPU utilization of 16-GPU jobs, 90th percentile', '16', '4', '%', 83.28), (413, 'Table 5', 'GPU utilization of 16-GPU jobs, 95th percentile', '16', '4', '%', 91.97),
        (420, 'Table 5', 'GPU utilization of 16-GPU jobs, mean', '16', '8', '%', 28.56), (421, 'Table 5', 'GPU utilization of 16-GPU jobs, median', '16', '8', '%', 25.71),
        (422, 'Table 5', 'GPU utilization of 16-GPU jobs, 90th percentile', '16', '8', '%', 65.68), (423, 'Table 5', 'GPU utilization of 16-GPU jobs, 95th percentile', '16', '8', '%', 78.85),
        (500, 'Table 6', 'share of jobs', 'completed', '', '%', 69.3), (501, 'Table 6', 'share of jobs', 'killed', '', '%', 13.5), (502, 'Table 6', 'share of jobs', 'failed', '', '%', 17.2),
        (510, 'Table 6', 'share of GPU time', 'completed', '', '%', 44.53), (511, 'Table 6', 'share of GPU time', 'killed', '', '%', 37.69), (512, 'Table 6', 'share of GPU time', 'failed', '', '%', 17.76),
        (600, 'Figure 9', 'mean retries', '1', '', 'attempts', 0.33), (601, 'Figure 9', 'mean retries', '2-4', '', 'attempts', 0.98),
        (602, 'Figure 9', 'mean retries', '5-8', '', 'attempts', 1.09), (603, 'Figure 9', 'mean retries', '>8', '', 'attempts', 1.11), (604, 'Figure 9', 'mean retries', 'all', '', 'attempts', 0.44),
        (610, 'Figure 9', 'share of jobs that fail', '1', '', '%', 13.0), (611, 'Figure 9', 'share of jobs that fail', '2-4', '', '%', 37.0),
        (612, 'Figure 9', 'share of jobs that fail', '5-8', '', '%', 42.0), (613, 'Figure 9', 'share of jobs that fail', '>8', '', '%', 47.0), (614, 'Figure 9', 'share of jobs that fail', 'all', '', '%', 17.0),
        (700, 'Section 4.1', 'jobs with the lowest loss at the last epoch', 'completed', '', '%', 80), (701, 'Section 4.1', 'jobs within 0.1 % of it in 40 % of the epochs', 'all', '', '%', 75),
        (702, 'Section 4.1', 'GPU time after coming within 0.1 %, mean', 'completed', '', '%', 62), (703, 'Section 4.1', 'GPU time after coming within 0.1 %, mean', 'killed', '', '%', 56)
),
measured(measure, a, b, value) AS (
    SELECT 'fair-share delay, share of waits', size_bucket, '', fair_share_pct FROM result_delay_two_way
    UNION ALL SELECT 'fragmentation delay, share of waits', size_bucket, '', fragmentation_pct FROM result_delay_two_way
    UNION ALL SELECT 'mean GPU utilization', gpus, state, mean_pct FROM result_gpu_util_by_state
    UNION ALL SELECT 'GPU utilization on whole nodes, mean', gpus::VARCHAR, nodes::VARCHAR, mean_pct FROM result_gpu_util_by_nodes
    UNION ALL SELECT 'GPU utilization on whole nodes, median', gpus::VARCHAR, nodes::VARCHAR, p50_pct FROM result_gpu_util_by_nodes
    UNION ALL SELECT 'GPU utilization of 16-GPU jobs, mean', gpus::VARCHAR, nodes::VARCHAR, mean_pct FROM result_gpu_util_by_nodes
    UNION ALL SELECT 'GPU utilization of 16-GPU jobs, median', gpus::VARCHAR, nodes::VARCHAR, p50_pct FROM result_gpu_util_by_nodes
    UNION ALL SELECT 'GPU utilization of 16-GPU jobs, 90th percentile', gpus::VARCHAR, nodes::VARCHAR, p90_pct FROM result_gpu_util_by_nodes
    UNION ALL SELECT 'GPU utilization of 16-GPU jobs, 95th percentile', gpus::VARCHAR, nodes::VARCHAR, p95_pct FROM result_gpu_util_by_nodes
    UNION ALL SELECT 'share of jobs', state, '', sum(jobs_pct) FROM result_status GROUP BY state
    UNION ALL SELECT 'share of GPU time', state, '', sum(CASE $duration WHEN 'span' THEN gpu_hours_span_pct WHEN 'sum' THEN gpu_hours_sum_pct ELSE gpu_hours_last_pct END) FROM result_status GROUP BY state
    UNION ALL SELECT 'mean retries', size_bucket, '', retries_mean FROM result_attempts_by_size
    UNION ALL SELECT 'share of jobs that fail', size_bucket, '', failed_pct FROM result_attempts_by_size
    UNION ALL SELECT 'jobs with the lowest loss at the last epoch', state, '', all_epochs_pct FROM result_training_convergence
    UNION ALL SELECT 'jobs within 0.1 % of it in 40 % of the epochs', state, '', near_by_40_pct FROM result_training_convergence
    UNION ALL SELECT 'GPU time after coming within 0.1 %, mean', state, '', after_mean_pct FROM result_training_convergence
)
SELECT p.place, p.measure,
       CASE WHEN p.measure LIKE '%nodes%' OR p.measure LIKE '%16-GPU%' THEN p.a || ' GPUs on ' || p.b || ' nodes'
            WHEN p.measure = 'mean GPU utilization' THEN p.a || ' GPUs, ' || p.b
            WHEN p.place IN ('Table 6', 'Section 4.1') THEN p.a
            ELSE p.a || ' GPUs' END AS group_name,
       p.unit, p.value::DOUBLE AS published, m.value AS ours, m.value - p.value AS difference
FROM published AS p LEFT JOIN measured AS m ON m.measure = p.measure AND m.a = p.a AND m.b = p.b
ORDER BY p.rank
