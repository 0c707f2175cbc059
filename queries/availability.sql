-- title: Availability of nodes
-- section: reliability
-- order: 80
-- question: Which share of node-hours was in service, and how long did repairs take?
-- population: All nodes with GPUs over the window, by calendar month (UTC). An outage is a row of node events, or several with at most a minute between them; draining counts as down from its first second. Planned: the reason names maintenance. Without node events only the node-hours are filled. Limits: Poisson quantiles 0.00135 and 0.99865 at the rate of the months before, at least three.
-- needs: placements
-- column: period | - | month, or all
-- column: node_hours | node-h | in the window
-- column: up_pct | % | in service
-- column: down_unplanned_h | node-h | in unplanned outages
-- column: down_planned_h | node-h | in planned ones
-- column: outages | outages | unplanned, that began
-- column: mttr_h | h | mean time to repair of closed outages
-- column: repair_p50_h | h | median; with over a tenth of the outages open, of the Kaplan-Meier curve
-- column: repair_p90_h | h | 90th percentile
-- column: lower_limit | outages | lower control limit
-- column: upper_limit | outages | upper control limit
-- column: signal | - | above or below, at the limits' probability over the number of months with limits; new check: above or below, and most reasons were never seen before
SELECT period, node_hours, up_pct, down_unplanned_h, down_planned_h, outages, mttr_h, repair_p50_h, repair_p90_h,
       lower_limit, upper_limit, signal
FROM base_reliability_availability
ORDER BY position
