-- title: Queueing delay by cause, with its uncertainty
-- section: delays
-- order: 10
-- question: Why did jobs wait, and how certain is that?
-- population: {delays} attempt{delays||s} with a known wait, of which {delays_waited} waited. Low and high are over all rules (quotas, borrowing, racks, relaxation of locality) that explain the log about as well as the ones used (delay_settings), so they do not sum to 100 %; where nothing is inferred, both are the share itself. Quotas: {quota_note}. Racks: {rack_note}. Borrowing: {borrow_note}.
-- needs: placements
-- column: cause | - | fair_share, capacity, fragmentation, scheduler, or ineligible; 'all' is every one
-- column: waits | waits | waits longer than 0 s with most seconds of this cause
-- column: hours | h | hours of delay by this cause, under the rules used
-- column: share_pct | % | share of the queueing time
-- column: low_pct | % | lower end of the share's range
-- column: high_pct | % | upper end of the share's range
WITH parts AS (
    SELECT r.cause, r.low_s, r.high_s,
           CASE r.cause WHEN 'fair_share' THEN t.fair_share_s WHEN 'capacity' THEN t.capacity_s
                        WHEN 'fragmentation' THEN t.fragmentation_s ELSE t.scheduler_s END AS seconds
    FROM base_cause_ranges AS r
    CROSS JOIN (SELECT sum(fair_share_s) AS fair_share_s, sum(capacity_s) AS capacity_s, sum(fragmentation_s) AS fragmentation_s,
                       sum(scheduler_s) AS scheduler_s FROM base_delays) AS t
    UNION ALL BY NAME SELECT 'ineligible' AS cause, sum(ineligible_s) AS seconds, seconds AS low_s, seconds AS high_s FROM base_delays
    UNION ALL BY NAME SELECT 'all' AS cause, sum(wait_s) AS seconds, seconds AS low_s, seconds AS high_s FROM base_delays
),
waited AS (
    SELECT coalesce(dominant_cause, 'all') AS cause, count(*) AS waits FROM base_delays
    WHERE dominant_cause IS NOT NULL GROUP BY GROUPING SETS ((dominant_cause), ())
),
whole AS (SELECT sum(wait_s) AS seconds FROM base_delays)
SELECT p.cause, coalesce(w.waits, 0) AS waits, p.seconds / 3600 AS hours, 100 * p.seconds / nullif(a.seconds, 0) AS share_pct,
       100 * p.low_s / nullif(a.seconds, 0) AS low_pct, 100 * p.high_s / nullif(a.seconds, 0) AS high_pct
FROM parts AS p CROSS JOIN whole AS a LEFT JOIN waited AS w ON w.cause = p.cause
WHERE p.seconds IS NOT NULL
ORDER BY list_position(['fair_share', 'capacity', 'fragmentation', 'scheduler', 'ineligible', 'all'], p.cause)
