-- title: Rules considered
-- section: delays
-- order: 70
-- question: Which quotas, borrowing, racks and relaxation explain the log, and how much does each setting leave unexplained?
-- population: {delays} attempt{delays||s} with a known wait and every start. Each row is a guess at the racks and a rule of borrowing, with the quotas that fit it best: the best rule of each guess, the first and the last that are as good, and for the guess that is used some others. Given or configured values are not varied. Empty where queues have nodes of their own (partitions): nothing is inferred there.
-- needs: placements
-- first_columns: 8
-- column: racks_by | - | how racks were guessed
-- column: racks | racks | how many; a node that shares none counts as one
-- column: borrow_below_pct | % | a queue may exceed its quota while at most this share of the GPUs is in use; 0: never
-- column: unexplained_h | h | hours that attempts waited although a placement that they accept was free and quota was left, less two minutes at either end of a wait
-- column: forbidden_starts | starts | starts that the setting forbids: over quota, or spread over racks too soon
-- column: lost_pct | % | both, a forbidden start counted as a mean wait, as a share of the queueing time
-- column: as_good | - | whether it explains the log about as well as the best one; the ranges in delay_causes cover these
-- column: used | - | whether the other tables use it
-- column: one_rack_after_h | h | hours of waiting after which gangs accept more nodes than need be, of one rack; empty: never
-- column: any_rack_after_h | h | hours after which they accept nodes of several racks; empty: never
-- column: fair_share_low_pct | % | share of the queueing time that is fair share, with the largest quotas that are about as good
-- column: fair_share_high_pct | % | with the smallest ones
SELECT racks_by, racks, borrow_pct AS borrow_below_pct, unexplained_s / 3600 AS unexplained_h, forbidden_starts, lost_pct, as_good, used,
       one_rack_s / 3600 AS one_rack_after_h, any_rack_s / 3600 AS any_rack_after_h,
       100 * fair_share_low_s / nullif(w.seconds, 0) AS fair_share_low_pct, 100 * fair_share_high_s / nullif(w.seconds, 0) AS fair_share_high_pct
FROM base_delay_settings CROSS JOIN (SELECT sum(wait_s) AS seconds FROM unfiltered_delays) AS w
ORDER BY used DESC, as_good DESC, lost_pct, racks, racks_by, borrow_pct
