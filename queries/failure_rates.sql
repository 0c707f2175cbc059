-- title: Failures per node-day
-- section: reliability
-- order: 30
-- question: How often does infrastructure fail?
-- population: Incidents of infrastructure that ended at least one attempt, over the days in which at least one attempt held GPUs of the node (basis attempts); unplanned outages over the days in service (basis events). The interval is the exact 95 % one of a Poisson count (Garwood). Assumes a constant rate, independent incidents, and that every failure of a busy node ends an attempt. homogeneity_p is one of eight tests: chi-square, by 10 000 draws where fewer than 5 are expected.
-- needs: placements
-- first_columns: 8
-- column: by | - | what is compared: all, cause, component, node, gpu_type, rack, age, gpus, month
-- column: group | - | the group; outages: unplanned outages of all nodes
-- column: failures | incidents | incidents (of gpus: attempts that infrastructure ended)
-- column: failures_high | incidents | with attempts whose cause is unknown
-- column: node_days | node-days | exposure
-- column: per_1000_node_days | 1/1000 node-days | failures
-- column: low | 1/1000 node-days | lower end of the 95 % interval
-- column: high | 1/1000 node-days | upper end
-- column: per_gpu_year | 1/GPU-year | failures
-- column: dispersion | - | variance of nodes' failures over their mean; above 1.5 nodes differ, or faults are counted twice
-- column: spread_low | 1/1000 node-days | where dispersion is above 1.5: lower end of a 95 % interval from draws of whole nodes
-- column: spread_high | 1/1000 node-days | upper end
-- column: homogeneity_p | - | probability of groups at least as different by chance
-- column: basis | - | attempts or events
-- chart: ranges on=page x=group y=per_1000_node_days,low,high where=by:month title="Failures per 1,000 busy node-days by month, with 95 % intervals"
SELECT "by", "group", failures, failures_high, node_days, per_1000_node_days, low, high, per_gpu_year, dispersion,
       spread_low, spread_high, homogeneity_p, basis
FROM base_reliability_failure_rates
ORDER BY position
