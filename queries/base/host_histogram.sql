-- One pass over the host telemetry: samples by measure and utilization in tenths of a percent.
SELECT measure, round(pct * 10)::SMALLINT AS tenth, count(*) AS samples, sum((pct * 1e6)::BIGINT) AS total
FROM (
    SELECT unnest([
        {measure: 'cpu', pct: cpu_pct::DOUBLE},
        {measure: 'memory', pct: CASE WHEN mem_total_kb > 0 AND mem_free_kb <= mem_total_kb
                                      THEN 100 * (mem_total_kb - mem_free_kb) / mem_total_kb END}], recursive := true)
    FROM base_host_util
    WHERE cluster = $cluster
)
WHERE pct IS NOT NULL
GROUP BY ALL
