-- title: GPU-hours by outcome
-- section: failures
-- order: 20
-- question: How many GPU-hours did attempts without success cost?
-- population: {attempts} attempt{attempts||s} less {attempts_not_run} with neither a start nor a run time; no source states the GPUs of {ran_without_gpus}, which have node-hours instead. GPU-hours are GPUs times the time held, from allocation to release, as in overview; overlapping attempts of a job are counted once, a running attempt to the end of its log. An attempt is a success if it is the last one of a job that passed.
-- needs: attempts
-- column: size_bucket | GPUs | GPUs of the attempt; 'all' is every size
-- column: gpu_hours | GPU-h | held by all attempts
-- column: succeeded_h | GPU-h | held by the last attempt of jobs that passed
-- column: retried_h | GPU-h | held by attempts that another attempt of the job followed
-- column: killed_h | GPU-h | held by the last attempt of jobs that were killed, ended by their time limit or preempted
-- column: failed_h | GPU-h | held by the last attempt of jobs that failed, ran out of memory or lost a node
-- column: other_h | GPU-h | held by the last attempt of jobs in any other or an unknown state, and by attempts still running
-- column: lost_pct | % | share of gpu_hours held by retried, killed and failed attempts; empty if no source states how any attempt ended
-- column: node_hours | node-h | held by attempts whose GPUs no source states: nodes times the time held
-- column: lost_node_pct | % | the same share of node_hours
-- chart: stacked on=terminal x=size_bucket y=succeeded_h,retried_h,killed_h,failed_h,other_h
--   title="GPU-hours by outcome and gang size" head=GPUs unit=GPU-h what=GPU-hours
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, sum(gpu_s)::DOUBLE / 3600 AS gpu_hours,
       CASE WHEN count(gpu_s) FILTER (outcome <> 'unknown') > 0 THEN coalesce(sum(gpu_s) FILTER (outcome = 'succeeded'), 0)::DOUBLE / 3600 END AS succeeded_h,
       CASE WHEN count(gpu_s) FILTER (outcome <> 'unknown') > 0 THEN coalesce(sum(gpu_s) FILTER (outcome = 'retried'), 0)::DOUBLE / 3600 END AS retried_h,
       CASE WHEN count(gpu_s) FILTER (outcome <> 'unknown') > 0 THEN coalesce(sum(gpu_s) FILTER (outcome = 'killed'), 0)::DOUBLE / 3600 END AS killed_h,
       CASE WHEN count(gpu_s) FILTER (outcome <> 'unknown') > 0 THEN coalesce(sum(gpu_s) FILTER (outcome = 'failed'), 0)::DOUBLE / 3600 END AS failed_h,
       CASE WHEN count(gpu_s) > 0 THEN coalesce(sum(gpu_s) FILTER (outcome IN ('other', 'unknown')), 0)::DOUBLE / 3600 END AS other_h,
       CASE WHEN count(gpu_s) FILTER (outcome <> 'unknown') > 0
            THEN 100 * coalesce(sum(gpu_s) FILTER (outcome IN ('retried', 'killed', 'failed')), 0)::DOUBLE / nullif(sum(gpu_s), 0)::DOUBLE END AS lost_pct,
       sum(node_s)::DOUBLE / 3600 AS node_hours,
       CASE WHEN count(node_s) FILTER (outcome <> 'unknown') > 0
            THEN 100 * coalesce(sum(node_s) FILTER (outcome IN ('retried', 'killed', 'failed')), 0)::DOUBLE / nullif(sum(node_s), 0)::DOUBLE END AS lost_node_pct
FROM base_held
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
