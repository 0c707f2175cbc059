-- title: Nodes and racks of a gang
-- section: locality
-- order: 10
-- question: On how many nodes and leaf switches are gangs placed, and how many would suffice?
-- population: {gang_delays} attempt{gang_delays||s} of 2 and more GPUs with a known wait. Racks (leaf switches): {rack_note}. The fewest racks are how many of the largest racks, if empty, hold the gang, among the nodes that the attempt may use.
-- needs: placements
-- key_columns: size_bucket, attempts, nodes_mean, excess_nodes, at_fewest_pct, racks_mean, excess_racks, one_rack_pct
-- column: size_bucket | GPUs | GPUs of the gang; 'all' is every size
-- column: attempts | attempts | how many
-- column: nodes_mean | nodes | mean number of nodes
-- column: excess_nodes | nodes | mean number of nodes beyond the fewest that can hold the gang
-- column: at_fewest_pct | % | share on the fewest nodes that can hold the gang, in any racks; fewest_pct of locality_relaxation also requires one rack
-- column: racks_known | attempts | attempts for which the rack of every node is known
-- column: racks_mean | racks | mean number of racks or leaf switches of these attempts
-- column: excess_racks | racks | mean number of nodes beyond the fewest that can hold the gang
-- column: one_rack_pct | % | share of these attempts in one rack
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS attempts,
       avg(servers) AS nodes_mean, avg(servers - fewest_servers) AS excess_nodes,
       100.0 * count(*) FILTER (servers <= fewest_servers) / count(*) AS at_fewest_pct,
       count(racks) AS racks_known, avg(racks) AS racks_mean, avg(racks - fewest_racks) AS excess_racks,
       100.0 * count(*) FILTER (racks = 1) / nullif(count(racks), 0) AS one_rack_pct
FROM base_delays
WHERE gpus >= 2
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['2-4', '5-8', '>8'], size_bucket)
