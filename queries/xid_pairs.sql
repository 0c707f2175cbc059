-- title: XIDs that occur together
-- section: reliability
-- order: 94
-- question: Which XIDs come with which others?
-- population: Pairs of events of different codes on one node within 5 s, both as in xids. An event with several others is in several pairs.
-- needs: xids
-- detail: yes
-- column: xid | - | the smaller code
-- column: with_xid | - | the larger code
-- column: pairs | pairs | of events
-- column: machines | nodes | with such a pair
-- column: xid_pct | % | of the events of the smaller code that are in such a pair
-- column: with_xid_pct | % | of the events of the larger code
SELECT xid, with_xid, pairs, machines, xid_pct, with_xid_pct
FROM base_reliability_xid_pairs
ORDER BY position
