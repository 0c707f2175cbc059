-- title: Failure rates of groups against each other
-- section: reliability
-- order: 33
-- question: Do nodes of this type, age, rack or load fail more often, all else equal?
-- population: Poisson regression of incidents of single nodes on GPU type, class of age, rack and load, over busy node-days, in this order, with no more terms than a tenth of the incidents, and fewer than the nodes with incidents: one bad node is no evidence on its rack. The 95 % interval is that of the profile likelihood, widened where nodes differ more than by chance (dispersion above 1). Several groups are several tests: q is adjusted for them (Benjamini-Hochberg).
-- needs: placements
-- column: by | - | gpu_type, age, rack or load (share of the time in service that the node was busy)
-- column: group | - | the group
-- column: against | - | the group that it is compared with: that with the most node-days
-- column: failures | incidents | of the group
-- column: node_days | node-days | of the group
-- column: ratio | times | rate over that of the other group
-- column: low | times | lower end; 0: no bound
-- column: high | times | upper end; empty: no bound
-- column: p | - | probability of a ratio as far from 1 by chance
-- column: q | - | adjusted
-- column: dispersion | - | variance of counts over their mean
SELECT "by", "group", against, failures, node_days, ratio, low, high, p, q, dispersion
FROM base_reliability_failure_rate_ratios
ORDER BY position
