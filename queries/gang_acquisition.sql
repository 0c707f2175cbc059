-- title: Gang acquisition, container by container
-- section: delays
-- order: 100
-- question: How long does an application wait for its master, and then for each container?
-- population: {gangs_acquired} attempt{gangs_acquired||s} with a logged application master and container times (YARN).
-- needs: containers
-- column: size_bucket | GPUs | GPUs of the gang; 'all' is every size
-- column: attempts | attempts | how many
-- column: master_p50_min | min | median wait for the application master: submission to its allocation
-- column: master_p95_min | min | 95th percentile
-- column: first_p50_min | min | median from the master's allocation to the first container's allocation
-- column: gather_p50_min | min | median from the gang's first container to its last: GPUs held, nothing running
-- column: gather_p95_min | min | 95th percentile
-- column: gather_gpu_h | GPU-h | upper bound of the GPU-hours held while gathering: GPUs of the gang times that time
SELECT CASE WHEN grouping(size_bucket) = 1 THEN 'all' ELSE size_bucket END AS size_bucket, count(*) AS attempts,
       quantile_cont(epoch(am_start_ts - queued_ts), 0.5) / 60 AS master_p50_min,
       quantile_cont(epoch(am_start_ts - queued_ts), 0.95) / 60 AS master_p95_min,
       quantile_cont(epoch(first_container_ts - am_start_ts), 0.5) / 60 AS first_p50_min,
       quantile_cont(epoch(start_ts - first_container_ts), 0.5) / 60 AS gather_p50_min,
       quantile_cont(epoch(start_ts - first_container_ts), 0.95) / 60 AS gather_p95_min,
       sum(gpus * epoch(start_ts - first_container_ts)) / 3600 AS gather_gpu_h
FROM base_attempts
WHERE am_start_ts IS NOT NULL AND first_container_ts IS NOT NULL AND start_ts IS NOT NULL AND queued_ts IS NOT NULL
GROUP BY GROUPING SETS ((size_bucket), ())
HAVING count(*) > 0
ORDER BY grouping(size_bucket), list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket)
