-- title: Queueing delay by cause, with uncertainty
-- section: delays
-- order: 10
-- question: Why did jobs wait, and how certain are these causes?
-- population: {delays} attempt{delays||s} with a known wait, of which {delays_waited} waited. Low and high bound the share of a cause, given everything that the logs leave open, so they do not sum to 100 %. Open are: rules (quotas, borrowing, racks, relaxation of locality) that explain the log about as well as the rules used (delay_settings); quotas that starts in the log exceed; limits that Slurm names but no file states; inferred sizes of nodes; and, for unexplained waits, nodes that may have been down and GPUs that jobs from before the log may have held. If nothing is open, both equal the share. Quotas: {quota_note}. Racks: {rack_note}. Borrowing: {borrow_note}.
-- needs: placements
-- column: cause | - | fair_share, capacity, fragmentation, scheduler, or ineligible; 'all' is the total
-- column: waits | waits | waits longer than 0 s whose largest part has this cause
-- column: hours | h | hours of delay by this cause, under the rules used
-- column: share_pct | % | share of the queueing time
-- column: low_pct | % | lower end of the share's range
-- column: high_pct | % | upper end of the share's range
WITH parts AS (
    SELECT r.cause, t.seconds, least(greatest(t.seconds - t.less, r.low_s, 0), t.seconds) AS low_s, greatest(least(t.seconds + t.more, r.high_s), t.seconds) AS high_s
    FROM base_cause_ranges AS r
    JOIN (UNPIVOT (SELECT {s: sum(fair_share_s::DECIMAL(28, 6))::DOUBLE, l: sum(fair_share_less_s), m: sum(fair_share_more_s)} AS fair_share,
                          {s: sum(capacity_s::DECIMAL(28, 6))::DOUBLE, l: sum(capacity_less_s), m: sum(capacity_more_s)} AS capacity,
                          {s: sum(fragmentation_s::DECIMAL(28, 6))::DOUBLE, l: sum(fragmentation_less_s), m: sum(fragmentation_more_s)} AS fragmentation,
                          {s: sum(scheduler_s::DECIMAL(28, 6))::DOUBLE, l: sum(scheduler_less_s), m: sum(scheduler_more_s)} AS scheduler FROM base_delays)
          ON fair_share, capacity, fragmentation, scheduler INTO NAME cause VALUE sums) AS u ON u.cause = r.cause
    CROSS JOIN LATERAL (SELECT u.sums.s AS seconds, u.sums.l AS less, u.sums.m AS more) AS t
    UNION ALL BY NAME SELECT 'ineligible' AS cause, sum(ineligible_s::DECIMAL(28, 6))::DOUBLE AS seconds, seconds AS low_s, seconds AS high_s FROM base_delays
    UNION ALL BY NAME SELECT 'all' AS cause, sum(wait_s::DECIMAL(28, 6))::DOUBLE AS seconds, seconds AS low_s, seconds AS high_s FROM base_delays
),
waited AS (
    SELECT coalesce(dominant_cause, 'all') AS cause, count(*) AS waits FROM base_delays
    WHERE dominant_cause IS NOT NULL GROUP BY GROUPING SETS ((dominant_cause), ())
),
whole AS (SELECT sum(wait_s::DECIMAL(28, 6))::DOUBLE AS seconds FROM base_delays)
SELECT p.cause, coalesce(w.waits, 0) AS waits, p.seconds / 3600 AS hours, 100 * p.seconds / nullif(a.seconds, 0) AS share_pct,
       100 * p.low_s / nullif(a.seconds, 0) AS low_pct, 100 * p.high_s / nullif(a.seconds, 0) AS high_pct
FROM parts AS p CROSS JOIN whole AS a LEFT JOIN waited AS w ON w.cause = p.cause
WHERE p.seconds IS NOT NULL
ORDER BY list_position(['fair_share', 'capacity', 'fragmentation', 'scheduler', 'ineligible', 'all'], p.cause)
