-- title: Starts out of order
-- section: locality
-- order: 40
-- question: How often does a later job of a queue start first, and how often does this delay no one?
-- population: {delays} start{delays||s} with a known wait; a start is out of order if an attempt of the same queue that was queued earlier still waits.
-- needs: placements
-- column: size_bucket | GPUs | GPUs of the gang that started; 'all' is every size
-- column: starts | starts | how many
-- column: out_of_order | starts | starts that overtook an earlier attempt of their queue
-- column: out_of_order_pct | % | share of the starts
-- column: harmless | starts | starts out of order in whose place no overtaken attempt could have started: too large for the quota or for the GPUs free without this gang
-- column: harmless_pct | % | share of the starts out of order; a lower bound, as the placement of free GPUs is ignored
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS starts,
       count(*) FILTER (overtook_gpus > 0) AS out_of_order,
       100.0 * count(*) FILTER (overtook_gpus > 0) / count(*) AS out_of_order_pct,
       count(*) FILTER (overtook_gpus > 0 AND overtook_harmless) AS harmless,
       100.0 * count(*) FILTER (overtook_gpus > 0 AND overtook_harmless) / nullif(count(*) FILTER (overtook_gpus > 0), 0) AS harmless_pct
FROM base_delays
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
