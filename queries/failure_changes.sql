-- title: When the rate of failures changed
-- section: reliability
-- order: 39
-- question: Did nodes begin to fail more or less often?
-- population: The split of the window with the largest likelihood ratio of two rates against one, at least three incidents on each side; its p is from 1,000 draws at a constant rate. The ratio's interval is exact for a split that was set beforehand: a split that was searched for exaggerates. New health checks raise the rate without any change of nodes.
-- needs: placements
-- column: basis | - | attempts: incidents that ended attempts, over busy node-days; events: unplanned outages, over node-days in service
-- column: failures | incidents | in the window
-- column: change_ts | - | the most likely moment (UTC)
-- column: before | 1/1000 node-days | rate before it
-- column: after | 1/1000 node-days | rate after it
-- column: ratio | times | after over before
-- column: low | times | lower end of the 95 % interval
-- column: high | times | upper end
-- column: p | - | probability of a split at least as strong at a constant rate
-- column: change | - | yes: p at most 0.01 over the number of rows
SELECT basis, failures, change_ts, before, after, ratio, low, high, p, change
FROM base_reliability_failure_changes
ORDER BY position
