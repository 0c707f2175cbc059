-- title: Nodes that fail more often than others
-- section: reliability
-- order: 70
-- question: Which nodes fail more often than the others of their GPU type?
-- population: All nodes with GPUs. Two counts, each against nodes of its type (and class of age, where ten have it): incidents of the node that ended attempts, over its busy days; unplanned outages of its own, over its days in service. p is the exact binomial probability of as many or more given the group's total, with gang_failures by the node's share of such gangs' time; q is adjusted for all tests (Benjamini-Hochberg).
-- needs: placements
-- first_columns: 9
-- column: machine | - | name of the node
-- column: gpu_type | - | its GPUs
-- column: lemon | - | yes: q at most 0.05 and at least 3 events (with gang_failures); suspect: q at most 0.2 and at least 2, or more XIDs, repeats or exclusions than chance explains; no; too little seen: not found even if it failed three times as often
-- column: failures | incidents | of the node, that ended attempts
-- column: gang_failures | incidents | that ended gangs of the node and point to none of their nodes, each divided by the gang's nodes
-- column: node_days | node-days | in which attempts held GPUs of it
-- column: expected | incidents | expected at its group's rate
-- column: ratio | times | events over expected, of the stronger evidence
-- column: p | - | the smaller of both probabilities
-- column: q | - | adjusted
-- column: evidence | - | the count with the smaller probability
-- column: found_from_ratio | times | how many times worse than its group a node must be to be found half of the time
-- column: cleared | - | of lemons: yes: no worse than others since a repair of over 4 h or a replacement; no: still worse; empty: too early
-- column: xids | events | hardware XIDs, repeats within 5 s once
-- column: outages | outages | unplanned, its own
-- column: outages_expected | outages | expected at its group's rate
-- column: repeats | outages | for the same reason within 7 days of a repair
-- column: excluded_by | users | that excluded the node when they submitted
-- column: multi_node_failures | attempts | of several nodes that its failures ended
-- column: single_node_failures | attempts | on this node alone
-- column: gpu_hours_lost | GPU-h | of attempts that its failures ended
SELECT machine, gpu_type, lemon, failures, gang_failures, node_days, expected, ratio, p, q, evidence, found_from_ratio,
       cleared, xids, outages, outages_expected, repeats, excluded_by, multi_node_failures, single_node_failures, gpu_hours_lost
FROM base_reliability_lemon_nodes
ORDER BY position
