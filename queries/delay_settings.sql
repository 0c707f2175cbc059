-- title: Rules considered
-- section: delays
-- order: 70
-- question: Which quotas, borrowing, racks and relaxation explain the log, and how much does each combination leave unexplained?
-- population: {delays} attempt{delays||s} with a known wait, and every start. Each row combines a guess at the racks with a borrowing rule and the quotas that fit both best. Shown are, for each guess, the best rule and the first and last that are as good; for the guess used, some others too. Given or configured values are not varied. Empty if queues have nodes of their own (partitions): nothing is inferred there.
-- needs: placements
-- first_columns: 8
-- column: racks_by | - | how racks were guessed
-- column: racks | racks | number of racks; a node that shares no rack counts as one
-- column: borrow_below_pct | % | a queue may exceed its quota while at most this share of the GPUs is in use; 0: never
-- column: unexplained_h | h | hours that attempts waited although quota and an acceptable placement were free, less two minutes at either end of a wait
-- column: forbidden_starts | starts | starts that the setting forbids: over quota, or spread over racks too soon
-- column: lost_pct | % | unexplained hours plus forbidden starts (each counted as one mean wait), as a share of the queueing time
-- column: as_good | - | whether this row explains the log about as well as the best one; the ranges in delay_causes cover all such rows
-- column: used | - | whether the other tables use this row
-- column: one_rack_after_h | h | hours of waiting after which gangs accept more nodes than they need, in one rack; empty: never
-- column: any_rack_after_h | h | hours after which they accept nodes of several racks; empty: never
-- column: fair_share_low_pct | % | share of the queueing time that is fair-share delay, under the largest quotas that fit about as well
-- column: fair_share_high_pct | % | the same under the smallest quotas that fit about as well
SELECT racks_by, racks, borrow_pct AS borrow_below_pct, unexplained_s / 3600 AS unexplained_h, forbidden_starts, lost_pct, as_good, used,
       one_rack_s / 3600 AS one_rack_after_h, any_rack_s / 3600 AS any_rack_after_h,
       100 * fair_share_low_s / nullif(w.seconds, 0) AS fair_share_low_pct, 100 * fair_share_high_s / nullif(w.seconds, 0) AS fair_share_high_pct
FROM base_delay_settings CROSS JOIN (SELECT sum(wait_s) AS seconds FROM unfiltered_delays) AS w
ORDER BY used DESC, as_good DESC, lost_pct, racks, racks_by, borrow_pct
