-- title: Sampled reasons and the cause at that instant
-- section: delays
-- order: 90
-- question: What was the cluster's state when the scheduler gave this reason?
-- population: {reason_samples} sample{reason_samples||s} of waiting attempts, each while the attempt was eligible (squeue, gpuctl sample).
-- needs: samples
-- column: reason | - | the scheduler's reason at the instant
-- column: samples | samples | how many
-- column: fair_share_pct | % | share with fair-share delay by replay
-- column: capacity_pct | % | share with too few GPUs free
-- column: fragmentation_pct | % | share with enough GPUs free, but not close together
-- column: scheduler_pct | % | share with free GPUs that fit: held back by priority, a reservation, a limit, or other resources
SELECT reason, count(*) AS samples,
       100.0 * count(*) FILTER (cause = 'fair_share') / count(*) AS fair_share_pct,
       100.0 * count(*) FILTER (cause = 'capacity') / count(*) AS capacity_pct,
       100.0 * count(*) FILTER (cause = 'fragmentation') / count(*) AS fragmentation_pct,
       100.0 * count(*) FILTER (cause = 'scheduler') / count(*) AS scheduler_pct
FROM base_sampled_causes
GROUP BY reason
ORDER BY samples DESC, reason
