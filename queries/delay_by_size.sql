-- title: Queueing delay by cause and gang size
-- section: delays
-- order: 20
-- question: Do gangs of this size wait for quota, for capacity or for GPUs close together?
-- population: {delays} attempt{delays||s} with a known wait, of which {delays_waited} waited; a count is of waits longer than 0 s by the cause with the most seconds. Low and high bound a cause by all that the logs leave open (delay_causes says what); where nothing is open both are the hours themselves. Quotas: {quota_note}. Racks: {rack_note}. Borrowing: {borrow_note}.
-- needs: placements
-- key_columns: size_bucket, waits, wait_h, main_cause, main_low_pct, main_high_pct, fair_share_h, capacity_h, fragmentation_h, scheduler_h, ineligible_h
-- column: size_bucket | GPUs | GPUs of the gang; 'all' is every one
-- column: attempts | attempts | attempts with a known wait
-- column: waits | waits | those that waited longer than 0 s
-- column: fair_share | waits | waits mostly for the queue's quota
-- column: capacity | waits | waits mostly for GPUs while the cluster was full
-- column: fragmentation | waits | waits mostly for GPUs that were free but scattered
-- column: scheduler | waits | waits that none of these causes explains
-- column: ineligible | waits | waits mostly before the attempt was eligible
-- column: wait_h | h | hours waited
-- column: fair_share_h | h | hours of fair-share delay
-- column: capacity_h | h | hours of capacity delay
-- column: fragmentation_h | h | hours of fragmentation delay
-- column: scheduler_h | h | hours of delay that none of these causes explains
-- column: ineligible_h | h | hours before the attempt was eligible (held, begin time, dependency, throttle, back-off)
-- column: wait_gpu_h | GPU-h | hours waited times GPUs asked for
-- column: main_cause | - | the cause whose least hours exceed the most hours of every other; empty where the logs leave it open
-- column: main_low_pct | % | least share of the waiting time that the main cause may have
-- column: main_high_pct | % | most share
-- column: fair_share_low_h | h | least hours of fair-share delay, given what the logs leave open
-- column: fair_share_high_h | h | most hours of fair-share delay, given what the logs leave open
-- column: capacity_low_h | h | least hours of capacity delay, given what the logs leave open
-- column: capacity_high_h | h | most hours of capacity delay, given what the logs leave open
-- column: fragmentation_low_h | h | least hours of fragmentation delay, given what the logs leave open
-- column: fragmentation_high_h | h | most hours of fragmentation delay, given what the logs leave open
-- column: scheduler_low_h | h | least hours of scheduler delay, given what the logs leave open
-- column: scheduler_high_h | h | most hours of scheduler delay, given what the logs leave open
-- chart: stacked x=size_bucket y=fair_share_h,capacity_h,fragmentation_h,scheduler_h,ineligible_h each=GPU
--   page.title="Hours waited by cause and job size" terminal.title="What attempts waited for, by gang size"
--   head=GPUs unit=h what=hours
WITH sums AS (
    SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, grouping(size_bucket) AS grouped, count(*) AS attempts, count(*) FILTER (wait_s > 0) AS waits,
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
    GROUP BY GROUPING SETS ((size_bucket), ())
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
           [CASE WHEN n = 5 THEN ineligible_h ELSE greatest(hours[n] - less[n] / 3600, CASE WHEN grouped = 1 AND w.low IS NOT NULL THEN least(w.low[n] / 3600, hours[n]) END, 0) END FOR n IN [1, 2, 3, 4, 5]] AS low,
           [CASE WHEN n = 5 THEN ineligible_h ELSE least(hours[n] + more[n] / 3600, CASE WHEN grouped = 1 AND w.low IS NOT NULL THEN greatest(w.high[n] / 3600, hours[n]) END, wait_h) END FOR n IN [1, 2, 3, 4, 5]] AS high
    FROM sums AS s LEFT JOIN whole AS w ON true
),
named AS (
    SELECT *, list_filter([1, 2, 3, 4, 5], lambda n: low[n] > list_max([CASE WHEN m = n THEN 0 ELSE high[m] END FOR m IN [1, 2, 3, 4, 5]]))[1] AS main
    FROM ranges
)
SELECT size_bucket, attempts, waits, fair_share, capacity, fragmentation, scheduler, ineligible, wait_h, fair_share_h, capacity_h, fragmentation_h, scheduler_h,
       ineligible_h, wait_gpu_h, ['fair_share', 'capacity', 'fragmentation', 'scheduler', 'ineligible'][main] AS main_cause,
       100 * low[main] / wait_h AS main_low_pct, 100 * high[main] / wait_h AS main_high_pct,
       low[1] AS fair_share_low_h, high[1] AS fair_share_high_h, low[2] AS capacity_low_h, high[2] AS capacity_high_h,
       low[3] AS fragmentation_low_h, high[3] AS fragmentation_high_h, low[4] AS scheduler_low_h, high[4] AS scheduler_high_h
FROM named
ORDER BY grouped, list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
