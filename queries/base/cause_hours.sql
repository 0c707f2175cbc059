-- Waits and hours by cause, with what the logs leave open of each: one row per queue, one per size of gang, and one for all.
WITH sums AS (
    SELECT queue, size_bucket, grouping(queue) AS every_queue, grouping(size_bucket) AS every_size, count(*) AS attempts, count(*) FILTER (wait_s > 0) AS waits,
           count(*) FILTER (dominant_cause = 'fair_share') AS fair_share, count(*) FILTER (dominant_cause = 'capacity') AS capacity,
           count(*) FILTER (dominant_cause = 'fragmentation') AS fragmentation, count(*) FILTER (dominant_cause = 'scheduler') AS scheduler,
           count(*) FILTER (dominant_cause = 'ineligible') AS ineligible,
           sum(wait_s::DECIMAL(28, 6))::DOUBLE / 3600 AS wait_h, sum(fair_share_s::DECIMAL(28, 6))::DOUBLE / 3600 AS fair_share_h, sum(capacity_s::DECIMAL(28, 6))::DOUBLE / 3600 AS capacity_h,
           sum(fragmentation_s::DECIMAL(28, 6))::DOUBLE / 3600 AS fragmentation_h, sum(scheduler_s::DECIMAL(28, 6))::DOUBLE / 3600 AS scheduler_h,
           sum(ineligible_s::DECIMAL(28, 6))::DOUBLE / 3600 AS ineligible_h,
           sum((wait_s * gpus)::DECIMAL(28, 6))::DOUBLE / 3600 AS wait_gpu_h,
           [sum(fair_share_less_s), sum(capacity_less_s), sum(fragmentation_less_s), sum(scheduler_less_s)] AS less,
           [sum(fair_share_more_s), sum(capacity_more_s), sum(fragmentation_more_s), sum(scheduler_more_s)] AS more
    FROM base_delays
    GROUP BY GROUPING SETS ((queue), (size_bucket), ())
    HAVING count(*) > 0
),
whole AS (
    SELECT list(low_s ORDER BY nth) AS low, list(high_s ORDER BY nth) AS high
    FROM (SELECT *, list_position(['fair_share', 'capacity', 'fragmentation', 'scheduler'], cause) AS nth FROM base_cause_ranges)
    HAVING count(low_s) = 4
),
ranges AS (
    SELECT s.* EXCLUDE (less, more), [fair_share_h, capacity_h, fragmentation_h, scheduler_h, ineligible_h] AS hours,
           -- of all waits together more is known than the sum of what is known of each
           [CASE WHEN n = 5 THEN ineligible_h ELSE greatest(hours[n] - less[n] / 3600, CASE WHEN every_queue + every_size = 2 AND w.low IS NOT NULL THEN least(w.low[n] / 3600, hours[n]) END, 0) END FOR n IN [1, 2, 3, 4, 5]] AS low,
           [CASE WHEN n = 5 THEN ineligible_h ELSE least(hours[n] + more[n] / 3600, CASE WHEN every_queue + every_size = 2 AND w.low IS NOT NULL THEN greatest(w.high[n] / 3600, hours[n]) END, wait_h) END FOR n IN [1, 2, 3, 4, 5]] AS high
    FROM sums AS s LEFT JOIN whole AS w ON true
),
named AS (
    SELECT *, list_filter([1, 2, 3, 4, 5], lambda n: low[n] > list_max([CASE WHEN m = n THEN 0 ELSE high[m] END FOR m IN [1, 2, 3, 4, 5]]))[1] AS main
    FROM ranges
)
SELECT queue, size_bucket, every_queue, every_size, attempts, waits, fair_share, capacity, fragmentation, scheduler, ineligible, wait_h, fair_share_h, capacity_h, fragmentation_h, scheduler_h,
       ineligible_h, wait_gpu_h, ['fair_share', 'capacity', 'fragmentation', 'scheduler', 'ineligible'][main] AS main_cause,
       100 * low[main] / wait_h AS main_low_pct, 100 * high[main] / wait_h AS main_high_pct,
       low[1] AS fair_share_low_h, high[1] AS fair_share_high_h, low[2] AS capacity_low_h, high[2] AS capacity_high_h,
       low[3] AS fragmentation_low_h, high[3] AS fragmentation_high_h, low[4] AS scheduler_low_h, high[4] AS scheduler_high_h
FROM named
