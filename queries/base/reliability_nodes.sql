-- The nodes with GPUs, each once.
WITH own AS (SELECT machine, max(gpu_type) AS gpu_type, max(gpus) AS gpus, max(rack) AS rack, min(installed_ts) AS installed_ts FROM node_list WHERE cluster = $cluster GROUP BY ALL)
SELECT machine, coalesce(m.gpu_type, own.gpu_type) AS gpu_type, coalesce(m.gpus, own.gpus) AS gpus, coalesce(m.rack, own.rack) AS rack, epoch(own.installed_ts) AS installed_s
FROM base_machines AS m FULL JOIN own USING (machine)
WHERE coalesce(m.gpus, own.gpus) > 0
ORDER BY machine
