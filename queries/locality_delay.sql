-- title: Waits by number of nodes
-- section: locality
-- order: 20
-- question: Do gangs that are spread over more nodes wait less?
-- population: {gang_delays} attempt{gang_delays||s} of 2 and more GPUs with a known wait.
-- needs: placements
-- column: gpus | GPUs | GPUs of the gang
-- column: nodes | nodes | nodes it was placed on
-- column: attempts | attempts | how many
-- column: p50_min | min | median wait
-- column: p90_min | min | 90th percentile of the wait
-- column: mean_min | min | mean wait
SELECT gpus, servers AS nodes, count(*) AS attempts, quantile_cont(wait_s, 0.5) / 60 AS p50_min, quantile_cont(wait_s, 0.9) / 60 AS p90_min,
       sum(wait_s::DECIMAL(28, 6))::DOUBLE / count(*) / 60 AS mean_min
FROM base_delays
WHERE gpus >= 2
GROUP BY gpus, servers
ORDER BY gpus, servers
