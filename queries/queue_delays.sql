-- title: Every queueing delay and its causes
-- section: delays
-- order: 110
-- question: Why did this attempt wait, second by second?
-- population: {delays} attempt{delays||s} of {attempts} with a known wait; {attempts_without_wait} have none (a time is missing, or attempts overlap).
-- needs: placements
-- detail: yes
-- column: job | - | the source's job id
-- column: attempt | - | number of the attempt, from 0
-- column: queue | - | queue or virtual cluster
-- column: gpus | GPUs | GPUs of the gang
-- column: nodes | nodes | nodes it was placed on
-- column: racks | racks | racks of those nodes; empty if one is unknown
-- column: fewest_nodes | nodes | fewest nodes that can hold it: GPUs over those of the largest node, rounded up
-- column: size_bucket | GPUs | bucket of the gang's GPUs
-- column: queued_ts | UTC | submission; for a retry, the end of the previous attempt
-- column: start_ts | UTC | start
-- column: wait_s | s | start - queued; the five parts below sum to it
-- column: ineligible_s | s | before it was eligible: held, before its begin time, waiting for another job or its array's throttle, or in requeue back-off; 0 if the source does not record this
-- column: fair_share_s | s | the gang would have exceeded its queue's quota and could not borrow, or exceeded the limit of its account, user or QOS
-- column: capacity_s | s | within quota, but fewer GPUs free in the cluster than the gang requests
-- column: fragmentation_s | s | within quota and enough GPUs free, but not on the fewest nodes of one rack that can hold the gang
-- column: scheduler_s | s | such nodes were free, as far as the log shows: scheduling latency, back-off, setup of a retry, or a rule missing from the log
-- column: cause_at_arrival | - | the cause when the attempt was queued (became eligible); empty without a wait
-- column: dominant_cause | - | the cause with the most seconds, or ineligible; empty without a wait
-- column: overtook_gpus | GPUs | smallest gang of its queue that was queued earlier and still waiting at this start; 0: none
-- column: overtook_harmless | - | true if no overtaken attempt could have started instead (too little quota or too few free GPUs; placement ignored)
-- column: source_reason | - | the scheduler's own reason, if any: a single value without a time
-- column: fair_share_low_s | s | minimum seconds, given what the logs leave open (delay_causes)
-- column: fair_share_high_s | s | maximum seconds, given what the logs leave open (delay_causes)
-- column: capacity_low_s | s | minimum seconds, given what the logs leave open (delay_causes)
-- column: capacity_high_s | s | maximum seconds, given what the logs leave open (delay_causes)
-- column: fragmentation_low_s | s | minimum seconds, given what the logs leave open (delay_causes)
-- column: fragmentation_high_s | s | maximum seconds, given what the logs leave open (delay_causes)
-- column: scheduler_low_s | s | minimum seconds, given what the logs leave open (delay_causes)
-- column: scheduler_high_s | s | maximum seconds, given what the logs leave open (delay_causes)
SELECT job, attempt, queue, gpus, servers AS nodes, racks, fewest_servers AS fewest_nodes, size_bucket, queued_ts, start_ts, wait_s,
       ineligible_s, fair_share_s, capacity_s, fragmentation_s, scheduler_s, cause_at_arrival, dominant_cause, overtook_gpus, overtook_harmless,
       source_reason,
       round(greatest(fair_share_s - fair_share_less_s, 0), 6) AS fair_share_low_s, round(fair_share_s + fair_share_more_s, 6) AS fair_share_high_s, round(greatest(capacity_s - capacity_less_s, 0), 6) AS capacity_low_s, round(capacity_s + capacity_more_s, 6) AS capacity_high_s,
       round(greatest(fragmentation_s - fragmentation_less_s, 0), 6) AS fragmentation_low_s, round(fragmentation_s + fragmentation_more_s, 6) AS fragmentation_high_s, round(greatest(scheduler_s - scheduler_less_s, 0), 6) AS scheduler_low_s, round(scheduler_s + scheduler_more_s, 6) AS scheduler_high_s
FROM base_delays
ORDER BY job, attempt
