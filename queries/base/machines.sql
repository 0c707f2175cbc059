-- The machines of one cluster; gpus is the larger of the label and what was seen in use.
SELECT machine, rack, gpu_type, gpus, gpus_labelled, gpus_observed, gpu_mem_mb
FROM machines
WHERE cluster = $cluster
ORDER BY machine
