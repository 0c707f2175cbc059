-- title: Host CPU and memory, cumulative
-- section: utilization
-- order: 60
-- question: How is CPU and memory use distributed over node-minutes?
-- population: {host_samples} sample{host_samples||s}, as in host_util.
-- needs: host telemetry
-- detail: yes
-- column: measure | - | cpu or memory
-- column: util_pct | % | utilization
-- column: cdf_pct | % | share of samples with at most this utilization
-- chart: cdf x=util_pct y=cdf_pct series=measure
--   page.title="CPU and memory use of the nodes"
--   x_title="utilization, %" y_title="% of node-minutes at or below"
--   terminal.title="CPU and memory use of the nodes" beside=host_util head=measure zero="at 0 %" what=samples
WITH halves AS (
    SELECT measure, ceil(tenth / 5)::INTEGER AS half, sum(samples) AS samples FROM base_host_histogram GROUP BY ALL
)
SELECT measure, half / 2 AS util_pct,
       100 * sum(samples) OVER (PARTITION BY measure ORDER BY half) / sum(samples) OVER (PARTITION BY measure) AS cdf_pct
FROM halves
ORDER BY measure, half
