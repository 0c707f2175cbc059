-- title: Queueing delay by cause and gang size
-- section: delays
-- order: 20
-- question: Do gangs of this size wait for quota, for capacity or for GPUs close together?
-- population: {delays} attempt{delays||s} with a known wait, of which {delays_waited} waited; a count is of waits longer than 0 s by the cause with the most seconds. Quotas: {quota_note}. Racks: {rack_note}. Borrowing: {borrow_note}.
-- needs: placements
-- key_columns: size_bucket, waits, wait_h, fair_share_h, capacity_h, fragmentation_h, scheduler_h, ineligible_h
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
-- chart: stacked x=size_bucket y=fair_share_h,capacity_h,fragmentation_h,scheduler_h,ineligible_h each=GPU
--   page.title="Hours waited by cause and job size" terminal.title="What attempts waited for, by gang size"
--   head=GPUs unit=h what=hours
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS attempts, count(*) FILTER (wait_s > 0) AS waits,
       count(*) FILTER (dominant_cause = 'fair_share') AS fair_share, count(*) FILTER (dominant_cause = 'capacity') AS capacity,
       count(*) FILTER (dominant_cause = 'fragmentation') AS fragmentation, count(*) FILTER (dominant_cause = 'scheduler') AS scheduler,
       count(*) FILTER (dominant_cause = 'ineligible') AS ineligible,
       sum(wait_s) / 3600 AS wait_h, sum(fair_share_s) / 3600 AS fair_share_h, sum(capacity_s) / 3600 AS capacity_h,
       sum(fragmentation_s) / 3600 AS fragmentation_h, sum(scheduler_s) / 3600 AS scheduler_h,
       sum(ineligible_s) / 3600 AS ineligible_h,
       sum(wait_s * gpus) / 3600 AS wait_gpu_h
FROM base_delays
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
