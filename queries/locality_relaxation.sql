-- title: Relaxation of locality with waiting
-- section: locality
-- order: 30
-- question: Do gangs accept worse placements the longer they wait?
-- population: {gang_delays} attempt{gang_delays||s} of 2 and more GPUs with a known wait. Racks: {rack_note}.
-- needs: placements
-- column: size_bucket | GPUs | GPUs of the gang
-- column: waited | - | how long it waited
-- column: attempts | attempts | how many
-- column: fewest_pct | % | share on the fewest nodes that can hold the gang, in one rack; at_fewest_pct of locality_by_size requires only the fewest nodes, so it is no smaller
-- column: one_rack_pct | % | share on more nodes, all in one rack
-- column: across_racks_pct | % | share on nodes of several racks
-- column: rack_unknown_pct | % | share on several nodes, at least one of whose racks is unknown
-- column: excess_nodes | nodes | mean number of nodes beyond the fewest
WITH waited AS (
    SELECT *, CASE WHEN wait_s < 60 THEN 0 WHEN wait_s < 600 THEN 1 WHEN wait_s < 3600 THEN 2 WHEN wait_s < 36000 THEN 3 ELSE 4 END AS bin
    FROM base_delays
    WHERE gpus >= 2
)
SELECT size_bucket, ['< 1 min', '1-10 min', '10-60 min', '1-10 h', '>= 10 h'][bin + 1] AS waited, count(*) AS attempts,
       100.0 * count(*) FILTER (servers = 1 OR (racks = 1 AND servers <= fewest_servers)) / count(*) AS fewest_pct,
       100.0 * count(*) FILTER (servers > 1 AND racks = 1 AND servers > fewest_servers) / count(*) AS one_rack_pct,
       100.0 * count(*) FILTER (servers > 1 AND racks > 1) / count(*) AS across_racks_pct,
       100.0 * count(*) FILTER (servers > 1 AND racks IS NULL) / count(*) AS rack_unknown_pct,
       avg(servers - fewest_servers) AS excess_nodes
FROM waited
GROUP BY size_bucket, bin
ORDER BY list_position(['2-4', '5-8', '>8'], size_bucket), bin
