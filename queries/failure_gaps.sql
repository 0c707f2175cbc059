-- title: Times between failures of a node
-- section: reliability
-- order: 36
-- question: Do failures of a node cluster after repairs, or grow with age?
-- population: Days in service of nodes from a repair (the first: from the begin of the window) to the next unplanned outage of their own, censored by planned outages, faults of racks and the end of the window. Weibull by maximum likelihood, each node with a rate of its own (gamma frailty): nodes that fail at different constant rates look like a shape below 1 without it. Intervals: 95 % likelihood. At least 30 failures.
-- needs: placements
-- column: group | - | all, or a GPU type
-- column: failures | outages | unplanned, of single nodes
-- column: node_days | node-days | in service
-- column: mean_days | days | node-days over failures
-- column: shape | - | 1: failures do not depend on the time since repair; below 1: they cluster after it
-- column: shape_low | - | lower end
-- column: shape_high | - | upper end
-- column: node_spread | - | variance of nodes' rates over their squared mean
-- column: shape_alike | - | shape if nodes are taken for alike
-- column: p_shape | - | probability of a shape as far from 1 by chance
-- column: finding | - | stated at a probability of at most 0.01 over the number of groups
SELECT "group", failures, node_days, mean_days, shape, shape_low, shape_high, node_spread, shape_alike, p_shape, finding
FROM base_reliability_failure_gaps
ORDER BY position
