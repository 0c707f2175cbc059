-- title: Queueing delay by cause and gang size
-- section: delays
-- order: 20
-- question: Do gangs of this size wait for their quota, for capacity, or for GPUs close together?
-- population: {delays} attempt{delays||s} with a known wait, of which {delays_waited} waited; counts are of waits longer than 0 s, each under the cause with the most seconds. Low and high bound the hours of a cause, given everything that the logs leave open (listed in delay_causes); if nothing is open, both equal the hours. Quotas: {quota_note}. Racks: {rack_note}. Borrowing: {borrow_note}.
-- needs: placements
-- key_columns: size_bucket, waits, wait_h, main_cause, main_low_pct, main_high_pct, fair_share_low_h, capacity_low_h, fragmentation_low_h, scheduler_low_h, ineligible_h, not_known_h
-- column: size_bucket | GPUs | GPUs of the gang; 'all' is the total
-- column: attempts | attempts | attempts with a known wait
-- column: waits | waits | attempts that waited longer than 0 s
-- column: fair_share | waits | waits mostly for the queue's quota
-- column: capacity | waits | waits mostly for GPUs while the cluster was full
-- column: fragmentation | waits | waits mostly for GPUs that were free but scattered
-- column: scheduler | waits | waits with free GPUs that fit: held back by the scheduler, for none of these causes
-- column: ineligible | waits | waits mostly before the attempt was eligible
-- column: wait_h | h | hours waited
-- column: fair_share_h | h | hours of fair-share delay
-- column: capacity_h | h | hours of capacity delay
-- column: fragmentation_h | h | hours of fragmentation delay
-- column: scheduler_h | h | hours of delay that none of these causes explains
-- column: ineligible_h | h | hours before the attempt was eligible (held, begin time, dependency, throttle, back-off)
-- column: wait_gpu_h | GPU-h | hours waited times GPUs requested
-- column: main_cause | - | the cause whose minimum exceeds the maximum of every other cause; empty if the logs leave this open
-- column: main_low_pct | % | minimum share of the waiting time due to the main cause
-- column: main_high_pct | % | maximum share
-- column: fair_share_low_h | h | minimum hours of fair-share delay, given what the logs leave open
-- column: fair_share_high_h | h | maximum hours of fair-share delay, given what the logs leave open
-- column: capacity_low_h | h | minimum hours of capacity delay, given what the logs leave open
-- column: capacity_high_h | h | maximum hours of capacity delay, given what the logs leave open
-- column: fragmentation_low_h | h | minimum hours of fragmentation delay, given what the logs leave open
-- column: fragmentation_high_h | h | maximum hours of fragmentation delay, given what the logs leave open
-- column: scheduler_low_h | h | minimum hours of scheduler delay, given what the logs leave open
-- column: scheduler_high_h | h | maximum hours of scheduler delay, given what the logs leave open
-- column: not_known_h | h | hours whose cause the logs leave open: hours waited less the minimum of each cause
-- chart: stacked x=size_bucket y="fair_share_low_h:fair share,capacity_low_h:capacity,fragmentation_low_h:fragmentation,scheduler_low_h:scheduler,ineligible_h,not_known_h" each=GPU
--   page.title="Hours waited by cause and job size" terminal.title="Causes of waits, by gang size"
--   head=GPUs unit=h what=hours
SELECT CASE WHEN every_size = 1 THEN 'all' ELSE size_bucket END AS size_bucket, * EXCLUDE (queue, size_bucket, every_queue, every_size),
       greatest(round(wait_h - fair_share_low_h - capacity_low_h - fragmentation_low_h - scheduler_low_h - ineligible_h, 6), 0) AS not_known_h
FROM base_cause_hours
WHERE every_queue = 1
ORDER BY every_size, list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
