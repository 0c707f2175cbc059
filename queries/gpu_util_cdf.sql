-- title: GPU utilization, cumulative
-- section: utilization
-- order: 40
-- question: How is GPU utilization distributed over GPU-minutes, by gang size and status?
-- population: {util_samples} sample{util_samples||s}, one per held GPU and minute with a telemetry row that is not NA; {telemetry_note}. One point of the curve per 0.5 points of utilization; 'all' is every size or state.
-- needs: telemetry
-- detail: yes
-- column: size | GPUs | GPUs of the gang
-- column: state | - | final state of the job
-- column: util_pct | % | utilization
-- column: cdf_pct | % | share of samples with at most this utilization
-- chart: cdf x=util_pct y=cdf_pct page.series=state page.facet=size page.where=size:1,4,8,16 each=GPU
--   page.title="GPU utilization by job size and final state"
--   x_title="GPU utilization, %" y_title="% of GPU-minutes at or below"
--   terminal.series=size terminal.where=state:all terminal.title="GPU utilization by GPUs of the job"
--   beside=gpu_util_by_state head=GPUs zero=idle what=GPU-minutes
WITH folded AS (
    SELECT CASE WHEN grouping(gpus) = 1 THEN 'all' ELSE gpus::VARCHAR END AS size, coalesce(gpus, 999999) AS rank,
           CASE WHEN grouping(state) = 1 THEN 'all' ELSE state END AS state, ceil(tenth / 5)::INTEGER AS half, sum(samples) AS samples
    FROM base_util_histogram
    GROUP BY GROUPING SETS ((gpus, state, ceil(tenth / 5)::INTEGER), (gpus, ceil(tenth / 5)::INTEGER), (state, ceil(tenth / 5)::INTEGER), (ceil(tenth / 5)::INTEGER))
)
SELECT size, state, half / 2 AS util_pct,
       100 * sum(samples) OVER (PARTITION BY size, state ORDER BY half) / sum(samples) OVER (PARTITION BY size, state) AS cdf_pct
FROM folded
ORDER BY rank, state, half
