-- title: Queueing delay by cause and gang size
-- section: delays
-- order: 20
-- question: Do gangs of this size wait for quota, for capacity or for GPUs close together?
-- population: {delays} attempt{delays||s} with a known wait, of which {delays_waited} waited; a count is of waits longer than 0 s by the cause with the most seconds. Low and high bound a cause by all that the logs leave open (delay_causes says what); where nothing is open both are the hours themselves. Quotas: {quota_note}. Racks: {rack_note}. Borrowing: {borrow_note}.
-- needs: placements
-- key_columns: size_bucket, waits, wait_h, main_cause, main_low_pct, main_high_pct, fair_share_low_h, capacity_low_h, fragmentation_low_h, scheduler_low_h, ineligible_h, not_known_h
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
-- column: not_known_h | h | hours of which the logs leave open which cause they were: the rest beside the least of each
-- chart: stacked x=size_bucket y="fair_share_low_h:fair share,capacity_low_h:capacity,fragmentation_low_h:fragmentation,scheduler_low_h:scheduler,ineligible_h,not_known_h" each=GPU
--   page.title="Hours waited by cause and job size" terminal.title="What attempts waited for, by gang size"
--   head=GPUs unit=h what=hours
SELECT CASE WHEN every_size = 1 THEN 'all' ELSE size_bucket END AS size_bucket, * EXCLUDE (queue, size_bucket, every_queue, every_size),
       greatest(round(wait_h - fair_share_low_h - capacity_low_h - fragmentation_low_h - scheduler_low_h - ineligible_h, 6), 0) AS not_known_h
FROM base_cause_hours
WHERE every_queue = 1
ORDER BY every_size, list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
