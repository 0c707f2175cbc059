-- title: GPUs in use: log and scheduler compared
-- section: quality
-- order: 30
-- question: Does the log's GPU allocation match the scheduler's?
-- population: {machine_samples} sample{machine_samples||s} of a node at an instant within the job log (sinfo, gpuctl sample). A sample agrees if the log's attempts hold as many GPUs of the node within one second of it (most logs have whole seconds). Differences come from nodes that boot, drain or clean up, and from gangs assumed to be split evenly over their nodes.
-- needs: machine samples
-- column: machine | - | the node; 'all' is the total
-- column: samples | samples | how many
-- column: agree_pct | % | share that agree
-- column: said_gpus | GPUs | mean GPUs in use per node, by the samples
-- column: replayed_gpus | GPUs | mean GPUs held by attempts of the log at the same instants
WITH levels AS (
    SELECT machine, at_c, sum(sum(gpus)) OVER (PARTITION BY machine ORDER BY at_c) AS held
    FROM (
        SELECT machine, held_from_c AS at_c, gpus FROM unfiltered_placements WHERE held_until_c > held_from_c AND NOT by_container
        UNION ALL
        SELECT machine, held_until_c, -gpus FROM unfiltered_placements WHERE held_until_c > held_from_c AND NOT by_container
        UNION ALL
        SELECT machine, held_from_c, gpus FROM unfiltered_holdings WHERE held_until_c > held_from_c AND machine IS NOT NULL
        UNION ALL
        SELECT machine, held_until_c, -gpus FROM unfiltered_holdings WHERE held_until_c > held_from_c AND machine IS NOT NULL
    )
    GROUP BY machine, at_c
),
asked AS (
    SELECT machine, at_c AS sample_c, gpus_used, shift, at_c + shift AS at_c
    FROM base_machine_samples CROSS JOIN (VALUES (0), (-1), (1)) AS seconds(shift)
),
compared AS (
    SELECT a.machine, a.sample_c, any_value(a.gpus_used) AS said, max(coalesce(l.held, 0)) FILTER (a.shift = 0) AS held,
           bool_or(abs(coalesce(l.held, 0) - a.gpus_used) < 0.01) AS agrees
    FROM asked AS a ASOF LEFT JOIN levels AS l ON l.machine = a.machine AND l.at_c <= a.at_c
    GROUP BY a.machine, a.sample_c
)
SELECT CASE WHEN grouping(machine) = 1 THEN 'all' ELSE machine END AS machine, count(*) AS samples,
       100.0 * count(*) FILTER (agrees) / count(*) AS agree_pct, avg(said) AS said_gpus, avg(held) AS replayed_gpus
FROM compared
GROUP BY GROUPING SETS ((machine), ())
HAVING count(*) > 0
ORDER BY grouping(machine) DESC, machine
